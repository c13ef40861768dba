// SPDX-License-Identifier: Apache-2.0
// Runs the firmwares of docs/design/card-memory.md on PicoRV32, if its Verilog was there at build time.
#include "sim/designs/neighbours.hpp"

#ifdef WHERRY_PICO
#include <utility>
#include <vector>

#include "sim/softcore/firmware.hpp"
#include "sim/softcore/pico_core.hpp"
#endif

namespace wherry::sim::designs {

#ifdef WHERRY_PICO
namespace {

class Pico final : public Neighbour {
 public:
  Pico(memory::Content& content, const std::vector<std::uint32_t>& firmware)
      : core_({}, {.ratio = 3, .code_on_card = true, .code_address = kCoreBase}) {
    std::vector<std::uint8_t> bytes;
    for (const std::uint32_t word : firmware)
      for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> 8 * i));
    content.load(kCoreBase, bytes);
  }
  [[nodiscard]] const memory::AxiRequest& request() const override { return core_.request(); }
  void step(const memory::AxiAnswer& in) override { core_.step(in); }

 private:
  softcore::PicoCore core_;
};

MakeNeighbour pico(std::vector<std::uint32_t> firmware) {
  return
      [firmware = std::move(firmware)](memory::Content& content) { return std::make_unique<Pico>(content, firmware); };
}

}  // namespace

bool pico_is_here() noexcept { return true; }
MakeNeighbour nops() { return pico(softcore::nop_firmware()); }
MakeNeighbour memory_test() { return pico(softcore::memory_test_firmware(kCoreBase + (1U << 20), 1U << 20, 64)); }
#else
bool pico_is_here() noexcept { return false; }
MakeNeighbour nops() { return {}; }
MakeNeighbour memory_test() { return {}; }
#endif

}  // namespace wherry::sim::designs
