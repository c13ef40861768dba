// SPDX-License-Identifier: Apache-2.0
// The network functions behind the card's bypass core (docs/design/bypass-functions.md). Registers select the running
// function (spec/bypass_functions_registers.toml). One thread may call. start() and configure() wait for the card,
// never for the NIC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bypass/card.hpp"
#include "wherry/status.hpp"

namespace wherry::bypass {

/// The first registers of the functions (after the core's registers) and of kv_core
/// (hdl/bypass/functions/bypass_functions_pkg.sv).
inline constexpr std::uint32_t kFunctionRegisters = 0x8000, kKvRegisters = 0xC000;
/// Number of bytes at the start of a frame that the filter compares.
inline constexpr std::size_t kFilteredBytes = 64;

enum class Function : std::uint8_t {
  kNone,       ///< every frame of a stream is dropped, and counted
  kEcho,       ///< ARP, ping and UDP echo are answered
  kReflect,    ///< every frame goes back with its Ethernet addresses swapped
  kFilter,     ///< the same for frames that rules let pass
  kGenerator,  ///< sends frames, and checks those that come back
  kChecker,    ///< checks the frames of another card's generator
  kElsewhere,  ///< frames go to the function at m_rx, a user's
};
[[nodiscard]] std::string_view name_of(Function function) noexcept;
/// The names of all functions, in the order of their numbers.
[[nodiscard]] std::vector<std::string> function_names();
[[nodiscard]] std::optional<Function> function_of(std::string_view name) noexcept;

/// The bits of a frame's first bytes to compare, and the values that they must have.
struct FilterRule {
  bool pass = false;
  std::array<std::uint8_t, kFilteredBytes> match{}, mask{};
};
/// Parses a rule such as "pass:udp:7" or "drop:arp": pass or drop, then all, arp, ip, icmp, tcp or udp. tcp and udp
/// take a destination port. Matches only IPv4 without options, and only a datagram's first fragment. kInvalidArgument.
Result<FilterRule> parse_filter_rule(std::string_view text);

using EthernetAddress = std::array<std::uint8_t, 6>;
/// Parses an address like "02:00:00:00:00:01". kInvalidArgument.
Result<EthernetAddress> parse_ethernet_address(std::string_view text);
/// Parses an address like "10.0.0.2"; the first byte becomes the highest. kInvalidArgument.
Result<std::uint32_t> parse_ipv4_address(std::string_view text);

struct GeneratorSetup {
  EthernetAddress to{};
  std::uint32_t bytes = 60;             ///< of a frame, without FCS: 60 to 9728
  std::uint32_t interval = 16 * 65536;  ///< cycles from one frame to the next, in 1/65536
  std::uint32_t count = 0;              ///< frames; 0: without an end
};

struct FunctionSetup {
  Function function = Function::kNone;
  std::optional<std::uint32_t> ip;  ///< of echo
  std::uint16_t udp_port = 7;       ///< that echo answers (RFC 862)
  std::vector<FilterRule> rules;    ///< the first that matches decides; a frame that none matches is dropped
  GeneratorSetup generator;
};
/// Call it before taking any device. kInvalidArgument: a setting that the function needs is missing, or the function
/// does not work in place.
Status check_function(const FunctionSetup& setup, bool in_place);

class Functions {
 public:
  /// kNotFound: no functions behind the card's core; kVersionMismatch; kUnavailable: the card does not answer.
  static Result<Functions> open(CardAccess& access);

  /// Stops the running function, writes all settings of the new one and reads them back, but does not start it. `mac`:
  /// the NIC's address. kUnsupported: the function is not built in; kUnavailable: a register does not hold the value
  /// written.
  Status configure(const FunctionSetup& setup, const EthernetAddress& mac, bool in_place);
  /// Starts the function: it gets frames, and the generator sends. Errors: kUnavailable.
  Status start();
  /// Stops the function: none gets frames any more.
  Status stop();

  /// The running function, according to the registers.
  [[nodiscard]] Function running() const;
  /// All counters, in the order of the register map.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> counters() const;

 private:
  explicit Functions(CardAccess& access) : access_(&access) {}
  [[nodiscard]] std::uint32_t read(std::uint32_t offset) const { return access_->read(kFunctionRegisters + offset); }
  Status write(std::uint32_t offset, std::uint32_t value);
  Status write_rules(const std::vector<FilterRule>& rules);
  Status write_generator(const GeneratorSetup& setup, const EthernetAddress& mac);

  CardAccess* access_;
  std::uint32_t rules_ = 0;  ///< that are built in
  bool has_generator_ = false;
  std::uint32_t receive_ = 0, generator_ = 0;  ///< what start() writes
};

}  // namespace wherry::bypass
