// SPDX-License-Identifier: Apache-2.0
// The recording of Linux on VexRiscv, linux_boot.wbt, which `make linux-trace` writes (docs/design/designs.md).
#include <fmt/core.h>

#include <cstdlib>
#include <span>

#include "sim/designs/neighbours.hpp"

// Embeds the file itself, so that a program needs no path to it. CMakeLists.txt gives its path.
__asm__(
    ".pushsection .rodata\n"
    ".global wherry_linux_boot\n"
    ".global wherry_linux_boot_end\n"
    "wherry_linux_boot:\n"
    ".incbin \"" WHERRY_LINUX_BOOT
    "\"\n"
    "wherry_linux_boot_end:\n"
    ".popsection\n");

extern "C" {
extern const std::uint8_t wherry_linux_boot[];
extern const std::uint8_t wherry_linux_boot_end[];
}

namespace wherry::sim::designs {
namespace {

softcore::BusTrace read() {
  Result<softcore::BusTrace> trace = softcore::BusTrace::decode({wherry_linux_boot, wherry_linux_boot_end});
  if (trace.ok()) return std::move(trace).value();
  fmt::print(stderr, "linux_boot.wbt, as this program was built with it: {}\n", trace.status().message());
  std::abort();
}

}  // namespace

const softcore::BusTrace& linux_trace() {
  static const softcore::BusTrace trace = read();
  return trace;
}

std::string_view linux_traffic_name() { return "recorded: Linux 6.1 booting on VexRiscv, 8 windows"; }

}  // namespace wherry::sim::designs
