// SPDX-License-Identifier: Apache-2.0
#include "session/metrics.hpp"

#include <fmt/core.h>

namespace wherry::session {

void MetricsWriter::line(std::string_view name, std::string_view help, std::string_view type, const std::string& value,
                         std::string_view labels) {
  if (name != last_name_) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
    last_name_ = name;
  }
  text_ += labels.empty() ? fmt::format("{} {}\n", name, value) : fmt::format("{}{{{}}} {}\n", name, labels, value);
}

std::string MetricsWriter::label(std::string_view name, std::string_view value) {
  constexpr std::size_t kLongest = 256;
  std::string text = fmt::format("{}=\"", name);
  for (const char c : value.substr(0, kLongest)) {
    if (c == '\\' || c == '"') text += '\\';
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text + '"';
}

void MetricsWriter::counter(std::string_view name, std::string_view help, std::uint64_t value,
                            std::string_view labels) {
  line(name, help, "counter", fmt::format("{}", value), labels);
}

void MetricsWriter::gauge(std::string_view name, std::string_view help, double value, std::string_view labels) {
  line(name, help, "gauge", fmt::format("{}", value), labels);
}

}  // namespace wherry::session
