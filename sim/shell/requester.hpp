// SPDX-License-Identifier: Apache-2.0
// The card's PCIe hard block as QDMA sees it. Requests leave over the RQ interface, completions come over RC, both with
// 512 bit at 250 MHz. Each TLP starts at the beginning of a beat (PG213, without straddling). A TLP goes to the link
// when its last beat has been taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "sim/pcie/event_queue.hpp"
#include "sim/pcie/function.hpp"
#include "sim/shell/parameters.hpp"
#include "sim/shell/trace.hpp"

namespace wherry::sim::shell {

class Requester final : public pcie::Function {
 public:
  using Data = std::function<void(std::uint32_t offset, std::span<const std::byte> data)>;

  Requester(pcie::EventQueue& queue, Trace& trace, std::uint32_t mrrs) : queue_(queue), trace_(trace), mrrs_(mrrs) {}
  void start(pcie::Port& port) noexcept { port_ = &port; }

  /// One TLP. Precondition: it keeps to MPS and to a page.
  void write(std::uint64_t address, std::vector<std::byte> data);
  /// Makes as many requests as MRRS and pages demand. `data`: called in order, with offsets within the read.
  void read(Place place, std::uint64_t address, std::uint32_t bytes, Data data);

  void on_write(const pcie::InboundWrite& write) override { static_cast<void>(write); }
  void on_read(const pcie::InboundRead& read) override {
    port_->complete(read, {}, pcie::CompletionStatus::kUnsupportedRequest);
  }
  void on_read_data(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data) override;
  void on_read_done(pcie::Token token, pcie::CompletionStatus status) override {
    static_cast<void>(token);
    if (status != pcie::CompletionStatus::kSuccess) ++failed;
  }

  std::uint64_t failed = 0;

 private:
  struct Part {
    Place place;
    std::uint32_t offset;  ///< of the request in its read
    Data data;
  };
  /// Occupies RQ for `bytes` from now on, and returns the edge at which the last beat is taken.
  Time send(Place place, std::uint32_t bytes);

  pcie::EventQueue& queue_;
  Trace& trace_;
  std::uint32_t mrrs_;
  pcie::Port* port_ = nullptr;
  std::map<pcie::Token, Part> parts_;  ///< kept to the end: a run has few
  pcie::Token next_ = 0;
  Time out_free_ = 0, in_free_ = 0;
};

}  // namespace wherry::sim::shell
