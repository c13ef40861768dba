// SPDX-License-Identifier: Apache-2.0
// For tests: a card with the registers of spec/bypass_registers.toml. Slots are plain memory while the pair is stopped.
// When a queue pair starts, the model writes the receive tail, which a NIC would see at once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bypass/card.hpp"
#include "bypass/generated/registers.hpp"

namespace wherry::bypass::testing_support {

class CardModel {
 public:
  // What a test sets.
  bool gone = false;
  bool has_memory = true;
  bool busy = false;  ///< never comes to rest
  std::uint32_t pairs = 1;
  std::uint32_t id = registers::kIdReset, version = registers::kCoreVersionReset;
  bool has_functions = false;
  std::uint32_t rules = 8;
  bool has_generator = true;
  std::uint32_t functions_version = 1 << 16;
  std::optional<std::uint32_t> stuck;  ///< a register that reads as 0 whatever is written
  /// How often filter_state is read before the filter's table is built. `filter` is the built table.
  unsigned builds = 0;
  std::vector<std::uint32_t> filter;  ///< filter_match and filter_mask, as they were when control said so
  /// Called for each write of the card to the bus.
  std::function<void(std::uint64_t, std::uint32_t)> post = [](std::uint64_t, std::uint32_t) {};
  std::vector<std::byte> slots = std::vector<std::byte>(256 * kSlotBytes);

  [[nodiscard]] bool running(std::uint32_t pair = 0) const {
    return (value(registers::queue_control_offset(pair)) & 1) != 0;
  }
  [[nodiscard]] std::uint32_t value(std::uint32_t offset) const {
    const auto place = values_.find(offset);
    return place == values_.end() ? 0 : place->second;
  }
  void set(std::uint32_t offset, std::uint32_t value) { values_[offset] = value; }

  std::uint32_t read(std::uint32_t offset) {
    namespace reg = registers;
    if (gone) return ~0U;
    if (offset == reg::kIdOffset) return id;
    if (offset == reg::kCoreVersionOffset) return version;
    if (offset == reg::kCapabilityOffset)
      return static_cast<std::uint32_t>(std::countr_zero(pairs)) | 8U << 4 | 9U << 8 |
             9U << 12;  // 256 and 512 descriptors
    if (offset == stuck) return 0;
    if (offset >= kFunctions) return read_function(offset - kFunctions);
    for (std::uint32_t pair = 0; pair < pairs; ++pair)
      if (offset == reg::queue_state_offset(pair)) return (running(pair) ? 1U : 0U) | (running(pair) || busy ? 0U : 2U);
    return value(offset);
  }
  void write(std::uint32_t offset, std::uint32_t value) {
    namespace reg = registers;
    if (gone) return;
    const std::uint32_t before = this->value(offset);
    values_[offset] = value;
    if (offset == kFunctions + 0x00C && (value & 2) != 0) build_filter();
    for (std::uint32_t pair = 0; pair < pairs; ++pair)
      if (offset == reg::queue_control_offset(pair) && (before & 1) == 0 && running(pair))
        post(std::uint64_t{this->value(reg::rx_tail_high_offset(pair))} << 32 |
                 this->value(reg::rx_tail_low_offset(pair)),
             255);
  }
  bool read_window(std::uint64_t offset, std::span<std::byte> into) const {
    if (gone) return false;
    std::ranges::fill(into, std::byte{0xFF});
    if (has_memory && offset >= kSlots && offset - kSlots + into.size() <= slots.size())
      std::memcpy(into.data(), slots.data() + (offset - kSlots), into.size());
    return true;
  }
  bool write_window(std::uint64_t offset, std::span<const std::byte> from) {
    if (gone) return false;
    if (has_memory && !running() && offset >= kSlots && offset - kSlots + from.size() <= slots.size())
      std::memcpy(slots.data() + (offset - kSlots), from.data(), from.size());
    return true;
  }

 private:
  // From docs/reference/bypass-functions-registers.md, by offset: a register map that the code under test does not use.
  static constexpr std::uint32_t kFunctions = 0x8000;
  std::uint32_t read_function(std::uint32_t offset) {
    if (!has_functions) return 0;
    switch (offset) {
      case 0x000:
        return 0x42595046;
      case 0x004:
        return functions_version;
      case 0x008:
        return rules | (has_generator ? 0x10U : 0U);
      case 0x030:
        return builds > 0 && builds-- > 1 ? 1 : 0;
      default:
        return value(kFunctions + offset);
    }
  }
  void build_filter() {
    builds = 3;
    filter.clear();
    for (std::uint32_t offset = 0x400; offset < 0x800; offset += 4) filter.push_back(value(kFunctions + offset));
  }
  std::map<std::uint32_t, std::uint32_t> values_;
};

class ModelCardAccess final : public CardAccess {
 public:
  ModelCardAccess(CardModel& card, std::function<void(std::chrono::microseconds)> pause)
      : card_(card), pause_(std::move(pause)) {}
  std::uint32_t read(std::uint32_t offset) override { return card_.read(offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { card_.write(offset, value); }
  Status read_window(std::uint32_t offset, std::span<std::byte> into) override {
    return card_.read_window(offset, into) ? Status() : Status(StatusCode::kUnavailable, "the card has gone");
  }
  Status write_window(std::uint32_t offset, std::span<const std::byte> from) override {
    return card_.write_window(offset, from) ? Status() : Status(StatusCode::kUnavailable, "the card has gone");
  }
  void pause(std::chrono::microseconds time) override { pause_(time); }

 private:
  CardModel& card_;
  std::function<void(std::chrono::microseconds)> pause_;
};

}  // namespace wherry::bypass::testing_support
