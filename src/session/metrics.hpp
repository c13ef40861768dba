// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "session/time_histogram.hpp"

namespace wherry::session {

/// Collects metrics in the Prometheus text format, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/).
class MetricsWriter {
 public:
  void counter(std::string_view name, std::string_view help, std::uint64_t value, std::string_view labels = {});
  void gauge(std::string_view name, std::string_view help, double value, std::string_view labels = {});
  /// `name` must end in "_seconds": the values are written in seconds.
  void histogram(std::string_view name, std::string_view help, const TimeHistogram& times);
  /// Returns name="value", for `labels`. Replaces or escapes characters that are unsafe in a text page.
  [[nodiscard]] static std::string label(std::string_view name, std::string_view value);
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void header(std::string_view name, std::string_view help, std::string_view type);
  void line(std::string_view name, std::string_view help, std::string_view type, const std::string& value,
            std::string_view labels);
  std::string text_;
  std::string last_name_;
};

}  // namespace wherry::session
