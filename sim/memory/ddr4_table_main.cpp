// SPDX-License-Identifier: Apache-2.0
// Prints the comparison table of our DDR4 model as JSON: `ddr4_table litedram | jedec | card`.
#include <fmt/core.h>

#include <cstdio>
#include <ctime>
#include <string_view>

#include "sim/memory/axi_memory.hpp"
#include "sim/memory/ddr4.hpp"
#include "sim/memory/table_json.hpp"

namespace {

using namespace wherry::sim::memory;

int run(const Ddr4Controller& controller, const Ddr4Timing& timing) {
  Ddr4 ddr4(controller, timing);
  Content content;
  AxiMemory memory(ddr4, content, 2);
  return print_table(memory, ddr4.cycle_ps());
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view which = count == 2 ? arguments[1] : "";
  if (which == "litedram") return run(kLitedramController, kLitedramTiming);
  if (which == "jedec") return run(kLitedramController, kDdr4_2400);
  if (which == "card") return run(kCardController, kDdr4_2400);
  fmt::print(stderr, "ddr4_table: which controller? litedram, jedec (litedram's with JEDEC's times), or card\n");
  return 2;
}
