// SPDX-License-Identifier: Apache-2.0
// The clock of a simulation, and its future events in a heap. One thread. It is deterministic: events of one instant
// happen in the order in which they were scheduled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/pcie/time.hpp"

namespace wherry::sim::pcie {

/// The target of an event. The event carries a number that only the handler understands.
class EventHandler {
 public:
  virtual void on_event(std::uint64_t argument) = 0;

 protected:
  ~EventHandler() = default;
};

/// It cannot be copied or moved, because components hold references. A handler must outlive its events.
class EventQueue {
 public:
  EventQueue() = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  [[nodiscard]] Time now() const noexcept { return now_; }

  /// Wakes `handler` at `at`; an instant in the past counts as now. Allocates only when more events wait than ever
  /// before.
  void schedule(Time at, EventHandler& handler, std::uint64_t argument = 0);
  /// Calls `action` at `at`. For tests and set-up, because it may allocate, unlike schedule().
  void call(Time at, std::function<void()> action);

  /// Runs until no event is left, or until the next one is later than `until`. Then the clock shows `until`, except for
  /// kNever. Returns the number of events.
  std::uint64_t run(Time until = kNever);
  /// Runs one event. False: there was none.
  bool step();
  /// run() returns after the current event.
  void stop() noexcept { stopped_ = true; }

  [[nodiscard]] Time next() const noexcept { return heap_.empty() ? kNever : heap_.front().at; }
  [[nodiscard]] std::size_t pending() const noexcept { return heap_.size(); }
  /// Events that have happened.
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

 private:
  struct Event {
    Time at;
    std::uint64_t number;  ///< of the scheduling: ties are broken by it
    EventHandler* handler;
    std::uint64_t argument;
  };
  /// Holds the actions of call().
  struct Actions final : EventHandler {
    void on_event(std::uint64_t argument) override;
    std::vector<std::function<void()>> actions;
    std::vector<std::uint32_t> free;
  };

  [[nodiscard]] static bool before(const Event& a, const Event& b) noexcept {
    return a.at != b.at ? a.at < b.at : a.number < b.number;
  }

  Time now_ = 0;
  std::uint64_t scheduled_ = 0;
  std::uint64_t events_ = 0;
  bool stopped_ = false;
  std::vector<Event> heap_;  ///< four children each
  Actions actions_;
};

/// One alarm, which may be set again or cancelled at any time at no cost. The queue holds at most one event of it for
/// each time that it was set to an *earlier* instant.
class Timer final : EventHandler {
 public:
  Timer(EventQueue& queue, EventHandler& handler, std::uint64_t argument = 0)
      : queue_(queue), handler_(handler), argument_(argument) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void set(Time at);
  void cancel() noexcept { due_ = kNever; }
  [[nodiscard]] bool armed() const noexcept { return due_ != kNever; }
  [[nodiscard]] Time due() const noexcept { return due_; }

 private:
  void on_event(std::uint64_t argument) override;

  EventQueue& queue_;
  EventHandler& handler_;
  std::uint64_t argument_;
  Time due_ = kNever;
  Time queued_ = kNever;  ///< the earliest event of ours in the queue
};

}  // namespace wherry::sim::pcie
