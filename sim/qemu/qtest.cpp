// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/qtest.hpp"

#include <fmt/core.h>

#include <charconv>
#include <string>

#include "base/try.hpp"

namespace wherry::sim {
namespace {

Status refusal(std::string_view line) {
  return {StatusCode::kProtocol, fmt::format("QEMU's qtest says: {}", line.substr(0, 200))};
}

}  // namespace

void Qtest::post(std::string_view line, Expected expected) {
  channel_.put(line);
  expected_.push_back(expected);
}

void Qtest::post_write32(std::uint64_t address, std::uint32_t value) {
  post(fmt::format("writel {:#x} {:#x}\n", address, value), Expected::kOk);
}

void Qtest::post_write16(std::uint64_t address, std::uint16_t value) {
  post(fmt::format("writew {:#x} {:#x}\n", address, value), Expected::kOk);
}

void Qtest::post_out32(std::uint16_t port, std::uint32_t value) {
  post(fmt::format("outl {:#x} {:#x}\n", port, value), Expected::kOk);
}

void Qtest::ask_read32(std::uint64_t address) { post(fmt::format("readl {:#x}\n", address), Expected::kValue); }

std::optional<std::uint32_t> Qtest::take_value() { return std::exchange(value_, std::nullopt); }

Status Qtest::turn() {
  WHERRY_TRY(channel_.flush());
  WHERRY_ASSIGN(bool some, channel_.fill());
  while (some) {
    const std::size_t end = channel_.text().find('\n');
    if (end == std::string_view::npos) break;
    WHERRY_TRY(answer(channel_.text().substr(0, end)));
    channel_.consume(end + 1);
  }
  return {};
}

Status Qtest::answer(std::string_view line) {
  if (line.starts_with("IRQ ")) return {};  // a report, not an answer
  if (!line.starts_with("OK") || expected_.empty()) return refusal(line);
  const Expected expected = expected_.front();
  expected_.pop_front();
  if (expected == Expected::kOk) return {};
  constexpr std::string_view kHex = "OK 0x";
  std::uint64_t value = 0;
  if (!line.starts_with(kHex)) return refusal(line);
  const char* end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data() + kHex.size(), end, value, 16);
  if (error != std::errc() || rest != end) return refusal(line);
  value_ = static_cast<std::uint32_t>(value);
  return {};
}

}  // namespace wherry::sim
