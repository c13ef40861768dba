// SPDX-License-Identifier: Apache-2.0
// A configuration space of arbitrary bytes: no access goes beyond its end, every search ends, and all results are in
// bounds.
#include <cstdlib>
#include <cstring>

#include "pci/config_space.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry::pci;
  std::vector<std::byte> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), data, size);
  const ConfigSpace config(std::move(bytes));
  for (unsigned id = 0; id < 256; ++id) {
    const auto at = config.find(static_cast<std::uint8_t>(id));
    if (at && (*at < kConfigHeader || config.u8(*at) != id)) std::abort();
  }
  for (unsigned id = 0; id < 64; ++id) {
    const auto at = config.find_extended(static_cast<std::uint16_t>(id));
    if (at && (*at < kConfigClassic || *at >= kConfigExtended || (config.u32(*at) & 0xFFFF) != id)) std::abort();
  }
  const auto acs = config.acs();
  if (acs && acs->offset + 8U > config.size()) std::abort();
  const auto express = config.express();
  if (express && express->offset + 10U > config.size()) std::abort();
  for (unsigned index = 0; index < 8; ++index) (void)config.bar(index);
  const Window memory = config.memory_window(), prefetchable = config.prefetchable_window();
  if (memory.covers(0, 0) || prefetchable.covers(0, 0)) std::abort();
  return 0;
}
