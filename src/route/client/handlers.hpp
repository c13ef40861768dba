// SPDX-License-Identifier: Apache-2.0
// The handlers of a rank by number, and a signature with which ranks check that they have registered the same handlers.
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
  /// Handlers without a name have numbers below this, in the order of registration. Names are hashed to numbers from
  /// this one on.
  static constexpr std::uint32_t kFirstNamed = 4096;

  /// Returns the handler's number. kResourceExhausted: too many handlers without a name. kAlreadyExists: the name, or a
  /// name with the same number, or an unnamed handler that is indistinguishable from this one, is registered.
  Result<std::uint32_t> add(std::unique_ptr<HandlerEntry> entry, HandlerInfo info);
  /// Null: no handler has this number.
  [[nodiscard]] HandlerEntry* find(std::uint32_t id) const noexcept {
    return id < entries_.size() ? entries_[id].get() : nullptr;
  }
  /// A hash of all handlers. It does not depend on the order of named handlers. 0: there are no handlers.
  [[nodiscard]] std::uint64_t signature() const noexcept { return signature_; }
  /// A text such as "0: unsigned long (8 bytes), 1: 'ping' (16 bytes)", and the number of further handlers.
  [[nodiscard]] std::string describe() const;
  /// The error of `rank` for a refused message of `bytes` bytes to handler `id`.
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
