// SPDX-License-Identifier: Apache-2.0
// The handlers of a rank by number, and a signature by which ranks find out whether they have registered the same ones.
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
  /// Handlers without a name are numbered in the order of registration, below this. A name is hashed to a number from
  /// here on.
  static constexpr std::uint32_t kFirstNamed = 4096;

  /// The number of the new handler. kResourceExhausted: too many without a name. kAlreadyExists: the name, or another
  /// name with the same number, is registered; or a handler without a name that cannot be told apart from this one.
  Result<std::uint32_t> add(std::unique_ptr<HandlerEntry> entry, HandlerInfo info);
  /// Null: no handler has this number.
  [[nodiscard]] HandlerEntry* find(std::uint32_t id) const noexcept {
    return id < entries_.size() ? entries_[id].get() : nullptr;
  }
  /// A hash of all handlers. The order of named ones does not matter. 0: there are none.
  [[nodiscard]] std::uint64_t signature() const noexcept { return signature_; }
  /// "0: unsigned long (8 bytes), 1: 'ping' (16 bytes)", and how many more there are.
  [[nodiscard]] std::string describe() const;
  /// Why a message of `bytes` bytes for handler `id` is refused at `rank`.
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
