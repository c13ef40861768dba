// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/answer.hpp"

namespace wherry::bypass {

std::string_view cause_of(int status) noexcept {
  switch (status) {
    case kFailed:
      return "failed";
    case kWrongCall:
      return "wrong_command_line";
    default:
      return name_of(static_cast<Cause>(status));
  }
}

nlohmann::ordered_json answer_of(const Outcome& outcome) {
  return {{"command", outcome.command},
          {"exit_status", outcome.status},
          {"cause", cause_of(outcome.status)},
          {"error", outcome.error.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(outcome.error)}};
}

}  // namespace wherry::bypass
