// SPDX-License-Identifier: Apache-2.0
// Maps the registers of docs/reference/kv-registers.md to the node's state.
#include "kv/node/node.hpp"

namespace wherry::kv {
namespace {

using namespace registers;

constexpr std::uint32_t kPeerStride = 16;
constexpr unsigned kPlaceBits = 6;
constexpr unsigned kLeadersInAWord = 8;
constexpr unsigned kFewestBucketBits = 8;  // the slot is a part of the bucket

bool within(std::uint32_t offset, std::uint32_t first, std::uint32_t count) noexcept {
  return offset >= first && offset < first + 4 * count;
}
std::uint32_t low(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value); }
std::uint32_t high(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value >> 32); }
bool is_staged(std::uint32_t offset) noexcept {
  return offset == kNodeOffset || offset == kMembersOffset || offset == kUdpPortOffset ||
         within(offset, leader_offset(0), kLeaderCount) || within(offset, peer_mac_low_offset(0), 4 * kMaxNodes);
}

}  // namespace

std::uint32_t Node::read(std::uint32_t offset) {
  if (is_staged(offset)) return read_staged(offset);
  if (within(offset, line_base_offset(0), 4)) return bases_[(offset - line_base_offset(0)) / 4];
  switch (offset) {
    case kIdOffset:
      return kIdReset;
    case kCoreVersionOffset:
      return kCoreVersionReset;
    case kCapabilityOffset:
      return kCapabilityMaxFollowers.set(0, options_.max_followers) | kCapabilityLaneBits.set(0, options_.lane_bits) |
             kCapabilityPlaceBits.set(0, kPlaceBits) | kCapabilityChannels.set(0, options_.channels) |
             kCapabilityBucketBits.set(0, kMaxBucketBits);
    case kControlOffset:
      return control_;
    case kStateOffset:
      return state();
    case kEpochOffset:
      return epoch_;
    case kRetryCyclesOffset:
      return retry_cycles_;
    case kBucketBitsOffset:
      return bucket_bits_;
    case cycles_offset(0):
      cycles_high_ = high(now_);
      return low(now_);
    case cycles_offset(1):
      return cycles_high_;
    case lease_offset(0):
      return low(lease_);
    case lease_offset(1):
      return high(lease_);
    case kSyncFromOffset:
      return sync_from_;
    case kSyncCountOffset:
      return bucket_sync_.incomplete;
    case kSyncLanesOffset:
      return lane_sync_.incomplete;
    default:
      return read_counter(offset);
  }
}

std::uint32_t Node::state() const noexcept {
  return kStateServing.set(0, serving() ? 1 : 0) | kStateOpened.set(0, opened_ && !fault_ ? 1 : 0) |
         kStateFault.set(0, fault_ ? 1 : 0) | kStateLeftovers.set(0, static_cast<std::uint32_t>(notes_.leftovers())) |
         kStateInFlight.set(0, window_.in_flight());
}

std::uint32_t Node::read_counter(std::uint32_t offset) const noexcept {
  const NodeCounters& c = counters_;
  if (within(offset, replies_offset(0), kRepliesCount)) return c.replies[(offset - replies_offset(0)) / 4];
  if (within(offset, received_offset(0), kReceivedCount)) return c.received[(offset - received_offset(0)) / 4];
  if (within(offset, sent_offset(0), kSentCount)) return c.sent[(offset - sent_offset(0)) / 4];
  switch (offset) {
    case kFramesKvOffset:
      return c.frames_kv;
    case kFramesPassedRxOffset:
      return c.passed_rx;
    case kFramesPassedTxOffset:
      return c.passed_tx;
    case kDroppedChecksumOffset:
      return c.dropped_checksum;
    case kDroppedLengthOffset:
      return c.dropped_length;
    case kDroppedEpochOffset:
      return c.dropped_epoch;
    case kDroppedDuplicateOffset:
      return c.dropped_duplicate;
    case kDroppedSourceOffset:
      return c.dropped_source;
    case kRetriesOffset:
      return c.retries;
    default:
      return 0;  // kDroppedBusyOffset, too: what waits is in the socket
  }
}

std::uint32_t Node::read_staged(std::uint32_t offset) const noexcept {
  if (offset == kNodeOffset) return staged_.node;
  if (offset == kMembersOffset) return kMembersAll.set(0, staged_.members) | kMembersServing.set(0, staged_.serving);
  if (offset == kUdpPortOffset) return staged_.udp_port;
  if (within(offset, leader_offset(0), kLeaderCount)) {
    const std::uint32_t first = (offset - leader_offset(0)) / 4 * kLeadersInAWord;
    std::uint32_t word = 0;
    for (std::uint32_t i = 0; i < kLeadersInAWord; ++i) word |= std::uint32_t{staged_.leaders[first + i]} << 4 * i;
    return word;
  }
  const Endpoint& peer = staged_.peers[(offset - peer_mac_low_offset(0)) / kPeerStride];
  switch (offset % kPeerStride) {
    case 0:
      return low(peer.mac);
    case 4:
      return high(peer.mac);
    case 8:
      return peer.ip;
    default:
      return peer.port;
  }
}

void Node::write(std::uint32_t offset, std::uint32_t value) {
  if (is_staged(offset)) return write_staged(offset, value);
  if (within(offset, line_base_offset(0), 4)) return (void)(bases_[(offset - line_base_offset(0)) / 4] = value);
  switch (offset) {
    case kControlOffset:
      return write_control(value);
    case kEpochOffset:
      return enter(value);
    case kRetryCyclesOffset:
      retry_cycles_ = value;
      return;
    case kBucketBitsOffset:
      if (epoch16_ != 0 || value < kFewestBucketBits || value > kMaxBucketBits || value == bucket_bits_) return;
      bucket_bits_ = value;
      clear_table();
      return;
    case lease_offset(0):
      lease_low_ = value;
      return;
    case lease_offset(1):
      if (!fault_) lease_ = std::uint64_t{value} << 32 | lease_low_;
      return;
    case kSyncFromOffset:
      sync_from_ = value;
      return;
    case kSyncCountOffset:
      return start_bucket_sync(value);
    case kSyncLanesOffset:
      return start_lane_sync(value);
    default:
      return;
  }
}

void Node::write_staged(std::uint32_t offset, std::uint32_t value) noexcept {
  if (offset == kNodeOffset) return (void)(staged_.node = value % kMaxNodes);
  if (offset == kUdpPortOffset) return (void)(staged_.udp_port = static_cast<std::uint16_t>(value));
  if (offset == kMembersOffset) {
    staged_.members = static_cast<std::uint8_t>(kMembersAll.get(value));
    staged_.serving = static_cast<std::uint8_t>(kMembersServing.get(value));
    return;
  }
  if (within(offset, leader_offset(0), kLeaderCount)) {
    const std::uint32_t first = (offset - leader_offset(0)) / 4 * kLeadersInAWord;
    for (std::uint32_t i = 0; i < kLeadersInAWord; ++i)
      staged_.leaders[first + i] = static_cast<std::uint8_t>(value >> 4 * i & 0xf);
    return;
  }
  Endpoint& peer = staged_.peers[(offset - peer_mac_low_offset(0)) / kPeerStride];
  switch (offset % kPeerStride) {
    case 0:
      peer.mac = peer.mac >> 32 << 32 | value;
      return;
    case 4:
      peer.mac = (peer.mac & 0xffffffff) | std::uint64_t{value & 0xffff} << 32;
      return;
    case 8:
      peer.ip = value;
      return;
    default:
      peer.port = static_cast<std::uint16_t>(value);
  }
}

void Node::write_control(std::uint32_t value) {
  control_ = value & (kControlEnable.mask() | kControlAccept.mask());
  if (kControlClearCounters.get(value) != 0) counters_ = {};
  if (kControlClearTable.get(value) != 0 && epoch16_ == 0) clear_table();
}

/// Gives each location a deleted key of its bucket, because frames name a location by its key.
void Node::preset_versions(const std::array<std::uint32_t, kWays>& versions) {
  if (!table_.allocated() && !table_.allocate(bucket_bits_)) return fail();
  std::vector<bool> done(table_.buckets());
  for (std::uint64_t key = 0, missing = done.size(); missing > 0; ++key) {
    const std::uint32_t bucket = bucket_of(hash_of(key), table_.bits());
    if (done[bucket]) continue;
    done[bucket] = true;
    --missing;
    for (std::uint32_t way = 0; way < kWays; ++way)
      if (versions[way] != 0) table_.store(location_of(bucket, way), key, versions[way], false, {});
  }
}

/// Makes the table like that of a node that never was in an epoch.
void Node::clear_table() noexcept {
  if (table_.allocated() && table_.bits() == bucket_bits_)
    table_.clear();
  else if (!table_.allocate(bucket_bits_))
    return fail();
  lanes_.clear();
  notes_.clear();
  window_.clear();
  bucket_sync_ = {};
  lane_sync_ = {};
  fault_ = false;
}

}  // namespace wherry::kv
