// SPDX-License-Identifier: Apache-2.0
// Every number of the shell's model: value, unit, source and mark, for all three cases of thesis 003. Marks are those
// of sim/pcie/parameters.hpp: given, chosen, fitted. docs/design/shell-model.md explains them.
//
// Fitted numbers were set only to the values of 128 and 2048 bytes in Tables 5.1 to 5.6, by
// python/wherry/probe/shell/fitting.py. The other sizes are held out as a test.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::sim::shell {

inline constexpr std::uint32_t kBeatBytes = 64;  ///< given: AXI4-Stream and AXI4 of 512 bit (OpenNIC's README; PG302)
inline constexpr std::uint32_t kPageBytes =
    4096;  ///< given: which no AXI burst (AXI4 A3.4.1) and no TLP (PCIe 2.2.7) leaves
inline constexpr std::uint32_t kRequestBytes = 16;  ///< given: descriptor before a request's data (PG213, RQ, 512 bit)
inline constexpr std::uint32_t kCompletionBytes = 12;  ///< given: descriptor before a completion's data (PG213, RC)

/// Stores between the DataMover and the network in case 2, besides the adapter's.
enum : std::uint32_t { kNoStore = 0, kShellStore = 1, kCmacStore = 2 };

struct Parameters {
  // PCIe. Gen3 x16 is given (OpenNIC's vivado_ip/qdma_no_sriov_au55c.tcl).
  std::uint32_t flight = 66;
  std::uint32_t mps = 512;
  std::uint32_t mrrs = 1024;
  std::uint32_t completion = 512;
  // The packet adapter and the box.
  std::uint32_t rx = 12;
  std::uint32_t tx = 12;
  std::uint32_t box = 4;
  std::uint32_t second_store = kCmacStore;
  // QDMA.
  std::uint32_t h2c_stream = 78;
  std::uint32_t c2h_stream = 130;
  std::uint32_t h2c_memory = 100;
  std::uint32_t c2h_memory = 93;
  std::uint32_t one_at_a_time = 1;
  // DataMover, SmartConnect, HBM.
  std::uint32_t mover_write = 4;
  std::uint32_t mover_read = 10;
  std::uint32_t mover_read_route = 60;
  std::uint32_t qdma_write_route = 6;
  std::uint32_t hbm_read = 68;
  std::uint32_t hbm_write = 39;
  // Where the buffers begin within a page.
  std::uint32_t card_offset = 1024;
  std::uint32_t host_offset = 2048;
};

/// A parameter, as users see it.
struct Parameter {
  std::string_view name;
  std::uint32_t Parameters::* member;
  std::string_view unit;
  std::string_view mark;    ///< chosen or fitted; what is given is no parameter
  std::string_view source;  ///< the table it was set to, or why it was chosen
  std::uint32_t least, most;
};
[[nodiscard]] std::span<const Parameter> parameters() noexcept;

/// Sets the parameter of "name=value". Errors: no such parameter, not a number, or out of range.
[[nodiscard]] Status set(Parameters& parameters, std::string_view assignment);

}  // namespace wherry::sim::shell
