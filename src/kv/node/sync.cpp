// SPDX-License-Identifier: Apache-2.0
// How a returning node fetches table and lanes: docs/design/kv-protocol.md, section 10.
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

/// In a new epoch, other leaders must be asked. Data that have already arrived stay: they were committed.
void Node::restart_sync() {
  for (BucketSync::Fetch& fetch : bucket_sync_.fetches) {
    fetch.due = fetch.tag = fetch.tries = 0;
    if (fetch.missing == 0 || !leads(fetch.bucket % kSlots)) continue;
    fetch.missing = 0;
    --bucket_sync_.incomplete;
  }
  for (LaneSync::Fetch& fetch : lane_sync_.fetches) {
    fetch.due = fetch.tag = fetch.tries = 0;
    fetch.missing = static_cast<std::uint8_t>(others() & config_.serving);
  }
}

void Node::pump_buckets() {
  BucketSync& sync = bucket_sync_;
  if (sync.incomplete == 0 || epoch16_ == 0) return;
  for (std::uint32_t i = 0; i < sync.fetches.size(); ++i) {
    BucketSync::Fetch& fetch = sync.fetches[i];
    while (fetch.missing == 0 && sync.to_start > 0) {
      fetch = {.bucket = sync.next++, .missing = 0xf};
      --sync.to_start;
      if (!leads(fetch.bucket % kSlots)) break;
      fetch.missing = 0;  // its own word counts
      --sync.incomplete;
    }
    if (fetch.missing == 0) continue;
    if (fetch.due > now_) {
      (void)schedule(fetch.due);
      continue;
    }
    if (fetch.tag == 0)
      fetch.tag = tags_.make(Tags::kSync | i * kWays);
    else
      counters_.retries += static_cast<std::uint32_t>(std::popcount(fetch.missing));
    for (std::uint32_t way = 0; way < kWays; ++way) {
      if (!has(fetch.missing, way)) continue;
      Kv h = header(Kind::fetch);
      h.request = fetch.tag + way;
      h.key = location_of(fetch.bucket, way);
      send_node(config_.leaders[fetch.bucket % kSlots], h);
    }
    fetch.due = retry_at(fetch.tries);
    if (fetch.tries < kMostDoublings) ++fetch.tries;
  }
}

bool Node::on_sync_entry(const Message& m, bool present) {
  const std::uint32_t index = Tags::index(m.header.request) & ~Tags::kSync;
  const std::uint32_t way = index % kWays;
  if (index / kWays >= bucket_sync_.fetches.size()) return true;
  BucketSync::Fetch& fetch = bucket_sync_.fetches[index / kWays];
  if (!has(fetch.missing, way) || fetch.tag == 0 || fetch.tag + way != m.header.request) return true;
  if (config_.leaders[fetch.bucket % kSlots] != m.header.node) return false;
  const Location at = location_of(fetch.bucket, way);
  if (notes_.is_leftover(at))
    adopt(at, m, present);
  else if (version_newer(m.header.version, table_.way(at).version))
    table_.store(at, m.header.key, m.header.version, present, m.value);
  fetch.missing = static_cast<std::uint8_t>(fetch.missing & ~(1U << way));
  if (fetch.missing != 0) return true;
  --bucket_sync_.incomplete;
  pump_buckets();
  return true;
}

void Node::pump_lanes() {
  LaneSync& sync = lane_sync_;
  const auto serving = static_cast<std::uint8_t>(others() & config_.serving);
  if (sync.incomplete == 0 || epoch16_ == 0 || serving == 0) return;
  for (std::uint32_t i = 0; i < sync.fetches.size(); ++i) {
    LaneSync::Fetch& fetch = sync.fetches[i];
    if (!fetch.used && sync.to_start > 0) {
      fetch = {.lane = static_cast<std::uint16_t>(sync.next++), .missing = serving, .used = true};
      --sync.to_start;
    }
    if (!fetch.used) continue;
    if (fetch.due > now_) {
      (void)schedule(fetch.due);
      continue;
    }
    if (fetch.tag == 0)
      fetch.tag = tags_.make(i);
    else
      counters_.retries += static_cast<std::uint32_t>(std::popcount(fetch.missing));
    // The frame has the form of a client's request, so it does not name the sender.
    const Kv h{
        .kind = static_cast<std::uint8_t>(Kind::lane), .epoch = epoch16_, .client = fetch.lane, .request = fetch.tag};
    for (unsigned node = 0; node < kMaxNodes; ++node)
      if (has(fetch.missing, node)) send_node(node, h);
    fetch.due = retry_at(fetch.tries);
    if (fetch.tries < kMostDoublings) ++fetch.tries;
  }
}

void Node::on_lane_record(unsigned sender, const Kv& h) {
  const auto detail = ReplyDetail::unpack(std::array{static_cast<std::byte>(h.detail)});
  const std::uint32_t index = Tags::index(h.request);
  if (index >= lane_sync_.fetches.size() || static_cast<Status>(detail.status) >= Status::bad_lane) return;
  LaneSync::Fetch& fetch = lane_sync_.fetches[index];
  if (!fetch.used || fetch.tag == 0 || fetch.tag != h.request || !has(fetch.missing, sender)) return;
  LaneRecord& mine = lanes_[fetch.lane];
  const LaneRecord theirs{
      .request = static_cast<std::uint32_t>(h.key), .version = h.version, .status = static_cast<Status>(detail.status)};
  if (!theirs.empty() && (mine.empty() || newer(theirs.request, mine.request))) mine = theirs;
  fetch.missing = static_cast<std::uint8_t>(fetch.missing & ~(1U << sender));
  if (fetch.missing != 0) return;
  fetch.used = false;
  --lane_sync_.incomplete;
  pump_lanes();
}

}  // namespace wherry::kv
