// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace wherry::bypass {
namespace {

using nlohmann::ordered_json;

std::string_view name_of(Route route) {
  switch (route) {
    case Route::kDirect:
      return "direct";
    case Route::kRedirected:
      return "redirected";
    case Route::kRootComplex:
      return "root_complex";
  }
  return "?";
}

std::string_view type_text(std::optional<pci::PortType> type) {
  if (!type) return "port";
  switch (*type) {
    case pci::PortType::kRootPort:
      return "root port";
    case pci::PortType::kSwitchUpstream:
      return "switch, upstream port";
    case pci::PortType::kSwitchDownstream:
      return "switch, downstream port";
    default:
      return "bridge";
  }
}

std::string size_text(std::uint64_t bytes) {
  if (bytes >= 1U << 20) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} KiB", bytes >> 10);
}

std::string named(const pci::PciFunction& function) {
  const std::string_view model = model_name(function.vendor, function.device);
  return model.empty() ? std::string() : fmt::format("{} ", model);
}

ordered_json function_json(const pci::PciFunction& function) {
  ordered_json bars = ordered_json::array();
  for (unsigned i = 0; i < function.bars.size(); ++i) {
    const pci::Bar& bar = function.bars[i];
    if (bar.bytes == 0) continue;
    bars.push_back({{"index", i},
                    {"bus_address", bar.on_bus},
                    {"bytes", bar.bytes},
                    {"memory", bar.memory},
                    {"wide", bar.wide},
                    {"prefetchable", bar.prefetchable},
                    {"assigned", bar.assigned}});
  }
  const Personality* personality = personality_of(function.vendor, function.device);
  return {{"address", function.text()},
          {"vendor", function.vendor},
          {"device", function.device},
          {"model", model_name(function.vendor, function.device)},
          {"personality", personality != nullptr ? personality->name : ""},
          {"driven", personality != nullptr && can_drive(*personality)},
          {"driver", function.driver},
          {"iommu_group", function.group == pci::kNoGroup ? ordered_json() : ordered_json(function.group)},
          {"bars", bars}};
}

ordered_json finding_json(const Finding& finding) {
  return {{"cause", name_of(finding.cause)},
          {"status", static_cast<int>(finding.cause)},
          {"what", finding.what},
          {"remedy", finding.remedy}};
}

}  // namespace

Candidates find_candidates(const pci::PciTree& tree) {
  Candidates found;
  for (const pci::PciFunction& function : tree.functions()) {
    if (personality_of(function.vendor, function.device) != nullptr) found.nics.push_back(&function);
    const pci::Bar& window = function.bars[kWindowBar];
    if (function.vendor == kXilinx && window.memory && window.bytes >= kWindowBytes) found.cards.push_back(&function);
  }
  return found;
}

Result<pci::BusAddress> choose(const pci::PciTree& tree, const std::vector<const pci::PciFunction*>& candidates,
                               const std::string& named_one, const std::string& what) {
  if (!named_one.empty()) {
    auto at = pci::parse_bus_address(named_one);
    if (!at) return at;
    if (tree.find(*at) == nullptr)
      return Status(StatusCode::kNotFound, fmt::format("this machine has no PCI function {}", at->text()));
    return at;
  }
  if (candidates.empty()) return Status(StatusCode::kNotFound, fmt::format("this machine has no {}", what));
  if (candidates.size() == 1) return candidates.front()->at;
  std::string all;
  for (const pci::PciFunction* one : candidates) all += fmt::format(" {}", one->text());
  return Status(StatusCode::kInvalidArgument, fmt::format("this machine has several of {}: name one of{}", what, all));
}

std::string describe(const pci::PciFunction& function) {
  return fmt::format(
      "{}{} ({:04x}:{:04x}), {}, {}", named(function), function.text(), function.vendor, function.device,
      function.driver.empty() ? std::string("no driver") : fmt::format("driver {}", function.driver),
      function.group == pci::kNoGroup ? std::string("no IOMMU group") : fmt::format("IOMMU group {}", function.group));
}

std::string candidates_text(const pci::PciTree& /*tree*/, const Candidates& candidates) {
  std::string text;
  for (const pci::PciFunction* nic : candidates.nics) {
    const Personality* personality = personality_of(nic->vendor, nic->device);
    text += fmt::format(
        "NIC   {}{}\n", describe(*nic),
        personality != nullptr && can_drive(*personality) ? "" : ": not driven itself, its virtual functions are");
  }
  for (const pci::PciFunction* card : candidates.cards) {
    const pci::Bar& window = card->bars[kWindowBar];
    text += fmt::format("card  {}, BAR 2 of {} at {:#x}\n", describe(*card), size_text(window.bytes), window.on_bus);
  }
  return text;
}

std::string path_text(const pci::PciTree& tree, const PathReport& report) {
  std::string text =
      fmt::format("NIC   {}\ncard  {}\n", describe(*tree.find(report.nic)), describe(*tree.find(report.card)));
  switch (report.route) {
    case Route::kDirect:
      text += fmt::format("way   direct, below port {}\n", report.common_port->text());
      break;
    case Route::kRedirected:
      text +=
          fmt::format("way   below port {}, but up to the root complex and down again\n", report.common_port->text());
      break;
    case Route::kRootComplex:
      text += "way   through the root complex\n";
      break;
  }
  for (const PortReport& port : report.ports) {
    const std::string acs =
        !port.acs_known ? "ACS not readable"
        : !port.acs ? "no ACS"
                    : fmt::format("ACS can {}, does {}", acs_text(port.acs->capability), acs_text(port.acs->control));
    text += fmt::format("port  {} ({}): {}\n", port.at.text(), type_text(port.type), acs);
  }
  for (const Finding& finding : report.findings)
    text += fmt::format("\n{}\n{}{}", finding.what, finding.remedy, finding.remedy.empty() ? "" : "\n");
  for (const std::string& unknown : report.unknown) text += fmt::format("\n{}\n", unknown);
  return text;
}

std::string preflight_text(const PreflightReport& report) {
  if (report.finding.cause == Cause::kNone)
    return fmt::format("moved {} frames from A to B and {} from B to A through the NIC, {} bytes, all as sent\n",
                       report.there, report.back, report.bytes);
  return fmt::format("{}\n{}{}", report.finding.what, report.finding.remedy, report.finding.remedy.empty() ? "" : "\n");
}

Finding verdict(const UpReport& report) {
  if (report.finding.cause != Cause::kNone) return report.finding;
  return report.path.findings.empty() ? Finding{} : report.path.findings.front();
}

ordered_json report_json(const Outcome& outcome, const pci::PciTree& tree, const Candidates& candidates,
                         const UpReport* report) {
  ordered_json document = answer_of(outcome);
  document["nics"] = ordered_json::array();
  document["cards"] = ordered_json::array();
  for (const pci::PciFunction* nic : candidates.nics) document["nics"].push_back(function_json(*nic));
  for (const pci::PciFunction* card : candidates.cards) document["cards"].push_back(function_json(*card));
  if (report != nullptr) {
    const PathReport& path = report->path;
    ordered_json ports = ordered_json::array();
    for (const PortReport& port : path.ports) {
      ordered_json entry{{"address", port.at.text()},
                         {"kernel_name", kernel_name_of_port(tree, port.at)},
                         {"acs_known", port.acs_known}};
      if (port.acs) {
        entry["acs_capability"] = port.acs->capability;
        entry["acs_control"] = port.acs->control;
      }
      ports.push_back(entry);
    }
    document["path"] = {{"nic", path.nic.text()},
                        {"card", path.card.text()},
                        {"route", name_of(path.route)},
                        {"common_port", path.common_port ? ordered_json(path.common_port->text()) : ordered_json()},
                        {"ports", ports},
                        {"findings", ordered_json::array()},
                        {"unknown", path.unknown}};
    for (const Finding& finding : path.findings) document["path"]["findings"].push_back(finding_json(finding));
    if (report->moved)
      document["preflight"] = {{"passed", report->preflight.finding.cause == Cause::kNone},
                               {"a_to_b", report->preflight.there},
                               {"b_to_a", report->preflight.back},
                               {"bytes", report->preflight.bytes}};
    document["in_host"] = report->in_host;
    document["notes"] = report->notes;
    document["verdict"] = finding_json(verdict(*report));
  }
  return document;
}

}  // namespace wherry::bypass
