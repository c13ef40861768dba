// SPDX-License-Identifier: Apache-2.0
// The follower's part of a write: docs/design/kv-protocol.md, sections 5 and 6.
#include "kv/node/node.hpp"

namespace wherry::kv {

bool Node::on_replicate(const Message& m) {
  const Kv& h = m.header;
  const std::uint32_t hash = hash_of(h.key);
  if ((config_.leaders[slot_of(hash)] != h.node && !faults_.has(NodeFault::forget_fence)) ||
      h.client >= lanes_.count() || h.version == 0)
    return false;
  const auto detail = NodeDetail::unpack(std::array{static_cast<std::byte>(h.detail)});
  const Location at = location_of(bucket_of_candidate(hash, h.candidate, table_.bits()), detail.way);
  const bool removes = static_cast<Kind>(h.kind) == Kind::replicate_remove;
  if (version_newer(h.version, table_.way(at).version) || notes_.is_leftover(at)) {
    // The leader reuses a place only after a commit, so the former write there is settled. The note is dropped only in
    // this branch: for a stored version, the frame may be an old repetition of a write that had this place before.
    const Notes::Index index = Notes::pending_index(h.node, detail.place);
    if (notes_[index].used) drop_settled(index);
    notes_.at_bucket(bucket_at(at), [&](Notes::Index i) {
      const bool same = notes_[i].lane == h.client && notes_[i].request == h.request;
      if (notes_[i].location == at) resolve(i, h.version, same);
    });
    table_.store(at, h.key, h.version, !removes, m.value);
    notes_.put(index, {.location = at,
                       .version = h.version,
                       .request = h.request,
                       .lane = h.client,
                       .removes = removes,
                       .due = now_ + retry_cycles_});
    if (!faults_.has(NodeFault::forget_unsettled) || lanes_[h.client].request != h.request)
      lanes_.learn(h.client, h.request, h.version, false);
  }
  Kv reply = h;
  reply.kind = static_cast<std::uint8_t>(removes ? Kind::replicated_remove : Kind::replicated);
  reply.node = config_.node;
  reply.epoch = epoch16_;
  if (faults_.has(NodeFault::forget_fence))
    send(config_.peers[h.node], reply);  // whoever it is
  else
    send_node(h.node, reply);
  return true;
}

/// Settles a noted write when `version` has arrived for its location. The write was committed before, is this version's
/// write, or was never acknowledged.
void Node::resolve(Notes::Index index, std::uint32_t version, bool same_write) {
  const Note& note = notes_[index];
  const bool stays = version_newer(version, note.version) || (version == note.version && same_write);
  if (!stays) roll_back(note.lane, note.request);
  drop_settled(index);
}

void Node::roll_back(std::uint16_t lane, std::uint32_t request) noexcept {
  ++counters_.rolled_back;
  if (!faults_.has(NodeFault::keep_rolled_back_lanes)) lanes_.roll_back(lane, request);
}

void Node::drop_settled(Notes::Index index) {
  lanes_.settle(notes_[index].lane, notes_[index].request);
  if (index >= Notes::kPending) leftovers_changed_ = true;
  notes_.drop(index);
}

bool Node::on_commit(const Kv& h) {
  const std::uint32_t hash = hash_of(h.key);
  if (config_.leaders[slot_of(hash)] != h.node) return false;
  const auto detail = NodeDetail::unpack(std::array{static_cast<std::byte>(h.detail)});
  const Notes::Index index = Notes::pending_index(h.node, detail.place);
  const Note& note = notes_[index];
  if (note.used && note.location == location_of(bucket_of_candidate(hash, h.candidate, table_.bits()), detail.way) &&
      note.version == h.version && note.lane == h.client && note.request == h.request)
    drop_settled(index);
  return true;
}

/// If a `commit` was lost: acknowledges again the pending writes of a bucket that a client wants to read.
void Node::ask_for_commit(std::uint32_t bucket) {
  notes_.at_bucket(bucket, [&](Notes::Index index) {
    Note& note = notes_[index];
    if (index >= Notes::kPending || note.due > now_) return;
    note.due = now_ + retry_cycles_;
    ++counters_.retries;
    Kv h = header(note.removes ? Kind::replicated_remove : Kind::replicated);
    h.detail = node_detail(way_at(note.location), index % kPlaces);
    h.client = note.lane;
    h.request = note.request;
    h.version = note.version;
    h.key = table_.way(note.location).key;
    h.candidate = table_.candidate_at(hash_of(h.key), note.location);
    send_node(index / kPlaces, h);
  });
}

}  // namespace wherry::kv
