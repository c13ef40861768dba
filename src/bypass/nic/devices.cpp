// SPDX-License-Identifier: Apache-2.0
// The NIC families that Wherry drives.
#include <fmt/core.h>

#include <algorithm>

#include "bypass/nic/e1000e.hpp"
#include "bypass/nic/iavf.hpp"
#include "bypass/nic/igb.hpp"
#include "bypass/nic/ixgbe.hpp"
#include "bypass/nic/nic.hpp"

namespace wherry::bypass {
std::string_view model_name(std::uint16_t vendor, std::uint16_t device) noexcept {
  if (vendor != kVendor) return {};
  const auto* const place = std::ranges::find(kDevices, device, &DeviceName::id);
  return place == kDevices.end() ? std::string_view() : place->name;
}

bool can_drive(const Personality& personality) noexcept {
  const std::string_view name = personality.name;
  return name == "e1000e" || name == "igb" || name == "i210" || name == "igc" || name == "ixgbe" || name == "x550" ||
         name == "iavf";
}

Result<std::unique_ptr<Nic>> make_nic(const Personality& personality, Registers& registers, DmaMemory memory) {
  const std::string_view name = personality.name;
  std::unique_ptr<Nic> nic;
  if (name == "e1000e") nic = std::make_unique<E1000e>(personality, registers);
  if (name == "igb" || name == "i210" || name == "igc") nic = std::make_unique<Igb>(personality, registers);
  if (name == "ixgbe" || name == "x550") nic = std::make_unique<Ixgbe>(personality, registers);
  if (name == "iavf") nic = std::make_unique<Iavf>(personality, registers, memory);
  if (nic) return nic;
  if (name == "i40e" || name == "ice")
    return Status(StatusCode::kUnsupported,
                  fmt::format("a {} itself is not driven, its virtual functions are: make one with `echo 1 > "
                              "/sys/bus/pci/devices/<NIC>/sriov_numvfs`, and name that",
                              name));
  return Status(StatusCode::kUnsupported, fmt::format("NICs of the family {} are not driven", name));
}

}  // namespace wherry::bypass
