// SPDX-License-Identifier: Apache-2.0
// The output of the commands: lines for people, JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bypass/path.hpp"
#include "bypass/process/answer.hpp"
#include "bypass/process/bring_up.hpp"

namespace wherry::bypass {

/// The NICs that Wherry knows, and possible cards. A card is a function of `card_vendor` whose BAR 2 can be a window.
struct Candidates {
  std::vector<const pci::PciFunction*> nics, cards;
};
inline constexpr std::uint16_t kXilinx = 0x10EE;
Candidates find_candidates(const pci::PciTree& tree);

/// The named NIC or card, or the only one. kNotFound: none, or not the named one; kInvalidArgument: there are several,
/// or the name is not an address.
Result<pci::BusAddress> choose(const pci::PciTree& tree, const std::vector<const pci::PciFunction*>& candidates,
                               const std::string& named, const std::string& what);

/// "82574L 0000:03:00.0 (8086:10d3), driver e1000e, IOMMU group 12".
std::string describe(const pci::PciFunction& function);
/// The output for people; lines end with "\n".
std::string candidates_text(const pci::PciTree& tree, const Candidates& candidates);
std::string path_text(const pci::PciTree& tree, const PathReport& report);
std::string preflight_text(const PreflightReport& report);
/// The output for programs: the answer, and the findings. `report`: nullptr if there is no report.
nlohmann::ordered_json report_json(const Outcome& outcome, const pci::PciTree& tree, const Candidates& candidates,
                                   const UpReport* report);
/// The exit status for a report: its own finding, else its path's first (decisive) finding, else 0.
Finding verdict(const UpReport& report);

}  // namespace wherry::bypass
