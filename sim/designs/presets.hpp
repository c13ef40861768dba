// SPDX-License-Identifier: Apache-2.0
// The parameters of two DMA engines and their drivers: XDMA as paper 000 used it, and ours. docs/design/designs.md has
// the same numbers as a table, each with its mark: given (by whom), chosen, assumed or fitted.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/dma/host_link.hpp"

namespace wherry::sim::designs {

enum class Flow : std::uint8_t { kToCard, kToHost };
enum class Notice : std::uint8_t { kPolled, kInterrupt };

/// Times are in ns, cycles are of 4 ns (250 MHz), sizes are in bytes.
struct EnginePreset {
  std::string_view name;
  std::uint32_t piece = 512;  ///< of a read request to the host, and of a burst to the card's memory
  /// How many pieces of a channel may be in flight. To the card: from the read request until the memory's answer. To
  /// the host: from the read of the card's memory until the last write is issued to the link (PG195 4.1, "H2C Channel",
  /// "C2H Channel").
  std::uint32_t to_card_ids = 32, to_host_ids = 16;
  /// Bytes that a channel moves before the turn passes to the next one.
  std::uint32_t to_card_turn = 1024, to_host_turn = 4096;
  std::uint32_t to_host_cycles = 0;                  ///< from a piece's last beat out of the card's memory to the link
  std::uint32_t descriptor_bytes = 4096;             ///< that a descriptor moves, at most
  std::uint32_t fetch = 16, ahead = 32;              ///< descriptors of a read; that a channel holds or awaits, at most
  std::uint64_t run_bytes = std::uint64_t{8} << 20;  ///< that one call hands to the engine, at most
  std::uint32_t mps = 128;                           ///< bytes of a write to the host
  dma::LinkOptions link;
  double interrupt_ns = 0, polled_ns = 0;  ///< of software, between one transfer's end and the next one's doorbell
};

/// XDMA and its driver under Linux, as in the paper.
/// - `to_card_ids`, `to_host_ids`: chosen within PG195 4.1, "PCIe DMA Tab" (2 to 64, 2 to 32; the paper does not state
///   its own). `piece`: assumed, the usual maximum read request. Turns: the guide says "simple round robin", with a
///   size that depends on the maximum payload and the page; 4 KiB to the host and 1 KiB to the card are chosen.
/// - `link.rtt_ns`: fitted to one channel to DDR4 (ma_ddr_h2c_1ch, 10.7 to 10.8 GB/s). `to_host_cycles`: fitted to one
///   channel beside a MicroBlaze (ma_mb_c2h_1ch, 9.4 to 9.5 GB/s), with the slices of CardOptions; without slices,
///   values up to 105 have no effect, since the link is the limit. `interrupt_ns`: fitted, as one value, to
///   ma_bram_h2c_1ch and ma_bram_c2h_1ch (7.54 and 7.77 GB/s at 1 MiB).
/// - `descriptor_bytes`, `run_bytes`, `fetch`: given, AMD's libxdma (a page; 2,048 descriptors; 16 adjacent ones).
/// - `mps`, `link.completion`: chosen, as in docs/design/probe-model.md.
///   `link.extra_down_per_read`: given, from section 3 of the research of
///   probe: an ACK and an UpdateFC.
/// - `polled_ns`: assumed, 6 us less: no interrupt, no work queue and no wake-up. No value is published.
inline constexpr EnginePreset kXdma{
    .name = "xdma",
    .to_host_cycles = 104,
    .fetch = 16,
    .ahead = 64,
    .link = {.rtt_ns = 1'090, .completion = 128, .extra_down_per_read = 16},
    .interrupt_ns = 52'000,
    .polled_ns = 46'000,
};

/// The engine hdl/dma with a driver in user space. Turns, requests, credit and descriptors follow docs/design/dma.md
/// and docs/design/dma-data.md. The host is `link.rtt_ns` away (assumed, 800 ns). A doorbell is a store (assumed, 200
/// ns of software), an interrupt is an eventfd (assumed, 6 us).
inline constexpr EnginePreset kWherry{
    .name = "wherry",
    .to_card_ids = 64,
    .to_host_ids = 32,
    .to_card_turn = 4096,
    .to_host_turn = 4096,
    .to_host_cycles = 10,
    .descriptor_bytes = 1 << 27,
    .fetch = 16,
    .ahead = 128,
    .run_bytes = 1 << 27,
    .link = {.rtt_ns = 800, .completion = 128, .extra_down_per_read = 16},
    .interrupt_ns = 6'200,
    .polled_ns = 200,
};

}  // namespace wherry::sim::designs
