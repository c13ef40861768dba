// SPDX-License-Identifier: Apache-2.0
// What a command does with one name.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kv/resp/answer.hpp"

namespace wherry::kv::resp {

/// What becomes of a text, and what the client is told once that is done.
struct Change {
  enum class What : std::uint8_t { leave, write, remove };
  What what = What::leave;
  std::string text;  ///< to be written
  Answer answer;
};

/// Called with the text that is there, or none; again if somebody else changes it meanwhile. Must not remember.
using Decide = std::function<Change(std::optional<std::string_view>)>;

struct Edit {
  enum class Kind : std::uint8_t {
    read,    ///< answers with what `show` makes of the text
    write,   ///< `text`, whatever is there; answers OK
    change,  ///< as `decide` says, in one step for everybody else
  };
  Kind kind = Kind::read;
  std::string name;
  std::string text = {};
  Answer (*show)(std::optional<std::string_view>) = nullptr;  ///< null: the text itself
  Decide decide = {};
};

}  // namespace wherry::kv::resp
