// SPDX-License-Identifier: Apache-2.0
#pragma once
// The effect of a command on one name.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kv/resp/answer.hpp"

namespace wherry::kv::resp {

/// The new state of a text, and the client's answer after it is stored.
struct Change {
  enum class What : std::uint8_t { leave, write, remove };
  What what = What::leave;
  std::string text;  ///< to be written
  Answer answer;
};

/// Decides on the present text, if any. Called again if another client changes the text, so it must be stateless.
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
