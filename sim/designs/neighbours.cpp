// SPDX-License-Identifier: Apache-2.0
#include "sim/designs/neighbours.hpp"

#include <utility>

namespace wherry::sim::designs {
namespace {

constexpr std::uint64_t kBusHz = 300'000'000;

class Player final : public Neighbour {
 public:
  Player(softcore::BusTrace trace, std::uint32_t core_hz)
      : trace_(std::move(trace)), player_(clocked(core_hz), kBusHz, kCoreBase, 1U << 25) {}
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

MakeNeighbour linux_traffic(std::uint32_t core_hz) {
  return [core_hz](memory::Content&) { return std::make_unique<Player>(linux_trace(), core_hz); };
}

}  // namespace wherry::sim::designs
