// SPDX-License-Identifier: Apache-2.0
#include "bypass/path.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/try.hpp"

namespace wherry::bypass {
namespace {

constexpr std::string_view kAsRoot = "run `wherry bypass probe` as root";

/// Drivers that VFIO allows in a group besides its own, because they do no DMA (drivers/vfio/group.c and pcieport's
/// driver_managed_dma).
constexpr std::array<std::string_view, 3> kHarmlessDrivers{"vfio-pci", "pci-stub", "pcieport"};

PortReport report_port(const pci::PciTree& tree, pci::BusAddress at) {
  PortReport report{.at = at, .type = std::nullopt, .acs_known = false, .acs = std::nullopt};
  const pci::PciFunction* port = tree.find(at);
  if (port == nullptr) return report;
  if (const auto express = port->config.express()) report.type = express->type;
  report.acs_known = port->config.sees_extended();
  report.acs = port->config.acs();
  return report;
}

/// Returns the number of ports that both have above them; these come first in both lists.
std::size_t common_ports(const pci::PciFunction& nic, const pci::PciFunction& card) {
  if (nic.host_bridge != card.host_bridge) return 0;
  const auto [mine, theirs] = std::ranges::mismatch(nic.ports, card.ports);
  return static_cast<std::size_t>(mine - nic.ports.begin());
}

class Judge {
 public:
  Judge(const pci::PciTree& tree, const pci::PciFunction& nic, const pci::PciFunction& card, const PathOptions& options)
      : tree_(tree), nic_(nic), card_(card), options_(options) {
    report_.nic = nic.at;
    report_.card = card.at;
  }

  PathReport judge() && {
    judge_route();
    judge_bar(card_, options_.card_bar, "card", options_.card_bytes);
    judge_bar(nic_, options_.nic_bar, "NIC", 0);
    judge_groups();
    judge_reserved(card_, options_.card_bar, nic_, "card");
    judge_reserved(nic_, options_.nic_bar, card_, "NIC");
    return std::move(report_);
  }

 private:
  void find(Cause cause, std::string what, std::string remedy) {
    report_.findings.push_back({cause, std::move(what), std::move(remedy)});
  }

  void judge_route() {
    const std::size_t common = common_ports(nic_, card_);
    for (const pci::PciFunction* one : {&nic_, &card_})
      for (std::size_t i = common; i < one->ports.size(); ++i)
        report_.ports.push_back(report_port(tree_, one->ports[i]));
    // Below one root port without a switch there is only one device. So the two are functions of it, or a bridge to PCI
    // lies between.
    if (common == 0) {
      const std::string place =
          nic_.host_bridge == card_.host_bridge
              ? "they are below different root ports"
              : fmt::format("they are below different host bridges, {} and {}", nic_.host_bridge, card_.host_bridge);
      find(Cause::kNoCommonPort,
           fmt::format("The NIC {} and the card {} have no common port: {}, so every access passes the root complex.",
                       nic_.text(), card_.text(), place),
           "Put both into slots behind one PCIe switch; some root complexes pass peer-to-peer traffic, which only a "
           "test that moves data shows.");
      return;
    }
    report_.common_port = nic_.ports[common - 1];
    report_.route = Route::kDirect;
    judge_redirect();
  }

  void judge_redirect() {
    std::vector<std::string> names, bits;
    for (const PortReport& port : report_.ports) {
      if (!port.acs_known) {
        report_.unknown.push_back(fmt::format("ACS of port {} cannot be read: {}.", port.at.text(), kAsRoot));
        continue;
      }
      if (!port.acs || (port.acs->control & pci::kAcsRedirects) == 0) continue;
      names.push_back(kernel_name_of_port(tree_, port.at));
      bits.push_back(fmt::format("{} ({})", port.at.text(), acs_text(port.acs->control & pci::kAcsRedirects)));
    }
    if (names.empty()) return;
    report_.route = Route::kRedirected;
    find(Cause::kAcsRedirect,
         fmt::format("ACS sends traffic between the NIC and the card through the root complex: {} {}.",
                     bits.size() == 1 ? "port" : "ports", fmt::join(bits, ", ")),
         fmt::format("Add pci=disable_acs_redir={} to the kernel's command line, which puts both into one IOMMU group.",
                     fmt::join(names, ";")));
  }

  void judge_bar(const pci::PciFunction& function, unsigned index, std::string_view who, std::uint64_t at_least) {
    const pci::Bar bar = index < function.bars.size() ? function.bars[index] : pci::Bar{};
    const std::string name = fmt::format("BAR {} of the {} {}", index, who, function.text());
    if (bar.bytes == 0 || !bar.memory)
      return find(Cause::kBar, fmt::format("{} is not memory.", name),
                  fmt::format("Name another one with --{}.", who == "NIC" ? "nic" : "card"));
    if (bar.bytes < at_least)
      return find(Cause::kBar, fmt::format("{} has {} bytes, of which {} are needed.", name, bar.bytes, at_least),
                  fmt::format("Name another one with --{}.", who == "NIC" ? "nic" : "card"));
    if (!bar.assigned)
      return find(Cause::kBar, fmt::format("{} has no address: the firmware found no room.", name),
                  "Switch on \"Above 4G decoding\" in the firmware's set-up, or boot with pci=realloc.");
    if (at_least != 0 && !bar.wide)
      return find(Cause::kBar, fmt::format("{} is 32-bit, and lies where the IOMMU may have reserved addresses.", name),
                  "Build the card's bitstream with a 64-bit prefetchable BAR.");
    if (const pci::BusAddress* port = closed_port(function, bar); port != nullptr)
      find(Cause::kBar,
           fmt::format("{} at {:#x} is outside the windows of port {}, so that nothing reaches it.", name, bar.on_bus,
                       port->text()),
           "Boot with pci=realloc, or rescan the bus.");
  }

  /// Returns a port above the function that does not forward its BAR, or nullptr.
  const pci::BusAddress* closed_port(const pci::PciFunction& function, const pci::Bar& bar) const {
    for (const pci::BusAddress& at : function.ports) {
      const pci::PciFunction* port = tree_.find(at);
      if (port == nullptr || !port->config.is_bridge()) continue;
      if (!port->config.memory_window().covers(bar.on_bus, bar.bytes) &&
          !port->config.prefetchable_window().covers(bar.on_bus, bar.bytes))
        return &at;
    }
    return nullptr;
  }

  void judge_groups() {
    for (const pci::PciFunction* one : {&nic_, &card_})
      if (one->group == pci::kNoGroup)
        return find(Cause::kNoIommu,
                    fmt::format("{} is in no IOMMU group: the IOMMU is off, or there is none.", one->text()),
                    "Switch on VT-d or AMD-Vi in the firmware's set-up, and boot with intel_iommu=on or amd_iommu=on.");
    std::vector<int> groups{nic_.group};
    if (card_.group != nic_.group) groups.push_back(card_.group);
    for (const int group : groups) judge_group(group);
  }

  void judge_group(int group) {
    std::vector<std::string> others;
    for (const pci::PciFunction* member : tree_.members(group)) {
      if (member->at == nic_.at || member->at == card_.at || member->driver.empty()) continue;
      if (std::ranges::find(kHarmlessDrivers, member->driver) == kHarmlessDrivers.end())
        others.push_back(fmt::format("{} ({})", member->text(), member->driver));
    }
    if (others.empty()) return;
    find(Cause::kGroup,
         fmt::format("IOMMU group {} also holds {}, which VFIO would have to take from {} driver.", group,
                     fmt::join(others, ", "), others.size() == 1 ? "its" : "their"),
         "Move the card or the NIC to a slot whose group holds nothing else, or unbind the others.");
  }

  /// One function's BAR must be mapped for the other at its own address. One container maps it for both.
  void judge_reserved(const pci::PciFunction& owner, unsigned index, const pci::PciFunction& other,
                      std::string_view who) {
    if (index >= owner.bars.size() || !owner.bars[index].memory || !owner.bars[index].assigned) return;
    const pci::Bar& bar = owner.bars[index];
    const std::uint64_t last = bar.on_bus + bar.bytes - 1;
    for (const int group : {nic_.group, card_.group}) {
      for (const pci::ReservedRange& range : tree_.reserved(group)) {
        if (last < range.first || bar.on_bus > range.last) continue;
        return find(
            Cause::kReservedAddress,
            fmt::format("BAR {} of the {} {} at {:#x} is where the IOMMU has reserved {:#x} to {:#x} ({}), so "
                        "that it cannot be mapped for {}.",
                        index, who, owner.text(), bar.on_bus, range.first, range.last, range.kind, other.text()),
            "Switch on \"Above 4G decoding\" in the firmware's set-up, so that the BAR moves.");
      }
      if (nic_.group == card_.group) break;
    }
  }

  const pci::PciTree& tree_;
  const pci::PciFunction& nic_;
  const pci::PciFunction& card_;
  const PathOptions& options_;
  PathReport report_{};
};

}  // namespace

Result<PathReport> judge_path(const pci::PciTree& tree, pci::BusAddress nic, pci::BusAddress card,
                              const PathOptions& options) {
  if (nic == card) return Status(StatusCode::kInvalidArgument, fmt::format("{} cannot be NIC and card", nic.text()));
  for (const pci::BusAddress at : {nic, card})
    if (tree.find(at) == nullptr)
      return Status(StatusCode::kNotFound, fmt::format("this machine has no PCI function {}", at.text()));
  return Judge(tree, *tree.find(nic), *tree.find(card), options).judge();
}

std::string kernel_name_of_port(const pci::PciTree& tree, pci::BusAddress port) {
  const pci::PciFunction* function = tree.find(port);
  if (function == nullptr || function->ports.empty()) return port.text();
  std::string name = function->ports.front().text();
  for (std::size_t i = 1; i < function->ports.size(); ++i)
    name += fmt::format("/{:02x}.{}", function->ports[i].device, function->ports[i].function);
  return name + fmt::format("/{:02x}.{}", port.device, port.function);
}

std::string acs_text(std::uint16_t bits) {
  static constexpr std::array<std::pair<std::uint16_t, std::string_view>, 7> kNames{{
      {pci::kAcsSourceValidation, "SV"},
      {pci::kAcsTranslationBlocking, "TB"},
      {pci::kAcsRequestRedirect, "RR"},
      {pci::kAcsCompletionRedirect, "CR"},
      {pci::kAcsUpstreamForwarding, "UF"},
      {pci::kAcsEgressControl, "EC"},
      {pci::kAcsDirectTranslated, "DT"},
  }};
  std::vector<std::string_view> names;
  for (const auto& [bit, name] : kNames)
    if ((bits & bit) != 0) names.push_back(name);
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, " "));
}

}  // namespace wherry::bypass
