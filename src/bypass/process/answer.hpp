// SPDX-License-Identifier: Apache-2.0
// A command's output for programs (--json): one object for every outcome; the first fields are always the same.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "bypass/cause.hpp"

namespace wherry::bypass {

inline constexpr int kFailed = 1, kWrongCall = 2;  ///< exit statuses of every program

/// How a command ended.
struct Outcome {
  std::string_view command;  ///< "probe", "up", "status", "down"
  int status = 0;            ///< the exit status
  std::string error;         ///< the sentence; empty if and only if the status is 0
};

/// The name of an exit status: "none", "failed", "wrong_command_line", or the name of a Cause.
[[nodiscard]] std::string_view cause_of(int status) noexcept;
/// Fields `command`, `exit_status`, `cause`, `error` (null: none): docs/guide/bypass-host.md, "For programs".
[[nodiscard]] nlohmann::ordered_json answer_of(const Outcome& outcome);

}  // namespace wherry::bypass
