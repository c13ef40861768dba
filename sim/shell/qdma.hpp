// SPDX-License-Identifier: Apache-2.0
// AMD's QDMA as the thesis uses it: one queue in each direction, stream (case 1) or memory-mapped (case 3). It reads a
// real descriptor from host memory (formats: PG302, "H2C Stream Descriptor", "C2H Stream Descriptor", "AXI Memory
// Mapped Descriptor") and executes it. Not modelled, because the thesis's times end before them: write-backs,
// completion rings, interrupts, prefetch, several queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/shell/card_port.hpp"
#include "sim/shell/requester.hpp"
#include "sim/shell/stream.hpp"
#include "sim/shell/tlp_writer.hpp"

namespace wherry::sim::shell {

inline constexpr std::uint32_t kH2cStreamDescriptor = 16, kC2hStreamDescriptor = 8, kMemoryDescriptor = 32;

class Qdma final : public Sink {
 public:
  /// `out`: receives the host's packets, towards the network. `card`: not needed for streams.
  Qdma(pcie::EventQueue& queue, const Parameters& parameters, Requester& requester, CardPort* card, Sink* out)
      : queue_(queue),
        parameters_(parameters),
        requester_(requester),
        card_(card),
        out_(out),
        writer_(queue, requester, parameters.mps) {}

  /// The host has moved a producer index, and the descriptor lies at `ring`.
  void host_to_stream(std::uint64_t ring);
  void host_to_card(std::uint64_t ring);
  void card_to_host(std::uint64_t ring);
  /// The same, but the descriptor is fetched when a packet comes (thesis, section 5.3.1).
  void stream_to_host(std::uint64_t ring) noexcept { ring_ = ring; }
  /// A beat of a packet to the host.
  void beat(const Beat& beat) override;
  /// `bytes`: the number that has arrived at the host since the start.
  void host_has(std::uint64_t bytes);

 private:
  struct Transfer {
    std::uint64_t source = 0, destination = 0;
    std::uint32_t bytes = 0;
  };
  template <typename Then>
  void fetch(std::uint64_t ring, std::uint32_t bytes, Then then);
  [[nodiscard]] static Transfer memory_descriptor(std::span<const std::byte> bytes);
  void stream(std::span<const std::byte> data, std::uint32_t left);
  void transaction();

  pcie::EventQueue& queue_;
  const Parameters& parameters_;
  Requester& requester_;
  CardPort* card_;
  Sink* out_;
  TlpWriter writer_;
  std::uint64_t ring_ = 0;
  bool asked_ = false;
  std::vector<std::byte> out_bytes_;  ///< of a packet to the network that do not fill a beat yet
  Time out_free_ = 0;
  Transfer to_host_;               ///< what is left of it
  std::uint64_t to_host_end_ = 0;  ///< bytes that the host has when the transaction is over
};

}  // namespace wherry::sim::shell
