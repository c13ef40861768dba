// SPDX-License-Identifier: Apache-2.0
// Redis commands as edits of the store. The code follows Redis' documentation of each command. If a command is
// impossible in this store, it is refused by name, with the reason.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kv/resp/answer.hpp"
#include "kv/resp/edit.hpp"

namespace wherry::kv::resp {

/// The effect of a request: edits, whose answers are joined, or (without edits) an answer at once.
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
  /// MGET and MSET are allowed. Each of their keys is read or written in one step, but not all of them together.
  bool key_by_key = false;
};

/// For any request except those of the connection itself (AUTH, HELLO, QUIT, ...). An unknown command, or a wrong
/// number of arguments: an error. Precondition: `arguments` is not empty.
Plan plan(std::span<const std::string_view> arguments, const PlanOptions& options);

/// The answers of a plan's edits, in their order, as one. If there is an error among them, it is the whole answer.
Answer join(Plan::Join how, std::vector<Answer> answers);

/// A name of a command or an option, without regard to upper and lower case.
[[nodiscard]] bool same_word(std::string_view a, std::string_view b) noexcept;

}  // namespace wherry::kv::resp
