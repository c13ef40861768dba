// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wherry::session {

/// Collects metrics in the Prometheus text format.
class MetricsWriter {
 public:
  void counter(std::string_view name, std::string_view help, std::uint64_t value, std::string_view labels = {});
  void gauge(std::string_view name, std::string_view help, double value, std::string_view labels = {});
  /// name="value", for `labels`; of a value from outside only what is harmless in a page of text.
  [[nodiscard]] static std::string label(std::string_view name, std::string_view value);
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void line(std::string_view name, std::string_view help, std::string_view type, const std::string& value,
            std::string_view labels);
  std::string text_;
  std::string last_name_;
};

}  // namespace wherry::session
