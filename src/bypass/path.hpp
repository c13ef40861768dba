// SPDX-License-Identifier: Apache-2.0
// What the PCI topology says about the path between a NIC and a card. It moves no data, so "nothing found" does not yet
// mean "works" (docs/guide/bypass-host.md). Pure functions of a PciTree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bypass/cause.hpp"
#include "pci/tree.hpp"

namespace wherry::bypass {

/// The way that a request of the NIC takes to the card.
enum class Route : std::uint8_t {
  kDirect,       ///< by a switch that both are below
  kRedirected,   ///< the same switch sends it up to the root complex, and it comes down again
  kRootComplex,  ///< there is no such switch
};

struct PortReport {
  pci::BusAddress at;
  std::optional<pci::PortType> type;  ///< none: not readable without root
  bool acs_known = false;             ///< its extended capabilities could be read
  std::optional<pci::Acs> acs;        ///< none: it has none, or acs_known is false
};

struct PathReport {
  pci::BusAddress nic, card;
  Route route = Route::kRootComplex;
  std::optional<pci::BusAddress> common_port;  ///< the lowest port that both are below
  std::vector<PortReport> ports;               ///< between the common port and the two, the NIC's first
  Findings findings;                           ///< the one that decides first
  std::vector<std::string> unknown;            ///< sentences: what could not be read, and by whom it can be
};

struct PathOptions {
  unsigned nic_bar = 0;                   ///< with the NIC's registers
  unsigned card_bar = 2;                  ///< with rings and slots
  std::uint64_t card_bytes = 8ULL << 20;  ///< that the card's BAR must have
};

/// kInvalidArgument: both are the same function; kNotFound: the tree does not contain them.
Result<PathReport> judge_path(const pci::PciTree& tree, pci::BusAddress nic, pci::BusAddress card,
                              const PathOptions& options = {});

/// A port's name for the kernel's command line, such as "0000:00:01.0/00.0/02.0". The name stays valid if bus numbers
/// change. It consists of the root port, then device and function on each bus below
/// (Documentation/admin-guide/kernel-parameters.txt, pci=disable_acs_redir).
std::string kernel_name_of_port(const pci::PciTree& tree, pci::BusAddress port);
/// The names of the bits, such as "RR CR UF"; "-" if no bit is set.
std::string acs_text(std::uint16_t bits);

}  // namespace wherry::bypass
