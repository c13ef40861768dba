// SPDX-License-Identifier: Apache-2.0
#include "sim/traffic.hpp"

#include <algorithm>
#include <utility>

#include "kv/net/datagram.hpp"
#include "kv/serial.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr std::uint32_t kHotBuckets = 2, kHotKeys = 6, kOtherBuckets = 4;  // of each leader

void set(Frame& frame, std::size_t at, std::uint8_t value) { frame[at] = static_cast<std::byte>(value); }

}  // namespace

Traffic::Traffic(Pair& pair, std::uint64_t seed, std::uint32_t nodes) : pair_(pair), random_(seed), nodes_(nodes) {
  // Keys of a few buckets of each leader. For some buckets there are more keys than places.
  std::map<std::uint32_t, std::uint32_t> wanted;
  for (std::uint32_t i = 0; i < nodes * (kHotBuckets + kOtherBuckets); ++i)
    wanted[i] = i < nodes * kHotBuckets ? kHotKeys : 1;
  std::size_t missing = 0;
  for (const auto& [bucket, count] : wanted) missing += count;
  for (std::uint64_t key = random_.next(); missing > 0; ++key) {
    const auto found = wanted.find(bucket_of(hash_of(key), pair.bucket_bits()));
    if (found == wanted.end() || found->second == 0) continue;
    --found->second;
    --missing;
    keys_.push_back(key);
  }
}

Frame Traffic::frame_of(const Endpoint& from, const Kv& header, ByteView value, bool summed) {
  Frame frame(kHeaderBytes + value.size());
  (void)build(frame, from, Pair::node(0), {.header = header, .value = value},
              summed ? UdpChecksum::kRight : UdpChecksum::kNone);
  return frame;
}

Frame Traffic::value() {
  constexpr std::array<std::uint32_t, 8> kSizes{0, 0, 1024, 1024, 1, 63, 64, 65};
  const std::uint32_t choice = random_.below(2 * kSizes.size());
  Frame value(choice < kSizes.size() ? kSizes[choice] : random_.below(kMaxValueBytes + 1));
  for (std::byte& byte : value) byte = static_cast<std::byte>(random_.next());
  return value;
}

Frame Traffic::request() {
  constexpr std::array<Kind, 10> kKinds{Kind::read,     Kind::read,   Kind::read,      Kind::write, Kind::write,
                                        Kind::write_if, Kind::remove, Kind::remove_if, Kind::lane,  Kind::ping};
  const Kind kind = kKinds[random_.below(kKinds.size())];
  const auto lane = static_cast<std::uint16_t>(random_.below(kClientLanes));
  const bool writes = kind >= Kind::write && kind <= Kind::remove_if;
  if (writes && !last_[lane].empty() && random_.below(5) == 0) return last_[lane];  // once more
  Kv h{.kind = static_cast<std::uint8_t>(kind),
       .epoch = Pair::kEpoch,
       .client = lane,
       .request = static_cast<std::uint32_t>(random_.next())};
  if (kind != Kind::lane && kind != Kind::ping) h.key = key();
  if (kind == Kind::write_if || kind == Kind::remove_if)
    h.version = random_.below(4) == 0 ? random_.below(3) : versions_[h.key];
  if (random_.below(40) == 0) h.epoch = static_cast<std::uint16_t>(random_.below(6));
  if (writes) h.request = ++numbers_[lane];
  const Frame content = kind == Kind::write || kind == Kind::write_if ? value() : Frame{};
  Frame frame = frame_of(client(), h, content, random_.below(2) == 0);
  if (writes) last_[lane] = frame;
  return frame;
}

Frame Traffic::commit_of(std::uint32_t leader, std::uint32_t bucket) {
  Leader& l = leaders_[leader];
  Kv h = l.pending[bucket];
  h.kind = static_cast<std::uint8_t>(Kind::commit);
  l.busy &= ~(std::uint64_t{1} << h.detail % kPlaces);
  l.pending.erase(bucket);
  return frame_of(Pair::node(leader), h, {}, random_.below(2) == 0);
}

std::uint32_t Traffic::bucket_for(const Leader& leader, std::uint64_t key) {
  if (const auto there = leader.where.find(key); there != leader.where.end()) return there->second;
  const auto present = [&](std::uint32_t bucket) {
    const auto found = leader.buckets.find(bucket);
    return found == leader.buckets.end() ? 0 : std::ranges::count_if(found->second, &Held::present);
  };
  const std::uint32_t first = bucket_of(hash_of(key), pair_.bucket_bits()), all = candidates(pair_.bucket_bits());
  if (present(first) < kFirstBucketKeys) return first;
  for (std::uint32_t i = all > 1 ? random_.below(all) : 0, tries = 0; tries < all; ++tries, i = (i + 1) % all)
    if (const auto bucket = bucket_at_index(hash_of(key), i, pair_.bucket_bits()); present(bucket) < kWays)
      return bucket;
  return first;
}

/// Decides like a leader that follows the protocol.
Frame Traffic::new_write(std::uint32_t leader) {
  Leader& l = leaders_[leader];
  std::uint64_t what = key();
  while (pair_.leader_of(what) != leader) what = key();
  const std::uint32_t bucket = bucket_for(l, what);
  if (l.pending.contains(bucket)) {  // once more, or committed
    if (random_.below(2) == 0) {
      Frame commit = commit_of(leader, bucket);
      if (random_.below(5) != 0) return commit;
      lost_.push_back(commit);
      pair_.lose_commit(bucket);
      return request();
    }
    return frame_of(Pair::node(leader), l.pending[bucket], l.values[bucket], random_.below(2) == 0);
  }
  const auto [line, first] = l.buckets.try_emplace(bucket);
  auto& ways = line->second;
  for (std::uint32_t way = 0; first && way < kWays; ++way) ways[way].version = pair_.versions()[way];
  std::uint32_t highest = 0;
  for (const Held& held : ways)
    if (version_newer(held.version, highest)) highest = held.version;
  const std::uint32_t version = version_after(highest);
  auto at = std::ranges::find_if(ways, [&](const Held& held) { return held.present && held.key == what; });
  const bool removes = at != ways.end() && random_.below(3) == 0;
  if (at == ways.end() && !ways[first_way_of(hash_of(what))].present) at = ways.begin() + first_way_of(hash_of(what));
  if (at == ways.end()) at = std::ranges::find_if(ways, [](const Held& held) { return !held.present; });
  if (at == ways.end()) at = ways.begin(), what = ways[0].key;
  if (removes)
    l.where.erase(what);
  else
    l.where[what] = bucket;
  *at = {.key = what, .version = version, .present = !removes};
  const auto place = static_cast<std::uint32_t>(std::countr_one(l.busy));
  l.busy |= std::uint64_t{1} << place;
  const std::uint32_t lane = random_.below(kOtherLanes);
  const Kv h{.kind = static_cast<std::uint8_t>(removes ? Kind::replicate_remove : Kind::replicate),
             .node = static_cast<std::uint8_t>(leader),
             .detail = node_detail(static_cast<std::uint32_t>(at - ways.begin()), place),
             .candidate = candidate_of(hash_of(what), bucket, pair_.bucket_bits()),
             .epoch = Pair::kEpoch,
             .client = static_cast<std::uint16_t>(kClientLanes + leader * kOtherLanes + lane),
             .request = ++l.numbers[lane],
             .version = version,
             .key = what};
  l.pending[bucket] = h;
  l.values[bucket] = removes ? Frame{} : value();
  return frame_of(Pair::node(leader), h, l.values[bucket], random_.below(2) == 0);
}

Frame Traffic::from_leader() {
  const std::uint32_t leader = 1 + random_.below(nodes_ - 1);
  Kv h{.node = static_cast<std::uint8_t>(leader), .epoch = Pair::kEpoch};
  const std::uint32_t choice = random_.below(20);
  if (choice < 16) return new_write(leader);
  if (choice == 16) {  // of something else: they keep what they have
    h.kind = static_cast<std::uint8_t>(random_.below(2) == 0 ? Kind::lane_record : Kind::entered);
    return frame_of(Pair::node(leader), h, {}, true);
  }
  if (choice == 17) {
    h.kind = static_cast<std::uint8_t>(Kind::enter);
    return frame_of(Pair::node(leader), h, {}, true);
  }
  // A question of a node that returns, whether or not it concerns this node.
  h.kind = static_cast<std::uint8_t>(Kind::fetch);
  h.request = static_cast<std::uint32_t>(random_.next());
  const std::uint32_t all = candidates(pair_.bucket_bits()), index = all > 1 ? random_.below(all) : 0;
  h.key = std::uint64_t{bucket_at_index(hash_of(key()), index, pair_.bucket_bits())} * kWays + random_.below(kWays);
  if (random_.below(10) == 0) h.epoch = 9;
  return frame_of(Pair::node(leader), h, {}, true);
}

Frame Traffic::from_follower() {
  if (owed_.empty() || (random_.below(8) == 0 && !answered_.empty())) {
    if (answered_.empty()) return request();
    return frame_of(Pair::node(answered_.back().node),
                    answered_[random_.below(static_cast<std::uint32_t>(answered_.size()))], {}, true);
  }
  const std::size_t which = random_.below(static_cast<std::uint32_t>(owed_.size()));
  const auto [from, h] = owed_[which];
  if (random_.below(8) != 0) {  // else it comes again
    owed_.erase(owed_.begin() + static_cast<std::ptrdiff_t>(which));
    answered_.push_back(h);
    if (answered_.size() > 64) answered_.erase(answered_.begin());
  }
  return frame_of(from, h, {}, random_.below(2) == 0);
}

Frame Traffic::any_frame() {
  const std::uint32_t who = nodes_ == 1 ? 0 : random_.below(10);
  if (owed_.size() > 12) return from_follower();
  return who < 5 ? request() : who < 8 ? from_leader() : from_follower();
}

void Traffic::put(const Frame& frame) { pair_.put(frame, random_.below(4) == 0 ? random_.below(60) : 0); }

void Traffic::round() {
  for (std::uint32_t count = 1 + random_.below(8); count > 0; --count) {
    if (random_.below(12) == 0) {
      Frame frame(kShortest + random_.below(600));
      for (std::byte& byte : frame) byte = static_cast<std::byte>(random_.next());
      pair_.put_host(frame);
    }
    if (random_.below(3) != 0) {
      put(any_frame());
      continue;
    }
    // A spoilt copy must not take the place of a frame that continues a conversation.
    Frame frame = request();
    bool of_client = true;
    if (nodes_ > 1 && random_.below(3) == 0) {
      const std::uint32_t leader = 1 + random_.below(nodes_ - 1);
      if (Leader& l = leaders_[leader]; !l.pending.empty()) {
        frame = frame_of(Pair::node(leader), l.pending.begin()->second, l.values[l.pending.begin()->first], true);
        of_client = false;
      }
    }
    auto how = static_cast<Spoil>(random_.below(kSpoils));
    if (!of_client && (how == Spoil::kField || how == Spoil::kRandomForUs)) how = Spoil::kFlip;
    spoil(frame, how, of_client);
    put(frame);
  }
  end_round();
}

void Traffic::hear(const std::vector<Spoken>& sent) {
  for (const Spoken& s : sent) {
    const Kv& h = s.header;
    switch (static_cast<Kind>(h.kind)) {
      case Kind::replicate:
      case Kind::replicate_remove: {
        Kv answer = h;
        answer.kind = static_cast<std::uint8_t>(h.kind | 16U);
        answer.node = static_cast<std::uint8_t>(s.to.ip - Pair::node(0).ip);
        owed_.emplace_back(s.to, answer);
        break;
      }
      case Kind::read_done:
      case Kind::write_done:
      case Kind::write_if_done:
      case Kind::remove_done:
      case Kind::remove_if_done:
        if (static_cast<Status>(h.detail) > Status::table_full) break;
        versions_[h.key] = h.version;
        // Spoilt requests may have advanced the lane.
        if (static_cast<Kind>(h.kind) != Kind::read_done && h.client < kClientLanes) numbers_[h.client] = h.request;
        break;
      default:
        break;
    }
  }
}

void Traffic::replay(const Frame& corpus) {
  Frame frame = corpus;
  frame.resize(std::max<std::size_t>(frame.size(), kShortest));
  put(frame);
  if (corpus.size() >= kHeaderBytes) {  // the same, to this node
    const Endpoint self = Pair::node(0);
    for (std::size_t i = 0; i < 6; ++i) set(frame, i, static_cast<std::uint8_t>(self.mac >> 8 * (5 - i)));
    patch(frame, kIpv4Offset + 16, static_cast<std::uint16_t>(self.ip >> 16), true, true);
    patch(frame, kIpv4Offset + 18, static_cast<std::uint16_t>(self.ip), true, true);
    patch(frame, kUdpOffset + 2, self.port, false, true);
    put(frame);
  }
  end_round();
  frame = corpus;
  frame.resize(std::max<std::size_t>(frame.size(), Kv::kBytes));
  if (frame.size() <= 16384)
    if (const auto message = unpack_datagram(frame)) put(frame_of(client(), message->header, message->value, true));
  end_round();
}

void Traffic::read_back() {
  for (std::uint32_t leader = 1; leader < nodes_; ++leader) {
    while (!leaders_[leader].pending.empty()) put(commit_of(leader, leaders_[leader].pending.begin()->first));
    end_round();
  }
  for (const Frame& commit : std::exchange(lost_, {})) {
    put(commit);
    end_round();
  }
  while (!owed_.empty()) {
    put(frame_of(owed_.back().first, owed_.back().second, {}, true));
    owed_.pop_back();
    end_round();
  }
  for (const std::uint64_t key : keys_) {
    put(frame_of(client(), {.kind = static_cast<std::uint8_t>(Kind::read), .key = key}, {}, true));
    end_round();
  }
  // Reads whole locations as a returning node does, of keys that this node leads.
  for (const std::uint64_t key : keys_) {
    for (std::uint32_t i = 0; i < kWays * candidates(pair_.bucket_bits()) && nodes_ > 1; ++i) {
      const std::uint32_t bucket = bucket_at_index(hash_of(key), i / kWays, pair_.bucket_bits());
      put(frame_of(Pair::node(1),
                   {.kind = static_cast<std::uint8_t>(Kind::fetch),
                    .node = 1,
                    .epoch = Pair::kEpoch,
                    .key = std::uint64_t{bucket} * kWays + i % kWays},
                   {}, true));
      if (i % kWays == kWays - 1) end_round();
    }
  }
  const auto lanes = static_cast<std::uint16_t>(kClientLanes + nodes_ * kOtherLanes);
  for (std::uint16_t lane = 0; lane < lanes; ++lane) {
    put(frame_of(client(), {.kind = static_cast<std::uint8_t>(Kind::lane), .client = lane}, {}, true));
    if (lane % 4 == 3) end_round();
  }
  end_round();
  pair_.expect_nothing_late();
  pair_.compare_counters();
}

}  // namespace wherry::kv::rtl
