// SPDX-License-Identifier: Apache-2.0
// The handlers of a rank by number, and one word by which ranks find out whether they have registered the same ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "route/internal.hpp"
#include "wherry/route_detail.hpp"

namespace wherry::route::detail {

class Handlers {
 public:
  /// Handlers without a name are numbered in the order of registration, up to here; a name says its number itself.
  static constexpr std::uint32_t kFirstNamed = 4096;

  /// The number of the new handler. kResourceExhausted. kAlreadyExists: the name, or another one of the same number; or
  /// one without a name that nothing tells from this one.
  Result<std::uint32_t> add(std::unique_ptr<HandlerEntry> entry, HandlerInfo info);
  /// Null: there is none of this number.
  [[nodiscard]] HandlerEntry* find(std::uint32_t id) const noexcept {
    return id < entries_.size() ? entries_[id].get() : nullptr;
  }
  /// Of all handlers: the order of named ones does not matter. 0: there are none.
  [[nodiscard]] std::uint64_t signature() const noexcept { return signature_; }
  /// "0: unsigned long (8 bytes), 1: 'ping' (16 bytes)", cut short when there are many.
  [[nodiscard]] std::string describe() const;
  /// Why a message of `bytes` bytes that has come to `rank` for handler `id` is not taken. Registered or not.
  [[nodiscard]] Status refusal(std::uint32_t id, std::size_t bytes, Rank rank) const;

 private:
  struct Known {
    std::uint32_t id;
    HandlerInfo info;
  };
  std::vector<std::unique_ptr<HandlerEntry>> entries_ = std::vector<std::unique_ptr<HandlerEntry>>(kFirstUserHandler);
  std::vector<Known> known_;
  std::uint32_t next_ = kFirstUserHandler;
  std::uint64_t ordered_ = 0, named_ = 0, signature_ = 0;
};

}  // namespace wherry::route::detail
