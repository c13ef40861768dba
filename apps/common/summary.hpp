// SPDX-License-Identifier: Apache-2.0
// An application's results as text for people.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace wherry::apps {

/// The amount of work done, in the application's own unit.
struct Work {
  std::string one, many;  ///< "update", "updates"; empty: the application has no unit
  std::uint64_t count = 0;
};

/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);

/// A rate or an amount in three digits: 31676543 as "31.7 M"; below 1000 without a suffix.
std::string rounded(double number);

/// Returns three lines, each with a line feed: work and rate; job and traffic; results. `line`: the application's JSON
/// (docs/guide/route-apps.md), whose fields from "bytes" to "statistics" are the application's own results.
std::string summary(const nlohmann::ordered_json& line, const Work& work);

}  // namespace wherry::apps
