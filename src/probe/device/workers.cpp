// SPDX-License-Identifier: Apache-2.0
#include "probe/device/workers.hpp"

#include <sys/resource.h>

#include <utility>

namespace wherry::probe {
namespace {
std::uint64_t ns(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_usec) * 1000U;
}
}  // namespace

void Workers::start(unsigned slots, std::function<int(unsigned)> work) {
  stop();
  work_ = std::move(work);
  slots_ = std::make_unique<Slot[]>(slots);
  count_ = slots;
  ended_.store(0, std::memory_order_relaxed);
  if (slots == 1) return;
  for (unsigned i = 0; i < slots; ++i) slots_[i].thread = std::thread([this, i] { run(slots_[i], i); });
}

void Workers::run(Slot& slot, unsigned index) {
  for (;;) {
    slot.state.wait(kFree, std::memory_order_acquire);
    const std::uint32_t state = slot.state.load(std::memory_order_acquire);
    if (state == kStop) return;
    if (state == kEnded) {  // until the driver has seen it
      slot.state.wait(kEnded, std::memory_order_acquire);
      continue;
    }
    if (state != kPosted) continue;
    slot.error = work_(index);
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    slot.user_ns.store(ns(used.ru_utime), std::memory_order_relaxed);
    slot.system_ns.store(ns(used.ru_stime), std::memory_order_relaxed);
    slot.state.store(kEnded, std::memory_order_release);
    slot.state.notify_all();  // stop() may wait for it
    ended_.fetch_add(1, std::memory_order_release);
    ended_.notify_one();
  }
}

bool Workers::post(unsigned slot) {
  Slot& one = slots_[slot];
  if (one.state.load(std::memory_order_acquire) != kFree) return false;
  ++under_way_;
  if (count_ == 1) {
    one.error = work_(slot);
    one.state.store(kEnded, std::memory_order_relaxed);
    return true;
  }
  one.state.store(kPosted, std::memory_order_release);
  one.state.notify_one();
  return true;
}

unsigned Workers::poll(std::span<unsigned> done, bool wait, int& error) {
  error = 0;
  for (;;) {
    const std::uint32_t seen = ended_.load(std::memory_order_acquire);
    unsigned found = 0;
    for (unsigned i = 0; i < count_ && found < done.size(); ++i) {
      if (slots_[i].state.load(std::memory_order_acquire) != kEnded) continue;
      if (slots_[i].error != 0 && error == 0) error = slots_[i].error;
      slots_[i].state.store(kFree, std::memory_order_release);
      slots_[i].state.notify_one();
      done[found++] = i;
    }
    under_way_ -= found;
    if (found != 0 || !wait || under_way_ == 0) return found;
    ended_.wait(seen, std::memory_order_acquire);
  }
}

Path::CpuTime Workers::cpu_time() const {
  Path::CpuTime sum;
  for (unsigned i = 0; i < count_; ++i) {
    sum.user_ns += slots_[i].user_ns.load(std::memory_order_relaxed);
    sum.system_ns += slots_[i].system_ns.load(std::memory_order_relaxed);
  }
  return sum;
}

void Workers::stop() noexcept {
  for (unsigned i = 0; i < count_; ++i) {
    Slot& slot = slots_[i];
    if (!slot.thread.joinable()) continue;
    // The slot's call must end first, because it uses the memory.
    while (slot.state.load(std::memory_order_acquire) == kPosted) slot.state.wait(kPosted, std::memory_order_acquire);
    slot.state.store(kStop, std::memory_order_release);
    slot.state.notify_one();
    slot.thread.join();
  }
  slots_.reset();
  count_ = under_way_ = 0;
}

}  // namespace wherry::probe
