// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <fmt/core.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/secure_directory.hpp"

namespace wherry {

Status init_log(const std::string& level, const std::string& file) {
  constexpr std::array<std::string_view, 6> kLevels{"trace", "debug", "info", "warn", "error", "off"};
  bool known = false;
  for (const auto name : kLevels) known = known || name == level;
  if (!known) {
    return {StatusCode::kInvalidArgument,
            fmt::format("log level '{}' is none of trace, debug, info, warn, error, off", level)};
  }
  if (!file.empty()) {
    auto log = open_log_file(file);
    if (!log) return log.status();
    // What libraries write there, and the last words of a process that aborts, belong into the log, too.
    if (dup2(log->get(), STDERR_FILENO) < 0)
      return {StatusCode::kInternal, fmt::format("cannot log to '{}': {}", file, std::strerror(errno))};
  }
  const auto logger =
      std::make_shared<spdlog::logger>("wherry", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(spdlog::level::from_str(level));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
  return ok_status();
}

}  // namespace wherry
