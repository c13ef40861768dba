// SPDX-License-Identifier: Apache-2.0
#include "all_to_all.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "common/measure.hpp"
#include "huge.hpp"
#include "turns.hpp"

namespace wherry::bench {
namespace {

AgentCounts sum_of(const std::vector<AgentCounts>& agents) {
  AgentCounts sum;
  for (const AgentCounts& one : agents) {
    sum.bytes += one.bytes;
    sum.transfers += one.transfers;
    sum.blocked += one.blocked;
  }
  sum.transfers = std::max(sum.transfers, 1.0);
  return sum;
}

}  // namespace

AllToAll all_to_all(route::Runtime& runtime, std::size_t messages, int turns) {
  std::uint64_t sum = 0;
  const auto add = runtime.on<std::uint64_t>([&](const std::uint64_t& i) { sum += i; });
  const Span span(runtime);
  std::uint64_t blocked_ns = 0;
  double whole = 0;
  std::vector<double> taken;
  for (int turn = 0; turn < turns; ++turn) {
    taken.push_back(seconds(runtime, [&] {
      for (std::size_t i = 0; i < messages; ++i) {
        const auto to = static_cast<route::Rank>(splitmix64(i + runtime.rank() * messages) % runtime.ranks());
        send_counting(runtime, to, add, std::uint64_t{i}, blocked_ns);
      }
      quiesce(runtime);
    }));
    whole += taken.back();
  }
  // The first turn is a warm-up.
  return {median({taken.begin() + (turns > 1 ? 1 : 0), taken.end()}), span.transfer_bytes(),
          static_cast<double>(blocked_ns) * 1e-9 / whole};
}

double average_transfer(const std::vector<AgentCounts>& agents) {
  const AgentCounts sum = sum_of(agents);
  return sum.bytes / sum.transfers;
}

double blocked_per_transfer(const std::vector<AgentCounts>& agents) {
  const AgentCounts sum = sum_of(agents);
  return sum.blocked / sum.transfers;
}

}  // namespace wherry::bench
