// SPDX-License-Identifier: Apache-2.0
// A DMA engine at transaction level, in cycles of 250 MHz: descriptors, read requests and writes on a PCIe link, bursts
// of 512 bits to the card's memory. It moves real bytes, so that its user can compare them.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "sim/designs/presets.hpp"
#include "sim/dma/host_link.hpp"
#include "sim/memory/axi.hpp"
#include "sim/memory/ring.hpp"

namespace wherry::sim::designs {

inline constexpr std::uint64_t kEnginePs = 4'000;
inline constexpr std::uint32_t kMostChannels = 4;

/// A part of a transfer that one call hands to the engine. All values are multiples of 64. All are multiples of 64.
struct Transfer {
  std::uint64_t host = 0;  ///< offset in the host's buffer
  std::uint64_t card = 0;
  std::uint64_t bytes = 0;
};

/// Handles one direction, 1 to 4 channels, and one transfer per channel at a time. One thread.
class Engine {
 public:
  /// The host's buffer must outlive the engine.
  Engine(const EnginePreset& preset, Flow flow, std::uint32_t channels, std::span<std::byte> host, std::uint64_t seed);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() = default;

  /// The host sends the doorbell now. Precondition: idle(channel).
  void post(std::uint32_t channel, const Transfer& transfer);
  [[nodiscard]] bool idle(std::uint32_t channel) const noexcept { return !channels_[channel].busy; }
  /// When the host saw the end of the last transfer of an idle channel, in ns.
  [[nodiscard]] double ended_ns(std::uint32_t channel) const noexcept { return channels_[channel].ended_ns; }

  [[nodiscard]] const memory::AxiRequest& request() const noexcept { return out_; }
  /// The clock edge at which the port drove `in`.
  void step(const memory::AxiAnswer& in);

  [[nodiscard]] double now_ns() const noexcept { return link_.now(); }
  /// The memory answered an access with an error.
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  /// Nothing is under way.
  [[nodiscard]] bool quiet() const noexcept;

 private:
  static constexpr std::uint32_t kMostPieces = 192, kDescriptorTag = 200, kDescriptorBytes = 32;
  static constexpr double kOneWay = 0.35;           ///< of the round trip: a doorbell, or a message to the host
  static constexpr std::uint32_t kStatusWord = 16;  ///< bytes

  struct Piece {
    std::uint32_t channel = 0, bytes = 0, moved = 0;
    std::uint64_t host = 0, card = 0;
    bool last = false;  ///< of its transfer
    double ready = 0;   ///< to the host: from then on
    std::vector<memory::Beat> data;
  };
  struct Channel {
    bool busy = false, bell = false;
    Transfer transfer;
    std::uint64_t cut = 0;        ///< bytes of it that pieces were made of
    std::uint64_t described = 0;  ///< bytes that fetched descriptors cover
    std::uint64_t asked = 0;      ///< the same, of descriptors that were asked for
    std::uint64_t fetching = 0;   ///< bytes that the read under way will cover; 0: none is
    std::uint32_t pieces = 0;     ///< under way
    double bell_ns = 0, ended_ns = 0;
  };

  void fetch();
  [[nodiscard]] bool may_cut(const Channel& channel) const noexcept;
  [[nodiscard]] bool take_turn();
  [[nodiscard]] std::uint32_t cut();
  void end(Piece& piece, bool told);
  void completions();
  void step_to_card(const memory::AxiAnswer& in);
  void step_to_host(const memory::AxiAnswer& in);
  [[nodiscard]] memory::Beat beat_of(const Piece& piece, std::uint32_t at) const;

  EnginePreset preset_;
  Flow flow_;
  std::span<std::byte> host_;
  dma::HostLink link_;
  std::vector<Channel> channels_;
  std::vector<Piece> pieces_;
  std::vector<std::uint8_t> free_;
  std::uint32_t turn_ = 0, turn_left_ = 0, ids_, turn_bytes_;
  memory::Ring<std::uint8_t> order_;    ///< to the card: requested, in order. To the host: whose data are to come.
  memory::Ring<std::uint8_t> moving_;   ///< to the card: whose data are sent. To the host: that wait for the link.
  memory::Ring<std::uint8_t> answers_;  ///< to the card: whose answer is to come
  std::uint32_t sent_ = 0;              ///< bytes of the first of moving_
  bool failed_ = false;
  memory::AxiRequest out_;
};

}  // namespace wherry::sim::designs
