// SPDX-License-Identifier: Apache-2.0
// The time of a read of an idle store when its core is behind a NIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wherry::kv::rtl {

/// Nanoseconds of simulated time.
struct NicLatency {
  double core = 0;  ///< the kv core's own: the request's first beat to the answer's last
  double wire = 0;  ///< the request's last bit at the NIC to the answer's last bit from there
};

/// One read of `value_bytes` after the other, of an idle node of its own; the mean of `reads`. A wrong answer ends the
/// process.
[[nodiscard]] NicLatency measure_nic_latency(std::string_view nic, std::size_t value_bytes, std::uint32_t reads);

/// For some families and sizes, as JSON on standard output.
int print_nic_latency();

}  // namespace wherry::kv::rtl
