// SPDX-License-Identifier: Apache-2.0
// The intervals of a DDR4-2400 memory of 64 bits, in clocks of the memory (nCK). Sources: JEDEC JESD79-4B (section and
// table with each), and Micron's datasheet "8Gb: x4, x8, x16 DDR4 SDRAM" for MT40A1G8, speed bin -083E (16-16-16):
// tables "DDR4-2400 Speed Bins" and "Electrical Characteristics and AC Timing Parameters". docs/design/card-memory.md.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wherry::sim::memory {

/// Clock period of DDR4-2400, ps, as JEDEC truncates it (JESD79-4B, 13.5 "Rounding Algorithms").
inline constexpr std::uint64_t kClockPs = 833;

/// Clocks for a minimum of `ps`, with JEDEC's rounding: it ignores 2.6 % of a clock, since kClockPs is truncated.
constexpr std::uint32_t clocks(std::uint64_t ps) {
  return static_cast<std::uint32_t>((ps * 1000 / kClockPs + 974) / 1000);
}

/// All values are in clocks.
struct Ddr4Timing {
  std::uint32_t cl = 16;               ///< read command to data: CL, speed bin -083E at 0.833 ns
  std::uint32_t cwl = 12;              ///< write command to data: CWL, the lower of 12 and 16 that the bin allows
  std::uint32_t burst = 4;             ///< BL8: eight transfers (JESD79-4B 4.20)
  std::uint32_t rcd = clocks(13'320);  ///< 16: ACT to RD or WR, speed bin
  std::uint32_t rp = clocks(13'320);   ///< 16: PRE to ACT, speed bin
  std::uint32_t ras = clocks(32'000);  ///< 39: ACT to PRE, speed bin
  std::uint32_t rc = clocks(32'000 + 13'320);         ///< 55: ACT to ACT of a bank, tRAS + tRP
  std::uint32_t wr = clocks(15'000);                  ///< 18: end of write data to PRE
  std::uint32_t rtp = std::max(4U, clocks(7'500));    ///< 9: RD to PRE, max(4 nCK, 7.5 ns)
  std::uint32_t ccd_s = 4;                            ///< column command to column command, 4 nCK
  std::uint32_t ccd_l = std::max(5U, clocks(5'000));  ///< 6: max(5 nCK, 5 ns)
  std::uint32_t rrd_s = std::max(4U, clocks(3'300));  ///< 4: ACT to ACT, pages of 1 KiB (x8), max(4 nCK, 3.3 ns)
  std::uint32_t rrd_l = std::max(4U, clocks(4'900));  ///< 6: max(4 nCK, 4.9 ns)
  std::uint32_t faw = std::max(20U, clocks(21'000));  ///< 26: window of four ACTs, 1 KiB, max(20 nCK, 21 ns)
  std::uint32_t wtr_s = std::max(2U, clocks(2'500));  ///< 3: end of write data to RD, max(2 nCK, 2.5 ns)
  std::uint32_t wtr_l = std::max(4U, clocks(7'500));  ///< 9: max(4 nCK, 7.5 ns)
  /// RD to WR: the bus turns round after the read's data, with 2 clocks for a preamble of 1 tCK and the gap (JESD79-4B
  /// 4.24.3: CL + BL/2 + 2 - CWL).
  std::uint32_t rtw = 16 + 4 + 2 - 12;
  std::uint32_t rfc = clocks(350'000);  ///< 421: REF to the next command, 8 Gbit, tRFC1
  std::uint32_t refi = 9360;            ///< mean distance of refreshes: 7.8 us up to 85 C; 1200 MHz
};

inline constexpr Ddr4Timing kDdr4_2400{};

/// Eight MT40A1G8, x8: 64 bits, 8 GiB.
inline constexpr std::uint32_t kBankGroups = 4;
inline constexpr std::uint32_t kBanksOfAGroup = 4;
inline constexpr std::uint32_t kBanks = kBankGroups * kBanksOfAGroup;
inline constexpr std::uint32_t kRows = 65'536;
inline constexpr std::uint32_t kColumns = 128;  ///< beats of 64 bytes in a row of all eight chips: 8 KiB
inline constexpr std::uint64_t kDdr4Bytes = std::uint64_t{kBanks} * kRows * kColumns * 64;

}  // namespace wherry::sim::memory
