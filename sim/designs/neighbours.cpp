// SPDX-License-Identifier: Apache-2.0
#include "sim/designs/neighbours.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace wherry::sim::designs {
namespace {

constexpr std::uint64_t kBusHz = 300'000'000;

class Player final : public Neighbour {
 public:
  Player(softcore::BusTrace trace, std::uint32_t core_hz, std::size_t first)
      : trace_(std::move(trace)), player_(clocked(core_hz), kBusHz, kCoreBase, 1U << 25, first) {}
  [[nodiscard]] const memory::AxiRequest& request() const override { return player_.request(); }
  void step(const memory::AxiAnswer& in) override { player_.step(in); }

 private:
  const softcore::BusTrace& clocked(std::uint32_t core_hz) {
    trace_.clock_hz = core_hz;
    return trace_;
  }
  softcore::BusTrace trace_;
  softcore::TracePlayer player_;
};

}  // namespace

std::size_t first_of_window(std::uint32_t window) {
  const std::vector<softcore::BusAccess>& all = linux_trace().accesses;
  const auto first = std::ranges::lower_bound(all, window * kWindowCycles, {}, &softcore::BusAccess::cycle);
  return static_cast<std::size_t>(first - all.begin());
}

MakeNeighbour linux_traffic(std::uint32_t core_hz, std::uint32_t window) {
  return [core_hz, first = first_of_window(window)](memory::Content&) {
    return std::make_unique<Player>(linux_trace(), core_hz, first);
  };
}

}  // namespace wherry::sim::designs
