// SPDX-License-Identifier: Apache-2.0
#include "probe/device/link_bound.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "base/text_file.hpp"
#include "pci/sysfs.hpp"

namespace wherry::probe {

Bound link_bound(const std::string& folder) {
  const auto speed = read_text_file(folder + "/current_link_speed", "a PCI function's link speed", 4096);
  const auto lanes = pci::read_number(folder + "/current_link_width");
  if (!speed || !lanes || *lanes == 0) return {};
  const double transfers = std::strtod(speed->c_str(), nullptr);  // "8.0 GT/s PCIe", of one lane
  if (transfers <= 0) return {};
  // PCI Express Base Specification: 8b/10b to 5 GT/s; 128b/130b to 32 GT/s; at 64 GT/s flits with 242 of 256 bytes.
  const double code = transfers < 8 ? 0.8 : transfers < 64 ? 128.0 / 130 : 242.0 / 256;
  return {.bytes_per_s = transfers * 1e9 * code * *lanes / 8,
          .transfers_per_s = 0,
          .why = fmt::format("PCIe link of {} GT/s x{}; packet heads are not subtracted", transfers, *lanes)};
}

}  // namespace wherry::probe
