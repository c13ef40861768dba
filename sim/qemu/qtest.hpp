// SPDX-License-Identifier: Apache-2.0
// A client of QEMU's qtest protocol (docs/devel/testing/qtest.rst): accesses to the machine's memory and I/O ports as
// if its processor made them. Commands are lines, answered in order. Like PCIe: writes are posted (many may be in
// flight), and reads wait for their data.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "sim/qemu/channel.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

class Qtest {
 public:
  explicit Qtest(Fd socket) : channel_(std::move(socket)) {}

  /// Queued; turn() sends them. Their answers are checked on arrival.
  void post_write32(std::uint64_t address, std::uint32_t value);
  void post_write16(std::uint64_t address, std::uint16_t value);
  void post_out32(std::uint16_t port, std::uint32_t value);
  /// Queued behind all writes. Only one at a time: take its value before you ask for the next one.
  void ask_read32(std::uint64_t address);
  [[nodiscard]] std::optional<std::uint32_t> take_value();

  /// Sends and receives as much as possible. kUnavailable: QEMU is gone; kProtocol: it refused a command.
  Status turn();
  [[nodiscard]] std::size_t unanswered() const noexcept { return expected_.size(); }
  [[nodiscard]] bool wants_to_send() const noexcept { return channel_.wants_to_send(); }
  [[nodiscard]] int fd() const noexcept { return channel_.fd(); }

 private:
  enum class Expected : std::uint8_t { kOk, kValue };
  void post(std::string_view line, Expected expected);
  Status answer(std::string_view line);

  Channel channel_;
  std::deque<Expected> expected_;
  std::optional<std::uint32_t> value_;
};

}  // namespace wherry::sim
