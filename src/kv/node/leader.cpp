// SPDX-License-Identifier: Apache-2.0
// The leader's part of a write: docs/design/kv-protocol.md, sections 4 and 5.
#include "kv/node/node.hpp"

namespace wherry::kv {
namespace {

bool is_removal(Kind kind) noexcept { return kind == Kind::remove || kind == Kind::remove_if; }
bool is_conditional(Kind kind) noexcept { return kind == Kind::write_if || kind == Kind::remove_if; }

}  // namespace

void Node::on_request(const Endpoint& from, const Message& m) {
  const Kv& h = m.header;
  const std::uint32_t hash = hash_of(h.key);
  const unsigned slot = slot_of(hash);
  if (h.client >= lanes_.count() || h.candidate != 0) return answer(from, h, slot, Status::bad_lane);
  if (!serving()) return answer(from, h, slot, Status::not_serving);
  if (h.epoch != epoch16_) return answer(from, h, slot, Status::stale_epoch);
  if (!leads(slot)) return answer(from, h, slot, Status::not_leader);
  if (!opened_) return answer(from, h, slot, Status::busy);
  if (!is_new(from, h, slot)) return;
  const std::uint32_t bucket = bucket_of(hash, table_.bits());
  if (window_.full() || window_.has_bucket(bucket)) return answer(from, h, slot, Status::busy);
  Location at = table_.find(bucket, first_way_of(hash), h.key);
  const bool search = at == Table::kNowhere && table_.may_be_elsewhere(bucket);
  if (search && !find_elsewhere(h, hash, at)) return answer(from, h, slot, Status::busy);
  decide(from, m, hash, at, search);
}

/// Looks for a key that is not in its first bucket. False: a write is in flight in one of the searched buckets, and it
/// may be a write of this key.
bool Node::find_elsewhere(const Kv& h, std::uint32_t hash, Location& at) const noexcept {
  table_.prefetch_others(hash);
  for (std::uint32_t i = 1; i < candidates(table_.bits()); ++i) {
    const std::uint32_t bucket = bucket_at_index(hash, i, table_.bits());
    if (window_.has_bucket(bucket) && !faults_.has(NodeFault::ignore_other_flights)) return false;
    at = table_.find(bucket, first_way_of(hash), h.key);
    if (at != Table::kNowhere) break;
  }
  return true;
}

/// Writes the location again, unchanged, with the bucket's next version. The write is treated like a leftover of this
/// leader: reads and writes of the bucket wait, and the next leader completes the write or takes it back. Its note
/// names the request before this one, because no client waits for that request. Only one exists at a time, so there is
/// always room for it.
void Node::refresh(Location at, const Kv& h) {
  const std::uint32_t version = table_.next_version(bucket_at(at));
  const Note note{.location = at,
                  .version = version,
                  .request = h.request - 1,
                  .lane = h.client,
                  .removes = table_.way(at).present == 0};
  if (notes_.leftovers() != 0) return;
  if (others() != 0) {  // alone, it is committed with that
    if (!notes_.put_leftover(note)) return;
    if (!lanes_[note.lane].empty()) lanes_.leave_over(note.lane, note.request);
  }
  table_.set_version(at, version);
  ++counters_.refreshed;
  leftovers_changed_ = true;
  after_leftovers();
}

/// Compares a request with the lane's record. A request that is not new is answered from the record, or dropped.
bool Node::is_new(const Endpoint& from, const Kv& h, unsigned slot) {
  const LaneRecord& r = lanes_[h.client];
  if (r.empty() || newer(h.request, r.request)) return true;
  if (faults_.has(NodeFault::skip_lane_check) && !r.in_flight) return true;
  if (h.request == r.request && r.has_answer())
    answer(from, h, slot, r.status, r.version);
  else
    drop_as(counters_.dropped_duplicate);
  return false;
}

/// `at`: location of the key. `searched`: the other candidate buckets were searched, too.
void Node::decide(const Endpoint& from, const Message& m, std::uint32_t hash, Location at, bool searched) {
  const Kv& h = m.header;
  const auto kind = static_cast<Kind>(h.kind);
  const unsigned slot = slot_of(hash);
  const bool found = at != Table::kNowhere;
  if (!found) {
    if (is_removal(kind)) return refuse(from, h, slot, Status::no_such_key, 0);
    if (is_conditional(kind) && h.version != 0) return refuse(from, h, slot, Status::version_mismatch, 0);
    at = table_.location_for(hash);
    if (at == Table::kNowhere) return refuse(from, h, slot, Status::table_full, 0);
  }
  const std::uint32_t bucket = bucket_at(at);
  if (const Location lags = table_.lagging(bucket);
      lags != Table::kNowhere && !faults_.has(NodeFault::keep_lagging_versions)) {
    answer(from, h, slot, Status::busy);
    return refresh(lags, h);
  }
  if (const std::uint32_t version = table_.way(at).version; found && is_conditional(kind) && h.version != version)
    return refuse(from, h, slot, Status::version_mismatch, version);
  const bool elsewhere_before = searched && !found && !faults_.has(NodeFault::ignore_other_versions);

  ++counters_.taken;
  lanes_[h.client] = {.request = h.request, .in_flight = true};
  const unsigned place =
      window_.take({.location = at,
                    .key = h.key,
                    .version = elsewhere_before ? table_.version_after_all(hash, bucket) : table_.next_version(bucket),
                    .request = h.request,
                    .lane = h.client,
                    .removes = is_removal(kind),
                    .kind = h.kind,
                    .candidate = table_.candidate_at(hash, at),
                    .client = from},
                   m.value);
  replicate(place);
  commit_if_answered(place);
}

/// Refusals are recorded like an `ok`: a repetition must not succeed after the client got a refusal.
void Node::refuse(const Endpoint& from, const Kv& h, unsigned slot, Status status, std::uint32_t version) {
  if (!faults_.has(NodeFault::forget_refusals))
    lanes_[h.client] = {.request = h.request, .version = version, .status = status};
  answer(from, h, slot, status, version);
}

Kv Node::header(Kind kind, const Place& write, unsigned place) const noexcept {
  Kv h = header(kind);
  h.detail = node_detail(way_at(write.location), place);
  h.candidate = write.candidate;
  h.client = write.lane;
  h.request = write.request;
  h.version = write.version;
  h.key = write.key;
  return h;
}

/// Sends a write to all members that have not answered.
void Node::replicate(unsigned place) {
  Place& p = window_[place];
  const Kv h = header(p.removes ? Kind::replicate_remove : Kind::replicate, p, place);
  const unsigned missing = others() & ~unsigned{p.answered};
  for (unsigned node = 0; node < kMaxNodes; ++node)
    if (has(missing, node)) send_node(node, h, window_.value(place));
  if (p.tries == 0) p.since = now_;
  p.due = retry_at(p.tries);
  if (p.tries < kMostDoublings) ++p.tries;
}

void Node::commit_if_answered(unsigned place) {
  Place& p = window_[place];
  const bool early = faults_.has(NodeFault::commit_before_all) && p.answered != 0;
  if ((others() & ~unsigned{p.answered}) != 0 && !early) return;
  if (others() != 0 || leased())
    commit(place);
  else
    p.due = retry_at();  // alone, nobody else can say that this epoch is still the last
}

void Node::commit(unsigned place) {
  const Place p = window_[place];
  if (p.leftover) {
    ++counters_.completed;
    notes_.at_bucket(bucket_at(p.location), [&](Notes::Index i) {
      if (notes_[i].location == p.location) notes_.drop(i);
    });
    leftovers_changed_ = true;
  } else {
    table_.store(p.location, p.key, p.version, !p.removes, window_.value(place));
  }
  lanes_.finish(p.lane, p.request, p.version);
  window_.free(place);
  const Kv request{.kind = p.kind, .client = p.lane, .request = p.request, .key = p.key};
  if (p.kind != 0) reply(p.client, request, slot_at(p.location), Status::ok, p.version, {});
  const Kv h = header(Kind::commit, p, place);
  for (unsigned node = 0; node < kMaxNodes; ++node)
    if (has(others(), node)) send_node(node, h);
}

bool Node::on_replicated(const Kv& h) {
  if (!leads(slot_of(hash_of(h.key)))) return false;
  const unsigned place = h.detail % kPlaces;
  Place& p = window_[place];
  const bool ours = window_.busy(place) && p.version == h.version && p.candidate == h.candidate && p.lane == h.client &&
                    p.request == h.request && p.key == h.key;
  if (ours) {
    p.answered = static_cast<std::uint8_t>(p.answered | 1U << h.node);
    commit_if_answered(place);
    return true;
  }
  Kv committed = h;  // a write leaves the window by its commit only
  committed.kind = static_cast<std::uint8_t>(Kind::commit);
  committed.node = config_.node;
  committed.epoch = epoch16_;
  send_node(h.node, committed);
  return true;
}

void Node::retry_window() {
  window_.each([&](unsigned place) {
    Place& p = window_[place];
    if (p.due > now_) return (void)schedule(p.due);
    const unsigned missing = others() & ~unsigned{p.answered};
    if (missing == 0) return commit_if_answered(place);
    counters_.retries += static_cast<std::uint32_t>(std::popcount(missing));
    replicate(place);
  });
}

/// Members that this leader waits for and has not heard from for `time`. Also members that it heard, if one of their
/// answers is missing for four times as long.
std::uint8_t Node::silent_members(Cycles time) noexcept {
  if (fault_ || epoch16_ == 0) return 0;
  unsigned waits = 0, long_waits = 0;
  const auto wait = [&](Cycles since, unsigned members) {
    if (now_ - since >= time) waits |= members;
    if (now_ - since >= 4 * time) long_waits |= members;
  };
  window_.each([&](unsigned place) { wait(window_[place].since, others() & ~unsigned{window_[place].answered}); });
  if (leads_any_) wait(entered_at_, others() & ~unsigned{entered_});
  for (unsigned node = 0; node < kMaxNodes; ++node)
    if (now_ - heard_at_[node] < time && !has(long_waits, node)) waits &= ~(1U << node);
  return static_cast<std::uint8_t>(waits);
}

}  // namespace wherry::kv
