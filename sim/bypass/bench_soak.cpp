// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "sim/bypass/bench.hpp"
#include "sim/bypass/soak.hpp"

namespace wherry::sim::bench {

Json soak(const Settings& settings, std::uint64_t seeds) {
  constexpr auto kTroubles = static_cast<std::uint64_t>(Trouble::kCount);
  const std::uint64_t count = seeds != 0 ? seeds : settings.quick ? kTroubles : 10 * kTroubles;
  const std::uint64_t frames = settings.frames != 0 ? settings.frames : settings.quick ? 4'000 : 1'000'000;
  const std::clock_t begin = std::clock();
  SoakResult sum;
  Json by_trouble = Json::object(), violations = Json::array();
  std::uint64_t done = 0;
  for (; done < count && !(settings.interrupted != nullptr && *settings.interrupted); ++done) {
    const SoakOptions options{.seed = settings.seed + done,
                              .frames = std::max<std::uint64_t>(1, frames / count),
                              .trouble = static_cast<Trouble>((settings.seed + done) % kTroubles)};
    const std::string name(sim::name_of(options.trouble));
    fmt::print(stderr, "\r[{}/{}] seed {}, {}: {} frames so far, {} wrong   ", done + 1, count, options.seed, name,
               sum.in, violations.size());
    const SoakResult one = sim::soak(options);
    sum.in += one.in;
    sum.out += one.out;
    sum.counted += one.counted;
    sum.struck += one.struck;
    sum.refused += one.refused;
    sum.retries += one.retries;
    sum.cycles += one.cycles;
    Json& row = by_trouble[name];
    if (row.is_null()) row = Json::object();
    for (const auto& [key, value] :
         {std::pair{"in", one.in}, std::pair{"out", one.out}, std::pair{"counted", one.counted},
          std::pair{"struck", one.struck}, std::pair{"refused", one.refused}, std::pair{"retries", one.retries}})
      row[key] = row.value(key, std::uint64_t{0}) + value;
    for (const std::string& sentence : one.wrong) {
      fmt::print(stderr, "\nseed {}, {}: {}\n", options.seed, name, sentence);
      violations.push_back(fmt::format("seed {}, {}: {}", options.seed, name, sentence));
    }
  }
  fmt::print(stderr, "\n");
  return {{"name", "soak"},         {"group", "soak"},
          {"seeds", done},          {"frames", sum.in},
          {"out", sum.out},         {"counted", sum.counted},
          {"struck", sum.struck},   {"refused", sum.refused},
          {"troubles", by_trouble}, {"violations", violations},
          {"cycles", sum.cycles},   {"cpu_s", static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC}};
}

}  // namespace wherry::sim::bench
