// SPDX-License-Identifier: Apache-2.0
// Writes the clients' results as the JSON that the programs in this folder print.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "kv/load.hpp"

namespace wherry::kv::bench {

inline nlohmann::json to_json(const VerbResult& verb, double seconds) {
  const auto microseconds = [](std::uint64_t ns) { return static_cast<double>(ns) / 1000; };
  nlohmann::json outcomes = nlohmann::json::object();
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    all += verb.outcomes[i];
    if (verb.outcomes[i] != 0) outcomes[std::string(to_string(static_cast<Outcome>(i)))] = verb.outcomes[i];
  }
  const Latencies& l = verb.latencies;
  return {{"count", all},
          {"per_second", static_cast<double>(all) / seconds},
          {"mean_us", l.mean() / 1000},
          {"p50_us", microseconds(l.percentile(0.5))},
          {"p99_us", microseconds(l.percentile(0.99))},
          {"p999_us", microseconds(l.percentile(0.999))},
          {"max_us", microseconds(l.max())},
          {"outcomes", outcomes}};
}

/// By name of each verb that was used: "operations", and how many succeeded per second.
inline nlohmann::json to_json(const std::array<VerbResult, kVerbs>& verbs, double seconds) {
  nlohmann::json operations = nlohmann::json::object();
  std::uint64_t ok = 0;
  for (std::size_t i = 0; i < kVerbs; ++i) {
    nlohmann::json verb = to_json(verbs[i], seconds);
    ok += verbs[i].latencies.count();
    if (verb["count"] != 0) operations[std::string(kVerbNames[i])] = std::move(verb);
  }
  return {{"seconds", seconds}, {"ok_per_second", static_cast<double>(ok) / seconds}, {"operations", operations}};
}

}  // namespace wherry::kv::bench
