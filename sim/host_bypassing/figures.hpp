// SPDX-License-Identifier: Apache-2.0
// The results of host_bypassing_bench, as rows of JSON. docs/reference/bench-bypass.md names every key.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/host_bypassing/testbed.hpp"

namespace wherry::sim::host_bypassing {

/// Two readings of what the paper leaves open about its NIC and its core.
enum class Reading : std::uint8_t {
  /// sim/nic's 82599 as it is, with any number of descriptor reads at once. The FPGA stores a packet between handlers.
  kPlain,
  /// Only one transmit descriptor read at a time; handlers joined; rx_ns and tx_ns fitted in this testbed.
  kOneFetch,
};
[[nodiscard]] const char* name_of(Reading reading) noexcept;
/// rx_ns and tx_ns of kOneFetch, fitted to 3.37 and 4.56 us one way (hb_s4_rx_latency_avg, hb_s4_tx_latency_avg).
inline constexpr std::uint16_t kOneFetchRxNs = 2640, kOneFetchTxNs = 1251;
[[nodiscard]] TestbedOptions with(Reading reading, TestbedOptions options);

/// Bytes without FCS of the test packets, and of the TCP test's packets (IV-A, Table I).
inline constexpr std::uint32_t kPacket = 300, kLongest = 1514;
/// Gbit/s of frames with FCS, without preamble and gap, at `load_per_mille` of 10 Gbit/s line rate.
[[nodiscard]] double rate_gbps(std::uint32_t load_per_mille) noexcept;

struct Effort {
  bool quick = false;
  std::function<void(const std::string&)> say;  ///< a line of progress
};

nlohmann::json constants();
/// Fig. 7: a summary of each scenario, and slices of time.
void latency(const Effort& effort, nlohmann::json& document);
/// Fig. 8: latency and loss against rate.
void rates(const Effort& effort, nlohmann::json& document);
/// Fig. 9, IV-D: overload with and without flow control.
void overload(const Effort& effort, nlohmann::json& document);
/// Table I.
void tcp(const Effort& effort, nlohmann::json& document);
/// Table II.
void batching(const Effort& effort, nlohmann::json& document);

}  // namespace wherry::sim::host_bypassing
