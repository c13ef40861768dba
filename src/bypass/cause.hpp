// SPDX-License-Identifier: Apache-2.0
// Reasons why a NIC and a card cannot work together, or not well. Each has a sentence and an exit status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::bypass {

/// The number is the exit status of `wherry bypass`. New causes are appended and never renumbered, because scripts
/// compare them. As in every program, 1 means failed and 2 wrong command line.
enum class Cause : std::uint8_t {
  kNone = 0,
  kNoHardware = 3,        ///< no NIC that we drive, or no card
  kNoCommonPort = 10,     ///< the root complex lies between NIC and card
  kAcsRedirect = 11,      ///< a port of the switch sends peer-to-peer traffic to the root complex
  kBar = 12,              ///< the card's or the NIC's memory cannot be reached from the other
  kGroup = 13,            ///< others are in the IOMMU group
  kReservedAddress = 14,  ///< the address that must be mapped is reserved
  kNoIommu = 15,          ///< there is no IOMMU, which VFIO needs
  kReadsDead = 20,        ///< the NIC's reads of the card's memory are not answered
  kWritesDead = 21,       ///< the NIC's writes do not arrive in the card's memory
  kWrongData = 22,        ///< something else arrived
  kTailsDead = 23,        ///< the card's writes do not arrive at the NIC
  kLoopback = 24,         ///< the NIC sent nothing in loopback: no verdict on the path
  kCardMemory = 25,       ///< the host cannot write and read the card's memory
  kEngineDead = 26,       ///< the card's DMA engine, which rings in the host's memory need, does not copy
};

/// The cause's name for programs, such as "acs redirect" or "reads dead".
[[nodiscard]] constexpr std::string_view name_of(Cause cause) noexcept {
  switch (cause) {
    case Cause::kNone:
      return "none";
    case Cause::kNoHardware:
      return "no_hardware";
    case Cause::kNoCommonPort:
      return "no_common_port";
    case Cause::kAcsRedirect:
      return "acs_redirect";
    case Cause::kBar:
      return "bar";
    case Cause::kGroup:
      return "group";
    case Cause::kReservedAddress:
      return "reserved_address";
    case Cause::kNoIommu:
      return "no_iommu";
    case Cause::kReadsDead:
      return "reads_dead";
    case Cause::kWritesDead:
      return "writes_dead";
    case Cause::kWrongData:
      return "wrong_data";
    case Cause::kTailsDead:
      return "tails_dead";
    case Cause::kLoopback:
      return "loopback";
    case Cause::kCardMemory:
      return "card_memory";
    case Cause::kEngineDead:
      return "engine_dead";
  }
  return "?";
}

/// Returns whether rings in the host's memory would help, because direct traffic between NIC and card fails.
[[nodiscard]] constexpr bool is_of_peer_to_peer(Cause cause) noexcept {
  switch (cause) {
    case Cause::kNoCommonPort:
    case Cause::kAcsRedirect:
    case Cause::kReservedAddress:
    case Cause::kReadsDead:
    case Cause::kWritesDead:
    case Cause::kWrongData:
    case Cause::kTailsDead:
      return true;
    default:
      return false;
  }
}

struct Finding {
  Cause cause = Cause::kNone;
  std::string what;    ///< one sentence
  std::string remedy;  ///< one sentence; empty: none is known
};
using Findings = std::vector<Finding>;

}  // namespace wherry::bypass
