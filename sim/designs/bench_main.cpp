// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <cstdlib>
#include <ctime>
#include "sim/designs/measure.hpp"
#include "sim/designs/neighbours.hpp"
using namespace wherry::sim::designs;
int main(int argc, char** argv) {
  for (const Design design : kDesigns)
    for (const Flow flow : {Flow::kToCard, Flow::kToHost})
      for (const std::uint32_t channels : {1U, 4U})
        for (const std::uint64_t bytes : {64UL, 1UL << 20, 8UL << 20}) {
          if (design == Design::kBram && bytes > 1 << 20) continue;
          if (argc > 1 && name_of(design) != argv[1]) continue;
          PointOptions o;
          o.card.design = design; o.flow = flow; o.channels = channels; o.bytes = bytes;
          if (argc > 2) o.card.slices = std::atoi(argv[2]);
          if (argc > 3) o.card.controller = Controller::kCard;
          if (design == Design::kLinux) o.neighbour = linux_traffic();
          const std::clock_t c = std::clock();
          const Point p = measure(o);
          fmt::print("{:8} {} {}ch {:8} {:6.3f} GB/s {:9.0f} ns {} cycles {:.2f}s {}\n", name_of(design), flow == Flow::kToCard ? "h2c" : "c2h", channels, bytes, p.gbytes, p.transfer_ns, p.cycles, double(std::clock() - c) / CLOCKS_PER_SEC, p.error);
          std::fflush(stdout);
        }
}
