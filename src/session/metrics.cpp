// SPDX-License-Identifier: Apache-2.0
#include "session/metrics.hpp"

#include <fmt/core.h>

namespace wherry::session {

/// Writes HELP and TYPE once for all lines of a name.
void MetricsWriter::header(std::string_view name, std::string_view help, std::string_view type) {
  if (name == last_name_) return;
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  last_name_ = name;
}

void MetricsWriter::line(std::string_view name, std::string_view help, std::string_view type, const std::string& value,
                         std::string_view labels) {
  header(name, help, type);
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

void MetricsWriter::histogram(std::string_view name, std::string_view help, const TimeHistogram& times) {
  constexpr double kSecond = 1e9;
  header(name, help, "histogram");
  std::uint64_t so_far = 0;  // the format counts in each bucket what is in those before it, too
  for (std::size_t i = 0; i < TimeHistogram::kBoundsNs.size(); ++i) {
    so_far += times.count(i);
    text_ += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name,
                         static_cast<double>(TimeHistogram::kBoundsNs[i]) / kSecond, so_far);
  }
  so_far += times.count(TimeHistogram::kBoundsNs.size());
  text_ += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, so_far,
                       static_cast<double>(times.sum_ns()) / kSecond);
}

}  // namespace wherry::session
