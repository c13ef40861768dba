// SPDX-License-Identifier: Apache-2.0
#include "base/program.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/error_line.hpp"

namespace wherry {
namespace {

std::atomic<bool> stop_requested{false};
void on_signal(int /*signal*/) { stop_requested.store(true, std::memory_order_relaxed); }

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return stop_requested;
}

void keep_owners_rights() { umask(umask(0) & ~static_cast<mode_t>(S_IRWXU)); }

int exit_status(std::string_view program, const Status& why) {
  error_line(fmt::format("{}: {}", program, why.message()));
  return why.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

}  // namespace wherry
