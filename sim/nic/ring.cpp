// SPDX-License-Identifier: Apache-2.0
#include "sim/nic/ring.hpp"

#include <algorithm>

namespace wherry::sim::nic {

using pcie::CompletionStatus;

void Ring::start(std::uint64_t base, std::uint32_t entries) {
  stop();
  base_ = base;
  entries_ = entries;
  running_ = entries != 0;
}

void Ring::stop() {
  running_ = false;
  tail_ = next_ = head = coming_ = 0;
  entries_ = 0;
  cached_.clear();
  while (!order_.empty()) {
    Fetch& fetch = fetches_[order_.front()];
    if (fetch.done) {
      free_.push_back(order_.front());
    } else {
      fetch.stale = true;  // its buffer is free when the read is over
    }
    order_.pop_front();
  }
}

bool Ring::set_tail(std::uint32_t tail) {
  if (!running_ || tail >= entries_) return false;
  tail_ = tail / limits_.tail_granule * limits_.tail_granule;
  fetch();
  return true;
}

void Ring::fetch(bool wanting) {
  while (running_) {
    if (limits_.fetches != 0 && order_.size() >= limits_.fetches) return;  // take() makes room, and its user comes back
    const std::uint32_t held = static_cast<std::uint32_t>(cached_.size()) + coming_;
    const std::uint32_t there = available();
    const bool empty = held == 0 || (wanting && coming_ == 0);
    const bool low = held < limits_.prefetch_below && there >= limits_.prefetch_at_least;
    const std::uint32_t room = limits_.cache > held ? limits_.cache - held : 0;
    const std::uint32_t count = std::min({there, room, limits_.fetch_max, entries_ - next_});
    if (count == 0 || !(empty || low)) return;
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(fetches_.size()));
      fetches_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    Fetch& fetch = fetches_[slot];
    if (!reads_.try_read(address(next_), count * limits_.descriptor_bytes, fetch.data.data(), *this, slot)) return;
    free_.pop_back();
    fetch.first = next_;
    fetch.count = count;
    fetch.done = fetch.stale = false;
    order_.push_back() = slot;
    next_ = (next_ + count) % entries_;
    coming_ += count;
    ++statistics_.fetches;
    statistics_.fetched += count;
  }
}

void Ring::on_read(std::uint64_t argument, CompletionStatus status) {
  Fetch& fetch = fetches_[argument];
  if (fetch.stale || status == CompletionStatus::kAborted) {
    if (fetch.stale) free_.push_back(static_cast<std::uint32_t>(argument));
    return;
  }
  fetch.done = true;
  if (status != CompletionStatus::kSuccess) {
    // The content there is unknown, so continuing would read and write arbitrary addresses.
    ++statistics_.stopped;
    stop();
    user_.on_descriptors(queue_);
    return;
  }
  take();
  user_.on_descriptors(queue_);
}

void Ring::take() {
  while (!order_.empty() && fetches_[order_.front()].done) {
    Fetch& fetch = fetches_[order_.front()];
    for (std::uint32_t i = 0; i < fetch.count; ++i) {
      CachedDescriptor& cached = cached_.push_back();
      cached.index = fetch.first + i;
      cached.descriptor = bypass::load(std::span<const std::byte, bypass::kDescriptorBytes>(
          fetch.data.data() + std::size_t{i} * limits_.descriptor_bytes, bypass::kDescriptorBytes));
    }
    coming_ -= fetch.count;
    free_.push_back(order_.front());
    order_.pop_front();
  }
}

}  // namespace wherry::sim::nic
