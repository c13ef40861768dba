// SPDX-License-Identifier: Apache-2.0
// How a node enters a new epoch: docs/design/kv-protocol.md, section 8.
#include <algorithm>

#include "kv/node/node.hpp"

namespace wherry::kv {

void Node::enter(std::uint32_t epoch) {
  if (epoch == epoch_) return;  // nobody enters an epoch twice
  epoch_ = epoch;
  epoch16_ = static_cast<std::uint16_t>(epoch);
  config_ = staged_;
  if (epoch16_ == 0) config_.members = config_.serving = 0;
  opened_ = false;
  entered_ = 0;
  owed_entered_ = 0;
  enter_due_ = 0;
  enter_tries_ = 0;
  entered_at_ = now_;
  heard_at_.fill(now_);
  leads_any_ =
      has(config_.members, self()) && std::ranges::find(config_.leaders, config_.node) != config_.leaders.end();
  if (epoch16_ != 0 && !table_.allocated() && !table_.allocate(bucket_bits_)) fail();
  if (!fault_) leave_pending_over();
  if (fault_) return;
  keep_or_drop_window();
  restart_sync();
  leftovers_changed_ = true;
  next_due_ = 0;
  (void)tick(now_);
  after_leftovers();
}

/// Repeats the window's writes in slots that the node still leads. Writes in other slots have no effect.
void Node::keep_or_drop_window() {
  window_.each([&](unsigned place) {
    Place& p = window_[place];
    if (has(config_.members, self()) && leads(slot_at(p.location))) {
      p.answered = 0;
      p.due = 0;
      p.tries = 0;
      return;
    }
    if (!p.leftover) roll_back(p.lane, p.request);
    window_.free(place);
  });
}

void Node::leave_pending_over() {
  for (Notes::Index i = 0; i < Notes::kPending; ++i) {
    if (!notes_[i].used) continue;
    // If a location has several notes, only the note with the stored version counts. Older writes were committed.
    if (notes_[i].version != table_.way(notes_[i].location).version || faults_.has(NodeFault::keep_leftovers)) {
      drop_settled(i);
      continue;
    }
    lanes_.leave_over(notes_[i].lane, notes_[i].request);
    if (!notes_.leave_over(i)) return fail();
  }
  notes_.each_leftover([&](Notes::Index i) {
    Note& note = notes_[i];
    note.in_window = note.in_window && has(config_.members, self()) && leads(slot_at(note.location));
    note.tag = 0;
    note.due = 0;
  });
}

/// A leader completes its own leftovers, because they may have been acknowledged to a client.
void Node::replay_leftovers() {
  if (!leads_any_) return;
  notes_.each_leftover([&](Notes::Index i) {
    Note& note = notes_[i];
    if (note.in_window || !leads(slot_at(note.location)) || window_.full()) return;
    note.in_window = true;
    const Way& way = table_.way(note.location);
    const unsigned place = window_.take({.location = note.location,
                                         .key = way.key,
                                         .version = note.version,
                                         .request = note.request,
                                         .lane = note.lane,
                                         .removes = way.present == 0,
                                         .leftover = true,
                                         .candidate = table_.candidate_at(hash_of(way.key), note.location)},
                                        table_.value(note.location));
    replicate(place);
    commit_if_answered(place);
  });
}

/// Asks the other leaders about leftovers in their slots; the leader's state decides.
void Node::fetch_leftovers() {
  notes_.each_leftover([&](Notes::Index i) {
    Note& note = notes_[i];
    const unsigned slot = slot_at(note.location);
    if (leads(slot)) return;
    if (note.due > now_) return (void)schedule(note.due);
    if (note.tag == 0) {
      note.tag = tags_.make(i - Notes::kPending);
      note.tries = 0;
    } else {
      ++counters_.retries;
    }
    Kv h = header(Kind::fetch);
    h.request = note.tag;
    h.key = note.location;
    send_node(config_.leaders[slot], h);
    note.due = retry_at(note.tries);
    if (note.tries < kMostDoublings) ++note.tries;
  });
}

void Node::repeat_enter() {
  const unsigned missing = others() & ~unsigned{entered_};
  if (!leads_any_ || missing == 0) return;
  if (enter_due_ > now_) return (void)schedule(enter_due_);
  for (unsigned node = 0; node < kMaxNodes; ++node) {
    if (!has(missing, node)) continue;
    if (enter_due_ != 0) ++counters_.retries;
    send_node(node, header(Kind::enter));
  }
  enter_due_ = retry_at(enter_tries_);
  if (enter_tries_ < kMostDoublings) ++enter_tries_;
}

/// Call it when a leftover was settled, or something that a leader waits for has happened.
void Node::after_leftovers() {
  while (leftovers_changed_) {
    leftovers_changed_ = false;
    replay_leftovers();
    if (notes_.leftovers() != 0) continue;
    for (unsigned node = 0; node < kMaxNodes; ++node)
      if (has(owed_entered_, node)) send_node(node, header(Kind::entered));
    owed_entered_ = 0;
    open_if_ready();
  }
}

/// An earlier opening could put a key in a second way while a leftover of the key waits in the first.
void Node::open_if_ready() {
  if (leads_any_ && notes_.leftovers() == 0 &&
      ((others() & ~unsigned{entered_}) == 0 || faults_.has(NodeFault::open_early)))
    opened_ = true;
}

void Node::on_enter(unsigned sender) {
  owed_entered_ = static_cast<std::uint8_t>(owed_entered_ | 1U << sender);
  leftovers_changed_ = true;
}

bool Node::on_fetch(const Endpoint& from, const Kv& h) {
  const Location at = h.key;
  if (at / kWays >= table_.buckets() || !leads(slot_at(at))) return false;
  Kv reply = header(Kind::entry);
  reply.client = h.client;
  reply.request = h.request;
  ReplyDetail detail{.way = static_cast<std::uint8_t>(way_at(at))};
  ByteView value;
  const Way& way = table_.way(at);
  reply.version = way.version;
  reply.key = way.key;
  if (way.version != 0) reply.candidate = table_.candidate_at(hash_of(way.key), at);
  if (notes_.is_leftover(at) || (opened_ && notes_.in_bucket(bucket_at(at)))) {  // open, it refreshes a location there
    detail.status = static_cast<std::uint8_t>(Status::busy);
  } else {
    detail.present = way.present;
    value = table_.value(at);
  }
  std::array<std::byte, 1> byte{};
  detail.pack(byte);
  reply.detail = std::to_integer<std::uint8_t>(byte[0]);
  send(from, reply, value);
  return true;
}

bool Node::on_entry(const Message& m) {
  const Kv& h = m.header;
  const auto detail = ReplyDetail::unpack(std::array{static_cast<std::byte>(h.detail)});
  if (static_cast<Status>(detail.status) != Status::ok) return true;  // asked again, later
  const std::uint32_t index = Tags::index(h.request);
  if ((index & Tags::kSync) != 0) return on_sync_entry(m, detail.present != 0);
  if (Notes::kPending + index >= notes_.size()) return true;
  const Note& note = notes_[static_cast<Notes::Index>(Notes::kPending + index)];
  if (!note.used || note.tag != h.request) return true;  // settled meanwhile
  if (config_.leaders[slot_at(note.location)] != h.node) return false;
  adopt(note.location, m, detail.present != 0);
  return true;
}

/// A location with a leftover takes the leader's content, even if that is older.
void Node::adopt(Location at, const Message& m, bool present) {
  const Way& way = table_.way(at);
  // The message does not name the write. Every member acknowledged committed writes, so an equal version means the same
  // write. But if the content differs, it is certainly another write.
  const bool same = way.key == m.header.key && (way.present != 0) == present &&
                    (!present || std::ranges::equal(table_.value(at), m.value));
  notes_.at_bucket(bucket_at(at), [&](Notes::Index i) {
    if (notes_[i].location == at) resolve(i, m.header.version, same);
  });
  table_.store(at, m.header.key, m.header.version, present, m.value);
}

}  // namespace wherry::kv
