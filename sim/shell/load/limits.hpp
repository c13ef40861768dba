// SPDX-License-Identifier: Apache-2.0
// The limits of the shell under load: buffers, requests in flight, sizes of rings. None of these numbers was set to a
// published result. Marks: given (a product guide or OpenNIC's source states it) or bound (no source states it; the
// value and its effect are described). The delays are those of sim/shell/parameters.hpp, as they were fitted without
// load. docs/design/shell-load.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace wherry::sim::shell::load {

/// How a memory-mapped engine's transactions to the host overlap (Parameters::one_at_a_time: the cause of the 4 KiB
/// spike).
enum : std::uint32_t {
  kEngineSerial = 0,      ///< the engine has one transaction under way: the strictest reading, a lower bound
  kDescriptorSerial = 1,  ///< each descriptor has one, different descriptors overlap: all that the spike demands
  kOverlap = 2,           ///< all overlap, as PG302's C2H MM Engine permits
};

struct Limits {
  // Network.
  std::uint32_t adapter_beats = 128;
  std::uint32_t wire_overhead = 24;
  std::uint32_t wire_gbits = 100;
  // QDMA.
  std::uint32_t queues = 4;
  std::uint32_t ring = 1024;
  std::uint32_t c2h_fifo = 512;
  std::uint32_t h2c_buffer = 32768;
  std::uint32_t h2c_requests = 256;
  std::uint32_t memory_buffer = 32768;
  std::uint32_t descriptor_buffer = 16384;
  std::uint32_t prefetch = 0;
  std::uint32_t descriptor_cache = 512;
  std::uint32_t completion = 8;
  std::uint32_t interrupts = 1;
  std::uint32_t memory_order = kDescriptorSerial;
  // DataMover.
  std::uint32_t mover_gap = 2;
  std::uint32_t mover_buffer = 16;
  std::uint32_t mover_reads = 64;
  std::uint32_t mover_bytes = 32768;
  // PCIe.
  std::uint32_t link_ahead = 3072;
};

/// A limit, as users see it.
struct Limit {
  std::string_view name;
  std::uint32_t Limits::* member;
  std::string_view unit;
  std::string_view mark;  ///< given or bound
  std::string_view source;
};
[[nodiscard]] std::span<const Limit> limits() noexcept;

}  // namespace wherry::sim::shell::load
