// SPDX-License-Identifier: Apache-2.0
#include "sim/card_lister.hpp"

#include <span>

#include "kv/generated/registers.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr std::size_t kLineBytes = kWays * WayHeader::kBytes;
/// With the policy "accept", a write is acknowledged while it waits for memory: for at most 32 others of 33 beats each
/// (kv_jobs, kv_value_write) on one channel, and for memory's answer. This takes less than half of kSettle.
constexpr Cycles kSettle = 4096;

}  // namespace

void CardLister::settle() { core_.run(kSettle); }

void CardLister::list(std::uint32_t first, std::uint32_t buckets, std::vector<std::uint64_t>& keys) {
  const std::uint64_t base =
      core_.read(registers::line_base_offset(0)) | std::uint64_t{core_.read(registers::line_base_offset(1))} << 32;
  Bytes lines(buckets * kLineBytes);
  memory_.read(base + std::uint64_t{first} * kLineBytes, lines);
  for (std::size_t at = 0; at < lines.size(); at += WayHeader::kBytes) {
    const WayHeader way = WayHeader::unpack(std::span(lines).subspan(at).first<WayHeader::kBytes>());
    if (way.version != 0) keys.push_back(way.key);
  }
}

}  // namespace wherry::kv::rtl
