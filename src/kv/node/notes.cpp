// SPDX-License-Identifier: Apache-2.0
#include "kv/node/notes.hpp"

#include <algorithm>

namespace wherry::kv {

Notes::Notes(std::size_t max_leftovers) : notes_(kPending + std::min(max_leftovers, kMostLeftovers)) {
  free_.reserve(notes_.size() - kPending);
  clear();
}

void Notes::clear() noexcept {
  heads_.fill(kNone);
  std::ranges::fill(notes_, Note{});
  free_.clear();
  for (std::size_t i = notes_.size(); i-- > kPending;) free_.push_back(static_cast<Index>(i));
  leftovers_ = 0;
}

bool Notes::is_leftover(Location at) const noexcept {
  for (Index i = heads_[bucket_at(at) % kHeads]; i != kNone; i = notes_[i].next)
    if (i >= kPending && notes_[i].location == at) return true;
  return false;
}

void Notes::put(Index index, const Note& note) noexcept {
  Index& head = heads_[bucket_at(note.location) % kHeads];
  notes_[index] = note;
  notes_[index].used = true;
  notes_[index].next = head;
  head = index;
}

void Notes::drop(Index index) noexcept {
  Index* link = &heads_[bucket_at(notes_[index].location) % kHeads];
  while (*link != index) link = &notes_[*link].next;
  *link = notes_[index].next;
  notes_[index].used = false;
  if (index >= kPending) {
    free_.push_back(index);
    --leftovers_;
  }
}

bool Notes::put_leftover(const Note& note) noexcept {
  if (free_.empty()) return false;
  put(free_.back(), note);
  free_.pop_back();
  ++leftovers_;
  return true;
}

bool Notes::leave_over(Index index) noexcept {
  if (free_.empty()) return false;
  Note note = notes_[index];
  drop(index);
  note.tag = 0;
  note.due = 0;
  return put_leftover(note);
}

}  // namespace wherry::kv
