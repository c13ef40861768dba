// SPDX-License-Identifier: Apache-2.0
// One rank: its router, its handlers, what it holds back, and how it finds out that all is done.
#pragma once

#include <pthread.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/fork.hpp"
#include "route/client/agreement.hpp"
#include "route/client/backlog.hpp"
#include "route/client/handlers.hpp"
#include "route/client/statistics_file.hpp"
#include "route/client/wiring.hpp"
#include "route/internal.hpp"
#include "route/router.hpp"
#include "wherry/route.hpp"

namespace wherry::route::detail {

class RuntimeCore;
/// While it lives, an exit() of the process is seen by other ranks as the end of this rank's part in the job. With
/// status 0, and in the thread that uses the runtime, it is a farewell like the destructor's; otherwise only those that
/// share memory with this rank learn that it has left.
class Alive {
 public:
  Alive(Presence presence, RuntimeCore& core);
  ~Alive();
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  /// The calling thread uses the runtime.
  void used_here() noexcept { user_.store(pthread_self(), std::memory_order_relaxed); }

 private:
  friend struct Living;
  void at_exit(int status) noexcept;
  const Presence presence_;
  RuntimeCore& core_;
  std::atomic<pthread_t> user_{pthread_self()};
};

/// In a child of fork() every call fails and the destructor says nothing to other ranks.
class RuntimeCore : public Front, private ForkWatch {
 public:
  /// `file`, if any, is written at the end.
  RuntimeCore(const Options& options, std::unique_ptr<Wiring> wiring, std::unique_ptr<StatisticsFile> file = nullptr);
  ~RuntimeCore() override;

  [[nodiscard]] const Place& place() const noexcept { return wiring_->place(); }
  [[nodiscard]] const Wiring& wiring() const noexcept { return *wiring_; }
  [[nodiscard]] Statistics statistics() const noexcept;
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] const Status& status() const noexcept { return failure_; }
  /// The job cannot go on: from now on all calls say so, and the other ranks are told. The first reason counts.
  void fail(Status why) noexcept { fail({std::move(why), place().rank}); }
  /// The same, where another rank has caused it, or none is known to have.
  void fail(Breakdown breakdown) noexcept;
  /// This rank's part in the job is over: what it sent leaves, and the others are told. All calls fail from now on.
  void leave_job() noexcept;
  void warn_of_losses() noexcept;
  /// Ranks that are known to take no part any more.
  [[nodiscard]] const std::vector<Departure>& departed() const noexcept { return departed_; }

  /// 0: refused, as Handlers::add() says; status() says why.
  std::uint32_t add(std::unique_ptr<HandlerEntry> entry, HandlerInfo info);
  [[nodiscard]] bool has_handler(std::uint32_t id) const noexcept { return handlers_.find(id) != nullptr; }
  [[nodiscard]] StatusCode send(Rank to, std::uint32_t handler, ByteView message, WhenFull when_full) noexcept;
  std::uint64_t poll() noexcept;
  void flush(Flush why) noexcept;
  /// The application's flush().
  void flush_now() noexcept;

  [[nodiscard]] StatusCode try_quiesce() noexcept;
  Status quiesce(std::chrono::nanoseconds timeout);
  Result<std::uint64_t> reduce(std::uint64_t bits, Agreement::Combine how);

  std::uint64_t expect(std::function<bool(ByteView)> then);
  void forget(std::uint64_t number) noexcept { expected_.erase(number); }
  void send_reply(Rank to, std::uint64_t number, ByteView reply) noexcept;

  std::span<std::byte> try_buffer(Rank towards, std::size_t bytes) noexcept;
  void post_buffer(Rank towards, std::size_t bytes, std::uint64_t messages) noexcept;
  [[nodiscard]] std::size_t max_buffer() const noexcept { return router_.largest(); }
  std::uint64_t poll_buffers(const std::function<void(ByteView)>& take);

 private:
  void drain(Input& input) noexcept;
  /// Handles messages for this rank; returns the first one that is another's, or null: malformed.
  const std::byte* handle(const std::byte* at, const std::byte* limit) noexcept;
  const std::byte* handle_one(const std::byte* at, const std::byte* limit, Header header) noexcept;
  bool unpack(ByteView pack) noexcept;
  const std::byte* hand_over(const std::byte* at, const std::byte* limit) noexcept;
  bool on_fragment(ByteView message) noexcept;
  bool on_reply(ByteView message) noexcept;
  [[nodiscard]] bool try_put(Rank to, std::uint32_t handler, ByteView message) noexcept;
  void fail_malformed() noexcept;
  void fail_full(std::string_view what, std::string_view remedy) noexcept;
  void send_internal(Rank to, std::uint32_t handler, ByteView message) noexcept;
  /// What it does after the inputs: backlog, flushing, agreement, the job's health.
  void settle(bool worked) noexcept;
  void in_child() noexcept override;
  void fall_silent() noexcept;
  void look_around() noexcept;
  void on_left(Departure who) noexcept;
  /// Fails when this rank waits, in a collective call, for one that has left.
  void check_departed() noexcept;
  void check_undeliverable() noexcept;
  /// Next hops over a network learn by messages that this rank leaves or has failed.
  void tell(std::uint32_t handler, ByteView message);
  /// Tries those of the library's own messages that are still due.
  void push_news() noexcept;
  /// Flushes, and lets what is flushed for a network leave now: this rank may not poll again for a while.
  void send_out() noexcept;
  /// Others may know of the rounds that this rank has concluded: the outcomes are on their way.
  void conclude() noexcept;
  /// Returns when the outcome of a round has left for all children, which may wait for it and for nothing else.
  void pass_outcome_on(const Deadline& deadline) noexcept;
  /// For the statistics' file: the first message, or none are left.
  void note_first_message() noexcept;
  void note_quiet() noexcept;
  /// The steps of quiesce() that need no call of the application.
  void step_quiesce() noexcept;
  void check_mismatch() noexcept;
  void contribute(Agreement::Combine how, Agreement::Words words) noexcept;
  /// Whether a message that is not sent by a handler must wait: this rank has promised to send none.
  [[nodiscard]] bool promised() const noexcept { return phase_ == Phase::kDone || promised_; }
  [[nodiscard]] bool quiet() const noexcept { return backlog_.empty() && !busy_; }

  const Options options_;
  std::unique_ptr<Wiring> wiring_;
  Alive alive_;
  std::unique_ptr<StatisticsFile> file_;
  Router& router_;
  Handlers handlers_;
  Backlog backlog_;
  Agreement agreement_;

  struct Assembly {
    Bytes message;  ///< header and payload
    std::size_t received = 0;
  };
  Spare spare_;                                             ///< for assemblies_
  std::unordered_map<std::uint64_t, Assembly> assemblies_;  ///< by source << 32 | number
  std::unordered_map<std::uint64_t, std::function<bool(ByteView)>> expected_;
  std::uint64_t next_request_ = 1;
  const std::function<void(ByteView)>* take_ = nullptr;
  Bytes unpacked_;  ///< for take_

  /// Of quiesce(): none is under way; counting rounds; asked whether the counts have changed; over on all ranks, but
  /// the application of this one has not been told.
  enum class Phase : std::uint8_t { kNone, kCounting, kConfirming, kDone } phase_ = Phase::kNone;
  Agreement::Words counted_;      ///< this rank's part of the last counting round
  bool promised_ = false;         ///< it has answered "unchanged" and does not know the outcome
  std::uint64_t registered_ = 0;  ///< signature of the handlers when the collective call began
  Status failure_;
  Status in_child_ = inherited_by_fork("runtime", "and a child of a rank is not a rank: use it in the parent");
  Status over_{StatusCode::kFailedPrecondition, "this rank has left the job: its process is in exit()"};
  bool silent_ = false;     ///< takes and sends nothing: it has left, or this process is a fork of the rank
  bool inherited_ = false;  ///< this process is a fork of the rank
  bool in_handler_ = false;
  bool busy_ = false;  ///< the last poll handled or forwarded something, or an input is waiting
  std::uint64_t handled_ = 0;
  std::uint64_t sent_at_last_poll_ = 0;
  std::uint64_t flush_at_ = 0;
  std::uint64_t idle_polls_ = 0, polls_ = 0;
  bool leaving_ = false;
  bool reducing_ = false;
  bool communicating_ = false;  ///< the first message has been sent or handled; kept only for file_
  std::vector<Departure> departed_;
  std::unordered_map<Rank, std::uint64_t>
      silent_since_;  ///< ranks that have left without a message; CLOCK_MONOTONIC ns
  struct News {
    Rank to;
    std::uint32_t handler;
    Bytes message;
  };
  std::vector<News> news_;  ///< the library's own messages that found no room: they go ahead of the backlog
  std::vector<std::uint32_t> lanes_of_children_;
  std::uint32_t concluded_ = 0;  ///< rounds that others may know of
  std::uint64_t looks_ = 0;
  std::uint64_t would_block_ = 0, blocked_ns_ = 0;
};

}  // namespace wherry::route::detail
