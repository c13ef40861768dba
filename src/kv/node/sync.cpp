// SPDX-License-Identifier: Apache-2.0
// A node that returned fetches table and lanes: docs/kv-protocol.md, section 10.
#include <algorithm>

#include "kv/node/node.hpp"

namespace wherry::kv {

void Node::start_bucket_sync(std::uint32_t count) {
  const std::uint64_t buckets = std::uint64_t{1} << bucket_bits_;
  const std::uint64_t room = buckets > sync_from_ ? buckets - sync_from_ : 0;
  const auto all = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, room));
  bucket_sync_ = {.next = sync_from_, .to_start = all, .incomplete = all};
  pump_buckets();
}

void Node::start_lane_sync(std::uint32_t count) {
  const auto all = static_cast<std::uint32_t>(std::min<std::size_t>(count, lanes_.count()));
  lane_sync_ = {.to_start = all, .incomplete = all};
  pump_lanes();
}

/// In a new epoch there are other leaders to ask; what has come was committed.
void Node::restart_sync() {
  for (BucketSync::Slot& slot : bucket_sync_.slots) {
    slot.due = slot.tag = slot.tries = 0;
    if (slot.missing == 0 || !leads(slot.bucket % kSlots)) continue;
    slot.missing = 0;
    --bucket_sync_.incomplete;
  }
  for (LaneSync::Slot& slot : lane_sync_.slots) {
    slot.due = slot.tag = slot.tries = 0;
    slot.missing = static_cast<std::uint8_t>(others() & config_.serving);
  }
}

void Node::pump_buckets() {
  BucketSync& sync = bucket_sync_;
  if (sync.incomplete == 0 || epoch16_ == 0) return;
  for (std::uint32_t i = 0; i < sync.slots.size(); ++i) {
    BucketSync::Slot& slot = sync.slots[i];
    while (slot.missing == 0 && sync.to_start > 0) {
      slot = {.bucket = sync.next++, .missing = 0xf};
      --sync.to_start;
      if (!leads(slot.bucket % kSlots)) break;
      slot.missing = 0;  // its own word counts
      --sync.incomplete;
    }
    if (slot.missing == 0) continue;
    if (slot.due > now_) {
      (void)schedule(slot.due);
      continue;
    }
    if (slot.tag == 0)
      slot.tag = tags_.make(Tags::kSync | i * kWays);
    else
      counters_.retries += static_cast<std::uint32_t>(std::popcount(slot.missing));
    for (std::uint32_t way = 0; way < kWays; ++way) {
      if (!has(slot.missing, way)) continue;
      Kv h = header(Kind::fetch);
      h.request = slot.tag + way;
      h.key = location_of(slot.bucket, way);
      send_node(config_.leaders[slot.bucket % kSlots], h);
    }
    slot.due = retry_at(slot.tries);
    if (slot.tries < kMostDoublings) ++slot.tries;
  }
}

bool Node::on_sync_entry(const Message& m, bool present) {
  const std::uint32_t index = Tags::index(m.header.request) & ~Tags::kSync;
  const std::uint32_t way = index % kWays;
  if (index / kWays >= bucket_sync_.slots.size()) return true;
  BucketSync::Slot& slot = bucket_sync_.slots[index / kWays];
  if (!has(slot.missing, way) || slot.tag == 0 || slot.tag + way != m.header.request) return true;
  if (config_.leaders[slot.bucket % kSlots] != m.header.node) return false;
  const Location at = location_of(slot.bucket, way);
  if (notes_.is_leftover(at))
    adopt(at, m, present);
  else if (version_newer(m.header.version, table_.way(at).version))
    table_.store(at, m.header.key, m.header.version, present, m.value);
  slot.missing = static_cast<std::uint8_t>(slot.missing & ~(1U << way));
  if (slot.missing != 0) return true;
  --bucket_sync_.incomplete;
  pump_buckets();
  return true;
}

void Node::pump_lanes() {
  LaneSync& sync = lane_sync_;
  const auto serving = static_cast<std::uint8_t>(others() & config_.serving);
  if (sync.incomplete == 0 || epoch16_ == 0 || serving == 0) return;
  for (std::uint32_t i = 0; i < sync.slots.size(); ++i) {
    LaneSync::Slot& slot = sync.slots[i];
    if (!slot.used && sync.to_start > 0) {
      slot = {.lane = static_cast<std::uint16_t>(sync.next++), .missing = serving, .used = true};
      --sync.to_start;
    }
    if (!slot.used) continue;
    if (slot.due > now_) {
      (void)schedule(slot.due);
      continue;
    }
    if (slot.tag == 0)
      slot.tag = tags_.make(i);
    else
      counters_.retries += static_cast<std::uint32_t>(std::popcount(slot.missing));
    // A client's request: it says nothing of the sender.
    const Kv h{
        .kind = static_cast<std::uint8_t>(Kind::lane), .epoch = epoch16_, .client = slot.lane, .request = slot.tag};
    for (unsigned node = 0; node < kMaxNodes; ++node)
      if (has(slot.missing, node)) send_node(node, h);
    slot.due = retry_at(slot.tries);
    if (slot.tries < kMostDoublings) ++slot.tries;
  }
}

void Node::on_lane_record(unsigned sender, const Kv& h) {
  const auto detail = ReplyDetail::unpack(std::array{static_cast<std::byte>(h.detail)});
  const std::uint32_t index = Tags::index(h.request);
  if (index >= lane_sync_.slots.size() || static_cast<Status>(detail.status) >= Status::bad_lane) return;
  LaneSync::Slot& slot = lane_sync_.slots[index];
  if (!slot.used || slot.tag == 0 || slot.tag != h.request || !has(slot.missing, sender)) return;
  LaneRecord& mine = lanes_[slot.lane];
  const LaneRecord theirs{
      .request = static_cast<std::uint32_t>(h.key), .version = h.version, .status = static_cast<Status>(detail.status)};
  if (!theirs.empty() && (mine.empty() || newer(theirs.request, mine.request))) mine = theirs;
  slot.missing = static_cast<std::uint8_t>(slot.missing & ~(1U << sender));
  if (slot.missing != 0) return;
  slot.used = false;
  --lane_sync_.incomplete;
  pump_lanes();
}

}  // namespace wherry::kv
