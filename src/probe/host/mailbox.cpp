// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/fd.hpp"
#include "base/random.hpp"
#include "base/try.hpp"
#include "probe/host/child.hpp"
#include "probe/host/paths.hpp"

namespace wherry::probe {
namespace {

constexpr unsigned kMostDepth = 64;
constexpr std::size_t kWakeBytes = 64;
constexpr std::uint64_t kNapNs = 50'000;
constexpr std::uint64_t kAsleepNs = 20'000;  // from "I go to sleep" until the other side surely does

/// In shared memory. One side posts requests; the other completes them in order.
struct Ring {
  alignas(64) std::atomic<std::uint32_t> posted{0};    // a futex word
  alignas(64) std::atomic<std::uint32_t> finished{0};  // requests, of all kinds
  alignas(64) std::atomic<std::uint32_t> sleeps{0};    // 1: the child is about to sleep, or does
  alignas(64) std::array<Request, kMostDepth + 1> requests;
};

bool sleeps_in_kernel(Waiting waiting) noexcept { return waiting != Waiting::kSpin && waiting != Waiting::kYield; }

const char* id_of(Waiting waiting) {
  switch (waiting) {
    case Waiting::kSpin:
      return "wake.spin";
    case Waiting::kYield:
      return "wake.yield";
    case Waiting::kFutex:
      return "wake.futex";
    case Waiting::kEventfd:
      return "wake.eventfd";
    case Waiting::kEpoll:
      return "wake.epoll";
    case Waiting::kNap:
      return "wake.nap";
  }
  return "wake.unknown";
}

/// For each request, the child copies a slot from its source to shared memory. The wake-up
/// paths differ in how the child waits for a request. This side polls for completion.
class Mailbox final : public ChildPath {
 public:
  Mailbox(PathInfo info, Waiting waiting, bool wake) : ChildPath(std::move(info)), waiting_(waiting), wake_(wake) {
    keep_private(false, false);
  }
  ~Mailbox() override { Mailbox::close(); }

  [[nodiscard]] Status accepts(const Shape& shape) const override {
    if (wake_ && (shape.bytes != kWakeBytes || shape.depth != 1))
      return {StatusCode::kUnsupported, fmt::format("a wake-up carries {} bytes, one at a time", kWakeBytes)};
    const CacheState state = wake_ ? CacheState::kWarm : CacheState::kRemote;
    if (shape.bytes > 0 && shape.depth >= 1 && shape.depth <= kMostDepth && shape.channels == 1 &&
        shape.notice == Notice::kPolled && shape.cache == state && shape.pattern == Pattern::kSequential &&
        shape.align <= 4096 && shape.flow == Flow::kC2H)
      return ok_status();
    return {StatusCode::kUnsupported,
            fmt::format("a ring is C2H, sequential and polled, at most {} deep; the other core wrote the data last",
                        kMostDepth)};
  }
  [[nodiscard]] Work work(const Shape& shape) const override {
    Work work = ChildPath::work(shape);
    if (wake_) work.bytes = 0;  // how fast lines go is not what it is about
    if (sleeps_in_kernel(waiting_)) work.per_restore = 1;
    return work;
  }
  void prepare(std::uint64_t seed) override {
    random_ = SplitMix64(seed);
    ChildPath::prepare(seed);
  }
  /// Waits until the child sleeps. For naps, it also waits for a random
  /// part of a nap, so that a request may arrive at any moment of one.
  void restore() override {
    if (!sleeps_in_kernel(waiting_)) return;
    std::uint64_t count = 0;
    while (ring_->sleeps.load(std::memory_order_acquire) == 0) {
      spin(count);
      if (count % 65536 == 0 && !child().alive()) return;
    }
    const std::uint64_t pause = waiting_ == Waiting::kNap ? random_.below(2 * kNapNs) : kAsleepNs;
    for (const std::uint64_t begin = now_ns(); now_ns() - begin < pause;) spin(count);
  }
  [[nodiscard]] bool try_post(unsigned slot) override {
    note_posted(slot);
    queue_[last_++ % kMostDepth] = slot;
    return ask({.op = Request::kTransfer, .slot = slot});
  }
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    const std::uint32_t ready = ring_->finished.load(std::memory_order_acquire) - others_;
    unsigned count = 0;
    while (first_ != ready) done[count++] = queue_[first_++ % kMostDepth];
    return count;
  }

 private:
  Status connect(const Shape& /*shape*/) override {
    WHERRY_ASSIGN(memory_, Mapping::make(sizeof(Ring), Mapping::Kind::kShared));
    ring_ = new (memory_.data().data()) Ring;
    first_ = last_ = others_ = 0;
    if (waiting_ != Waiting::kEventfd && waiting_ != Waiting::kEpoll) return ok_status();
    bell_ = Fd(eventfd(0, EFD_CLOEXEC));
    if (waiting_ == Waiting::kEpoll) epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (!bell_ || (epoll_ && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &event) != 0))
      return {StatusCode::kResourceExhausted, fmt::format("no eventfd: {}", std::strerror(errno))};
    return ok_status();
  }

  void serve() override {
    for (std::uint32_t handled = 0;;) {
      await(handled);
      const Request request = ring_->requests[handled % ring_->requests.size()];
      if (request.op == Request::kTransfer)
        std::memcpy(destination(request.slot), source(request.slot), layout().bytes);
      else
        answer(request);
      ring_->finished.store(++handled, std::memory_order_release);
    }
  }
  /// Called in the child: waits until more than `handled` requests have been posted.
  void await(std::uint32_t handled) noexcept {
    const auto there = [&] { return ring_->posted.load(std::memory_order_acquire) != handled; };
    std::uint64_t count = 0;
    if (waiting_ == Waiting::kSpin)
      while (!there()) spin(count);
    if (waiting_ == Waiting::kYield)
      while (!there()) sched_yield();
    if (!sleeps_in_kernel(waiting_)) return;
    ring_->sleeps.store(1, std::memory_order_seq_cst);
    while (!there()) sleep(handled);
    ring_->sleeps.store(0, std::memory_order_release);
  }
  void sleep(std::uint32_t handled) noexcept {
    std::uint64_t rung = 0;
    switch (waiting_) {
      case Waiting::kFutex:
        syscall(SYS_futex, &ring_->posted, FUTEX_WAIT, handled, nullptr, nullptr, 0);
        break;
      case Waiting::kEpoll: {
        epoll_event event{};
        (void)epoll_wait(epoll_.get(), &event, 1, -1);
        (void)!::read(bell_.get(), &rung, sizeof rung);
        break;
      }
      case Waiting::kEventfd:
        (void)!::read(bell_.get(), &rung, sizeof rung);
        break;
      default: {
        const timespec nap{0, static_cast<long>(kNapNs)};
        nanosleep(&nap, nullptr);
      }
    }
  }
  bool ask(const Request& request) noexcept override {
    const std::uint32_t posted = ring_->posted.load(std::memory_order_relaxed);
    ring_->requests[posted % ring_->requests.size()] = request;
    if (request.op != Request::kTransfer) ++others_;
    ring_->posted.store(posted + 1, std::memory_order_seq_cst);
    if (bell_) {
      const std::uint64_t one = 1;
      return ::write(bell_.get(), &one, sizeof one) == sizeof one;
    }
    if (waiting_ == Waiting::kFutex && ring_->sleeps.load(std::memory_order_seq_cst) != 0)
      syscall(SYS_futex, &ring_->posted, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    return true;
  }
  void disconnect() noexcept override {
    ring_ = nullptr;
    memory_.reset();
    bell_.reset();
    epoll_.reset();
  }

  Waiting waiting_;
  bool wake_;
  SplitMix64 random_{0};
  Mapping memory_;
  Ring* ring_ = nullptr;
  Fd bell_, epoll_;
  std::array<unsigned, kMostDepth> queue_{};  ///< slots under way, in order
  std::uint32_t first_ = 0, last_ = 0;        ///< transfers that have been taken, and posted
  std::uint32_t others_ = 0;  ///< requests of other kinds, none of which is under way when one is posted
};

}  // namespace

std::unique_ptr<Path> make_shm() {
  return std::make_unique<Mailbox>(
      PathInfo{.id = "ipc.shm", .group = "ipc", .from = "caches of another core", .to = "shared memory"},
      Waiting::kSpin, false);
}

std::unique_ptr<Path> make_wake(Waiting waiting) {
  return std::make_unique<Mailbox>(
      PathInfo{.id = id_of(waiting),
               .group = "wake",
               .from = "a process on another core",
               .to = "shared memory",
               .note = "from the call until the woken process has answered with a line of 64 bytes"},
      waiting, true);
}

}  // namespace wherry::probe
