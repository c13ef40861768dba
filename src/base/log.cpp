// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <fmt/core.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <array>
#include <string_view>

namespace wherry {

Status init_log(const std::string& level, const std::string& file) {
  constexpr std::array<std::string_view, 6> kLevels{"trace", "debug", "info", "warn", "error", "off"};
  bool known = false;
  for (const auto name : kLevels) known = known || name == level;
  if (!known) {
    return {StatusCode::kInvalidArgument,
            fmt::format("log level '{}' is none of trace, debug, info, warn, error, off", level)};
  }
  std::shared_ptr<spdlog::logger> logger;
  try {
    logger =
        file.empty()
            ? std::make_shared<spdlog::logger>("wherry", std::make_shared<spdlog::sinks::stderr_color_sink_mt>())
            : std::make_shared<spdlog::logger>("wherry", std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
  } catch (const spdlog::spdlog_ex& error) {
    return {StatusCode::kInvalidArgument, fmt::format("cannot log to '{}': {}", file, error.what())};
  }
  logger->set_level(spdlog::level::from_str(level));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
  return ok_status();
}

}  // namespace wherry
