// SPDX-License-Identifier: Apache-2.0
// Tells whether a history of one key is linearizable: the search of Wing and Gong with a memory of tried states (Lowe).
// The search does not use nodes, and treats versions only as names of values.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kv/message.hpp"

namespace wherry::kv::testing {

struct Operation {
  Kind kind{};
  std::uint64_t written = 0;   ///< value that a write sets; values are unique and not 0
  std::uint64_t expected = 0;  ///< value that a conditional one expects; 0: no key
  Cycles invoked = 0;
  Cycles returned = std::numeric_limits<Cycles>::max();
  std::optional<Status> status;  ///< none: unknown, it may have happened or yet happen
  std::uint64_t found = 0;       ///< value that a read returned
  std::uint32_t version = 0;     ///< of the reply
};

using History = std::vector<Operation>;

/// The state after the operation, or no value if the operation cannot happen in this state. State 0: no key.
inline std::optional<std::uint64_t> step(const Operation& op, std::uint64_t state,
                                         const std::map<std::uint32_t, std::uint64_t>& value_of, bool refreshed) {
  const bool writes = op.kind == Kind::write || op.kind == Kind::write_if;
  const bool conditional = op.kind == Kind::write_if || op.kind == Kind::remove_if;
  if (op.kind == Kind::read) {
    const std::uint64_t seen = op.status == Status::ok ? op.found : 0;
    return seen == state ? std::optional(state) : std::nullopt;
  }
  if (!op.status || op.status == Status::ok) {
    if (conditional && state != op.expected) return std::nullopt;
    if (!writes && state == 0) return std::nullopt;
    return writes ? op.written : 0;
  }
  if (op.status == Status::version_mismatch) {
    if ((state == op.expected && !refreshed) || (op.version == 0) != (state == 0)) return std::nullopt;
    const auto known = value_of.find(op.version);
    if (known != value_of.end() && known->second != state) return std::nullopt;
    return state;
  }
  return state == 0 ? std::optional(state) : std::nullopt;  // no_such_key; table_full, since there was no such key
}

/// The set of operations of a history that have taken place.
using Done = std::array<std::uint64_t, 8>;
inline constexpr std::size_t kMostOperations = 64 * std::tuple_size_v<Done>;
[[nodiscard]] inline bool has(const Done& done, std::size_t i) { return (done[i / 64] >> i % 64 & 1) != 0; }
[[nodiscard]] inline Done with(Done done, std::size_t i) {
  done[i / 64] |= std::uint64_t{1} << i % 64;
  return done;
}

/// For up to kMostOperations operations; more end the process. refreshed: a value's version may have grown by itself.
inline bool linearizable(const History& history, bool refreshed = false) {
  std::map<std::uint32_t, std::uint64_t> value_of;  // a version shows one value, and a value has one version
  std::map<std::uint64_t, std::uint32_t> version_of;
  for (const Operation& op : history) {
    const bool shows = op.status == Status::ok && (op.kind == Kind::read || op.written != 0);
    if (!shows) continue;
    const std::uint64_t value = op.kind == Kind::read ? op.found : op.written;
    if (value_of.try_emplace(op.version, value).first->second != value) return false;
    if (version_of.try_emplace(value, op.version).first->second != op.version && !refreshed) return false;
  }
  if (history.size() > kMostOperations) std::abort();
  const auto complete = [&](const Done& done) {
    for (std::size_t i = 0; i < history.size(); ++i)
      if (history[i].status && !has(done, i)) return false;
    return true;
  };
  std::set<std::pair<Done, std::uint64_t>> tried;
  std::vector<std::pair<Done, std::uint64_t>> open(1);  // none, and no value
  while (!open.empty()) {
    const auto [done, state] = open.back();
    open.pop_back();
    if (complete(done)) return true;
    Cycles first_return = std::numeric_limits<Cycles>::max();
    for (std::size_t i = 0; i < history.size(); ++i)
      if (!has(done, i) && history[i].status) first_return = std::min(first_return, history[i].returned);
    for (std::size_t i = 0; i < history.size(); ++i) {
      if (has(done, i) || history[i].invoked > first_return) continue;
      if (const auto after = step(history[i], state, value_of, refreshed)) {
        const std::pair next{with(done, i), *after};
        if (tried.insert(next).second) open.push_back(next);
      }
    }
  }
  return false;
}

}  // namespace wherry::kv::testing
