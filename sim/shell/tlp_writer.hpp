// SPDX-License-Identifier: Apache-2.0
// QDMA's path to the host: collects a TLP's data, passes them on at a beat a cycle, and offers the write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/shell/requester.hpp"

namespace wherry::sim::shell {

class TlpWriter {
 public:
  TlpWriter(pcie::EventQueue& queue, Requester& requester, std::uint32_t mps)
      : queue_(queue), requester_(requester), mps_(mps) {}

  /// Data go to `address`, and none before the time `from`.
  void open(std::uint64_t address, Time from);
  /// Adds data that may be passed on after `delay`. They may come before open().
  void add(std::span<const std::byte> data, Time delay);
  /// Also writes the data that do not fill a TLP.
  void flush();

 private:
  void pump(bool all);

  pcie::EventQueue& queue_;
  Requester& requester_;
  std::uint32_t mps_;
  std::uint64_t address_ = 0;
  bool open_ = false, flushed_ = false;
  Time from_ = 0, delay_ = 0, free_ = 0;
  std::vector<std::byte> data_;  ///< that wait
};

}  // namespace wherry::sim::shell
