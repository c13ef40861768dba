// SPDX-License-Identifier: Apache-2.0
#include "sim/softcore/bus_trace.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

namespace wherry::sim::softcore {
namespace {

// The file: "WBT2", the clock as four bytes, then two LEB128 numbers for each access (7 bits a byte, lowest first, top
// bit set in all bytes but the last). They are the cycles since the access before, and (distance of the address from
// the one before, in words, folded: 0, -1, 1, -2 as 0, 1, 2, 3) * 4 + kind.
constexpr std::array<std::uint8_t, 4> kMagic{'W', 'B', 'T', '2'};
constexpr std::size_t kHeader = 8;

void put(std::vector<std::uint8_t>& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::uint8_t>(value | 0x80));
  to.push_back(static_cast<std::uint8_t>(value));
}

struct Reader {
  std::span<const std::uint8_t> bytes;
  std::size_t at = kHeader;

  /// False: the bytes end within a number, or the number has more than 63 bits or a byte too many.
  bool take(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; at < bytes.size() && shift < 63; shift += 7) {
      const std::uint8_t byte = bytes[at++];
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return byte != 0 || shift == 0;
    }
    return false;
  }
};

std::uint64_t fold(std::int64_t value) {
  return value < 0 ? 2 * (~static_cast<std::uint64_t>(value)) + 1 : 2 * static_cast<std::uint64_t>(value);
}
std::int64_t unfold(std::uint64_t value) {
  return (value & 1) != 0 ? static_cast<std::int64_t>(~(value >> 1)) : static_cast<std::int64_t>(value >> 1);
}

constexpr std::int64_t kMostWords = std::int64_t{1} << 48;

}  // namespace

std::vector<std::uint8_t> BusTrace::encode() const {
  std::vector<std::uint8_t> bytes(kMagic.begin(), kMagic.end());
  for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(clock_hz >> 8 * i));
  BusAccess before;
  for (const BusAccess& access : accesses) {
    put(bytes, access.cycle - before.cycle);
    const auto words = static_cast<std::int64_t>(access.address / 4) - static_cast<std::int64_t>(before.address / 4);
    put(bytes, fold(words) * 4 + static_cast<std::uint64_t>(access.kind));
    before = access;
  }
  return bytes;
}

Result<BusTrace> BusTrace::decode(std::span<const std::uint8_t> bytes) {
  const auto refuse = [](std::size_t at, const char* why) {
    return Status(StatusCode::kProtocol, fmt::format("bus trace, byte {}: {}", at, why));
  };
  if (bytes.size() < kHeader || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin()))
    return refuse(0, "does not begin with WBT2 and a clock");
  BusTrace trace;
  trace.clock_hz = 0;
  for (unsigned i = 0; i < 4; ++i) trace.clock_hz |= std::uint32_t{bytes[4 + i]} << 8 * i;
  if (trace.clock_hz == 0) return refuse(4, "the clock is 0 Hz");
  Reader reader{bytes};
  BusAccess access;
  std::int64_t word = 0;
  while (reader.at < bytes.size()) {
    const std::size_t start = reader.at;
    std::uint64_t cycles = 0, rest = 0;
    if (!reader.take(cycles) || !reader.take(rest)) return refuse(start, "a number is cut short or too long");
    access.cycle += cycles;
    word += unfold(rest >> 2);
    if (access.cycle >> 62 != 0 || word < 0 || word > kMostWords) return refuse(start, "out of range");
    access.address = static_cast<std::uint64_t>(word) * 4;
    access.kind = static_cast<BusKind>(rest & 3);
    if (access.address % access.bytes() != 0) return refuse(start, "a line that begins within a line");
    trace.accesses.push_back(access);
  }
  return trace;
}

TracePlayer::TracePlayer(const BusTrace& trace, std::uint64_t bus_hz, std::uint64_t base, std::uint64_t bytes,
                         std::size_t first)
    : trace_(trace), bus_hz_(bus_hz), base_(base), bytes_(bytes) {
  out_.r_ready = out_.b_ready = true;
  if (first < trace.accesses.size()) {
    next_ = first;
    start_cycle_ = first == 0 ? 0 : trace.accesses[first - 1].cycle;
  }
  begin();
}

void TracePlayer::begin() {
  if (busy_ || trace_.accesses.empty()) return;
  const BusAccess& access = trace_.accesses[next_];
  if ((now_ - start_) * trace_.clock_hz < (access.cycle - start_cycle_) * bus_hz_) return;
  const bool write = access.writes();
  const std::uint64_t inside = access.address & (bytes_ - 1) & ~std::uint64_t{access.bytes() - 1};
  const memory::AxiAddress address{base_ + inside, 0, static_cast<std::uint32_t>(std::countr_zero(access.bytes())), 0};
  busy_ = true;
  out_.ar_valid = !write;
  out_.aw_valid = out_.w_valid = write;
  (write ? out_.aw : out_.ar) = address;
  out_.w_last = true;
  out_.w_strobes = memory::Strobes{0xf} << address.address % memory::kBeatBytes;
  if (++next_ == trace_.accesses.size()) {
    next_ = 0;
    start_ = now_;
    start_cycle_ = 0;
    ++rounds_;
  }
}

void TracePlayer::step(const memory::AxiAnswer& in) {
  ++now_;
  if (busy_) ++waited_;
  if (in.ar_ready) out_.ar_valid = false;
  if (in.aw_ready) out_.aw_valid = false;
  if (in.w_ready) out_.w_valid = false;
  if (busy_ && (in.r_valid || in.b_valid)) {
    (in.r_valid ? reads_ : writes_)++;
    busy_ = false;
  }
  begin();
}

}  // namespace wherry::sim::softcore
