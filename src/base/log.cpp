// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <fmt/core.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>

#include "base/error_line.hpp"
#include "base/secure_directory.hpp"
#include "base/try.hpp"

namespace wherry {

namespace {

constexpr const char* kLogger = "wherry";

/// Writes a line's control characters as text, such as "\\n" and "\\x1b", because they could end the line or control a
/// terminal. The log contains names that clients choose, and reasons that name files.
class OneLine final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& to) override {
    unsigned char before = 0;
    for (const char c : message.payload) {
      const auto code = static_cast<unsigned char>(c);
      if (before == 0xc2 && code >= 0x80 && code < 0xa0) {  // U+0080 to U+009F in UTF-8: controls, too
        to.resize(to.size() - 1);
        fmt::format_to(std::back_inserter(to), "\\x{:02x}", code);
      } else if (c == '\n')
        fmt::format_to(std::back_inserter(to), "\\n");
      else if (code < 0x20 || code == 0x7f)
        fmt::format_to(std::back_inserter(to), "\\x{:02x}", code);
      else
        to.push_back(c);
      before = code;
    }
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<OneLine>(); }
};

}  // namespace

Status init_log(const std::string& level, const std::string& file) {
  constexpr std::array<std::string_view, 6> kLevels{"trace", "debug", "info", "warn", "error", "off"};
  bool known = false;
  for (const auto name : kLevels) known = known || name == level;
  if (!known) {
    return {StatusCode::kInvalidArgument,
            fmt::format("log level '{}' is none of trace, debug, info, warn, error, off", level)};
  }
  if (!file.empty()) {
    WHERRY_ASSIGN(auto log, open_log_file(file));
    // Standard error goes to the log too, with lines of libraries and the last message of an aborting process.
    if (dup2(log.get(), STDERR_FILENO) < 0)
      return {StatusCode::kInternal, fmt::format("cannot log to '{}': {}", file, std::strerror(errno))};
  }
  const auto logger =
      std::make_shared<spdlog::logger>(kLogger, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(spdlog::level::from_str(level));
  auto form = std::make_unique<spdlog::pattern_formatter>();
  form->add_flag<OneLine>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %*");
  logger->set_formatter(std::move(form));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
  return ok_status();
}

void warn_line(const std::string& text) {
  if (spdlog::default_logger()->name() == kLogger)
    spdlog::warn("{}", text);
  else
    error_line("wherry: " + text);
}

}  // namespace wherry
