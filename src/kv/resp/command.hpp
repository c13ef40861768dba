// SPDX-License-Identifier: Apache-2.0
// Translates Redis commands to edits of the store, following Redis' documentation of each command. A command that is
// impossible in this store is refused by name, with the reason.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kv/resp/answer.hpp"
#include "kv/resp/edit.hpp"

namespace wherry::kv::resp {

/// The effect of a request: either edits, whose answers are joined, or an answer at once.
struct Plan {
  enum class Join : std::uint8_t {
    one,   ///< the only edit's answer
    sum,   ///< of numbers
    list,  ///< all of them
    ok,    ///< OK when all are done
  };
  std::vector<Edit> edits;
  Join join = Join::one;
  Answer answer;
};

struct PlanOptions {
  /// Allows MGET and MSET. Each of their keys is read or written in one step, but not all of them together.
  bool key_by_key = false;
};

/// Plans any request except those of the connection itself (AUTH, HELLO, QUIT, ...). An unknown command or a wrong
/// number of arguments gives an error answer. Precondition: `arguments` is not empty.
Plan plan(std::span<const std::string_view> arguments, const PlanOptions& options);

/// Joins the answers of a plan's edits, in their order. If one of them is an error, the result is that error.
Answer join(Plan::Join how, std::vector<Answer> answers);

/// Compares names of commands or options without regard to upper and lower case.
[[nodiscard]] bool same_word(std::string_view a, std::string_view b) noexcept;

}  // namespace wherry::kv::resp
