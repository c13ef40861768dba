// SPDX-License-Identifier: Apache-2.0
// The JSON of docs/bench-json.md.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "options.hpp"
#include "wherry/session.hpp"

namespace wherry::bench {

using Row = nlohmann::ordered_json;

class Report {
 public:
  Report(const Options& options, std::size_t cores, int repetitions);

  void session(const SessionInfo& info);
  /// Appends one measurement.
  void row(const std::string& experiment, Row values) { results_[experiment].push_back(std::move(values)); }
  /// A claim. `comparison`: ">=" or "<=". min and max are stretched to hold the value.
  struct Bar {
    double value = 0, min = 0, max = 0;
  };
  void bar(const std::string& name, Bar bar, const std::string& comparison, double target, const std::string& unit = "",
           const std::string& published = "");
  /// Throws std::runtime_error if the file cannot be written. Appears complete or not at all.
  void write(const std::string& path) const;

 private:
  Row head_;
  Row bars_ = Row::object();
  Row results_ = Row::object();
};

}  // namespace wherry::bench
