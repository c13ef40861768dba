// SPDX-License-Identifier: Apache-2.0
// The address of a PCI function, such as 0000:03:00.0.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry::pci {

struct BusAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    ///< 0 to 31
  std::uint8_t function = 0;  ///< 0 to 7
  friend constexpr auto operator<=>(const BusAddress&, const BusAddress&) = default;
  /// The address in sysfs's form, "0000:03:00.0".
  [[nodiscard]] std::string text() const;
};

/// Parses "0000:03:00.0", or "03:00.0" in domain 0. kInvalidArgument.
Result<BusAddress> parse_bus_address(std::string_view text);

}  // namespace wherry::pci
