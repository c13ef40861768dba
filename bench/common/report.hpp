// SPDX-License-Identifier: Apache-2.0
// The JSON of docs/reference/bench-json.md.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace wherry::bench {

using Row = nlohmann::ordered_json;

class Report {
 public:
  /// `cores`: how many the process may use. `pinning`: what runs on which core.
  Report(const std::string& name, std::size_t cores, const std::map<std::string, int>& pinning, int repetitions);

  /// Adds a key to the head that only this benchmark has.
  void head(const std::string& key, Row value) { head_[key] = std::move(value); }
  void version(const std::string& of, const std::string& version) { head_["versions"][of] = version; }
  /// Appends one measurement.
  void row(const std::string& experiment, Row values) { results_[experiment].push_back(std::move(values)); }
  /// A measured value with a target. `comparison`: ">=" or "<=", or empty if there is no target. min and max are
  /// widened to include the value.
  struct Bar {
    double value = 0, min = 0, max = 0;
  };
  void bar(const std::string& name, Bar bar, const std::string& comparison, double target, const std::string& unit = "",
           const std::string& published = "");
  /// Throws std::runtime_error if the file cannot be written. The file appears complete or not at all.
  void write(const std::string& path) const;

 private:
  Row head_;
  Row bars_ = Row::object();
  Row results_ = Row::object();
};

}  // namespace wherry::bench
