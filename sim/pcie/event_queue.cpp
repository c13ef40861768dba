// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/event_queue.hpp"

#include <algorithm>
#include <utility>

namespace wherry::sim::pcie {
namespace {
constexpr std::size_t kChildren = 4;  // two cache lines hold all children; shallower than two children each
}  // namespace

void EventQueue::schedule(Time at, EventHandler& handler, std::uint64_t argument) {
  const Event event{std::max(at, now_), scheduled_++, &handler, argument};
  std::size_t place = heap_.size();
  heap_.push_back(event);
  while (place != 0) {
    const std::size_t parent = (place - 1) / kChildren;
    if (!before(event, heap_[parent])) break;
    heap_[place] = heap_[parent];
    place = parent;
  }
  heap_[place] = event;
}

bool EventQueue::step() {
  if (heap_.empty()) return false;
  const Event first = heap_.front();
  const Event last = heap_.back();
  heap_.pop_back();
  if (const std::size_t size = heap_.size(); size != 0) {
    std::size_t place = 0;
    for (;;) {
      const std::size_t begin = place * kChildren + 1;
      if (begin >= size) break;
      std::size_t least = begin;
      for (std::size_t child = begin + 1; child < std::min(begin + kChildren, size); ++child) {
        if (before(heap_[child], heap_[least])) least = child;
      }
      if (!before(heap_[least], last)) break;
      heap_[place] = heap_[least];
      place = least;
    }
    heap_[place] = last;
  }
  now_ = first.at;
  ++events_;
  first.handler->on_event(first.argument);
  return true;
}

std::uint64_t EventQueue::run(Time until) {
  const std::uint64_t before_run = events_;
  stopped_ = false;
  while (!stopped_ && next() <= until && step()) {
  }
  if (!stopped_ && until != kNever) now_ = std::max(now_, until);
  return events_ - before_run;
}

void EventQueue::call(Time at, std::function<void()> action) {
  std::size_t slot = actions_.actions.size();
  if (actions_.free.empty()) {
    actions_.actions.emplace_back();
  } else {
    slot = actions_.free.back();
    actions_.free.pop_back();
  }
  actions_.actions[slot] = std::move(action);
  schedule(at, actions_, slot);
}

void EventQueue::Actions::on_event(std::uint64_t argument) {
  const std::function<void()> action = std::exchange(actions[argument], {});
  free.push_back(static_cast<std::uint32_t>(argument));
  action();
}

void Timer::set(Time at) {
  due_ = std::max(at, queue_.now());
  if (due_ >= queued_) return;
  queued_ = due_;
  queue_.schedule(due_, *this, static_cast<std::uint64_t>(due_));
}

void Timer::on_event(std::uint64_t argument) {
  // An event that an earlier one has replaced finds another time here, and has no effect.
  if (static_cast<Time>(argument) != queued_) return;
  queued_ = kNever;
  if (due_ == kNever) return;
  if (due_ > queue_.now()) {
    set(due_);
    return;
  }
  due_ = kNever;
  handler_.on_event(argument_);
}

}  // namespace wherry::sim::pcie
