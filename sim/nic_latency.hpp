// SPDX-License-Identifier: Apache-2.0
// The latency of a read from an idle store whose core is behind a NIC.
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

/// Makes `reads` reads of `value_bytes`, one after the other, at an idle node of its own. Returns the means. A wrong
/// answer ends the process.
[[nodiscard]] NicLatency measure_nic_latency(std::string_view nic, std::size_t value_bytes, std::uint32_t reads);

/// Prints the latencies of some families and sizes, as JSON on standard output.
int print_nic_latency();

}  // namespace wherry::kv::rtl
