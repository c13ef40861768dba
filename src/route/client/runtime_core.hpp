// SPDX-License-Identifier: Apache-2.0
// The state of one rank. A file for each step:
//   runtime_core.cpp      joins and leaves the job, and describes itself
//   runtime_send.cpp      sends messages, and keeps messages without room in the backlog
//   runtime_receive.cpp   polls: reads the inputs and calls the handlers
//   runtime_pace.cpp      decides when buffers are sent and when the core is yielded
//   runtime_together.cpp  quiesce() and reduce()
//   runtime_peers.cpp     detects that others have left or failed, and reports this rank's own departure or failure
#pragma once

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
#include "route/client/exit_watch.hpp"
#include "route/client/handlers.hpp"
#include "route/client/statistics_file.hpp"
#include "route/client/wiring.hpp"
#include "route/idle.hpp"
#include "route/internal.hpp"
#include "route/router.hpp"
#include "wherry/route.hpp"

namespace wherry::route::detail {

/// In a child of fork(), all calls fail, and the destructor sends nothing to other ranks.
class RuntimeCore : public Front, private ForkWatch {
 public:
  /// `file`: if not null, written at the end.
  RuntimeCore(const Options& options, std::unique_ptr<Wiring> wiring, std::unique_ptr<StatisticsFile> file = nullptr);
  ~RuntimeCore() override;

  [[nodiscard]] const Place& place() const noexcept { return wiring_->place(); }
  [[nodiscard]] const Wiring& wiring() const noexcept { return *wiring_; }
  [[nodiscard]] Statistics statistics() const noexcept;
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] const Status& status() const noexcept { return failure_; }
  /// Fails the job: from now on all calls return the first reason, and the other ranks get it.
  void fail(Status why) noexcept { fail({std::move(why), place().rank}); }
  /// Like fail(why), for a failure that another or an unknown rank caused.
  void fail(JobFailure failure) noexcept;
  /// Leaves the job: sends all messages, then tells the other ranks. All later calls fail.
  void leave_job() noexcept;
  /// Ranks that have left, as far as this rank knows.
  [[nodiscard]] const std::vector<Departure>& departed() const noexcept { return departed_; }

  // ---- handlers

  /// Adds a handler. 0: refused as by Handlers::add(); status() has the reason.
  std::uint32_t add(std::unique_ptr<HandlerEntry> entry, HandlerInfo info);
  [[nodiscard]] bool has_handler(std::uint32_t id) const noexcept { return handlers_.find(id) != nullptr; }

  // ---- sending

  [[nodiscard]] StatusCode send(Rank to, std::uint32_t handler, ByteView message, WhenFull when_full) noexcept;
  /// Returns a number for a request. The reply carries that number and is passed to `then`.
  std::uint64_t expect(std::function<bool(ByteView)> then);
  void forget(std::uint64_t number) noexcept { expected_.erase(number); }
  void send_reply(Rank to, std::uint64_t number, ByteView reply) noexcept;
  std::span<std::byte> try_buffer(Rank towards, std::size_t bytes) noexcept;
  void post_buffer(Rank towards, std::size_t bytes, std::uint64_t messages) noexcept;
  [[nodiscard]] std::size_t max_buffer() const noexcept { return router_.buffer_bytes(); }
  /// Sends all written messages now, also over networks, because this rank may not poll again for a while.
  void flush() noexcept;

  // ---- receiving

  std::uint64_t poll() noexcept;
  std::uint64_t poll_buffers(const std::function<void(ByteView)>& take);

  // ---- together

  [[nodiscard]] StatusCode try_quiesce() noexcept;
  Status quiesce(std::chrono::nanoseconds timeout);
  Result<std::uint64_t> reduce(std::uint64_t bits, Agreement::Combine how);

 private:
  // ---- runtime_core.cpp
  void in_child() noexcept override;
  void warn_of_losses() noexcept;

  // ---- runtime_send.cpp
  [[nodiscard]] bool try_put(Rank to, std::uint32_t handler, ByteView message) noexcept;
  void send_notice(Rank to, std::uint32_t handler, ByteView message) noexcept;
  void fail_full(std::string_view what, std::string_view remedy) noexcept;

  // ---- runtime_receive.cpp
  void drain(Input& input) noexcept;
  /// Handles messages for this rank from `at` on. Returns the first message for another rank, or null: malformed.
  const std::byte* handle(const std::byte* at, const std::byte* limit) noexcept;
  const std::byte* handle_one(const std::byte* at, const std::byte* limit, Header header) noexcept;
  const std::byte* hand_over(const std::byte* at, const std::byte* limit) noexcept;
  bool unpack(ByteView pack) noexcept;
  bool on_fragment(ByteView message) noexcept;
  bool on_reply(ByteView message) noexcept;
  bool handle_own(std::uint32_t id, ByteView message) noexcept;
  bool on_abort(ByteView message) noexcept;
  bool on_departure(ByteView message) noexcept;
  void fail_malformed() noexcept;

  // ---- runtime_pace.cpp
  /// The last step of each poll, after the inputs. `worked`: an input had messages.
  void pace(bool worked) noexcept;
  /// These inform file_ that the first message was sent or handled, and that all messages were handled.
  void note_first_message() noexcept;
  void note_quiet() noexcept;

  // ---- runtime_together.cpp
  /// Makes the steps of quiesce() that need no call of the application.
  void step_quiesce() noexcept;
  void check_mismatch() noexcept;
  void contribute(Agreement::Combine how, Agreement::Words words) noexcept;
  /// Publishes the number of rounds that this rank has concluded, as far as their outcomes have been sent.
  void conclude() noexcept;
  /// Blocks until a round's outcome has been sent to all children, because they may be waiting for it.
  void pass_outcome_on(const Deadline& deadline) noexcept;
  /// Whether sends outside of handlers must wait, because this rank has promised to send nothing.
  [[nodiscard]] bool promised() const noexcept { return phase_ == Phase::kDone || promised_; }
  [[nodiscard]] bool quiet() const noexcept { return backlog_.empty() && !busy_; }

  // ---- runtime_peers.cpp
  void look_around() noexcept;
  void on_left(Departure who) noexcept;
  /// Fails the job if this rank waits in a collective call for a rank that has left.
  void check_departed() noexcept;
  void check_undeliverable() noexcept;
  /// Whether `rank` is a next hop over a network.
  [[nodiscard]] bool bridged(Rank rank) const noexcept;
  /// Sends a notice to each next hop over a network: this rank leaves, or the job has failed.
  void tell(std::uint32_t handler, ByteView message);
  void push_notices() noexcept;

  // ---- what a rank consists of
  const Options options_;
  std::unique_ptr<Wiring> wiring_;
  ExitWatch exit_watch_;
  std::unique_ptr<StatisticsFile> file_;  ///< null: none is wanted
  Router& router_;                        ///< the wiring's; abandoned once this rank has left, and in a child of fork()
  Handlers handlers_;

  // ---- sending
  Backlog backlog_;
  std::vector<Notice> notices_;  ///< that found no room: they go ahead of the backlog, in order for each lane
  std::unordered_map<std::uint64_t, std::function<bool(ByteView)>> expected_;  ///< by number, each below next_request_
  std::uint64_t next_request_ = 1;
  std::uint64_t would_block_ = 0;

  // ---- receiving
  struct Assembly {
    Bytes message;             ///< header and payload
    std::size_t received = 0;  ///< bytes of the payload; less than all
  };
  std::uint64_t handled_ = 0;  ///< over all ranks: at most the sum of Front::sent, and equal when all is handled
  bool in_handler_ = false;    ///< poll() is reading inputs, so that a handler may be running
  bool busy_ = false;          ///< the last poll handled or forwarded something, or an input is waiting
  std::unordered_map<std::uint64_t, Assembly> assemblies_;  ///< of large messages, by source << 32 | number
  Spare spare_;                                             ///< memory for assemblies_
  const std::function<void(ByteView)>* take_ = nullptr;     ///< of poll_buffers(), while it runs
  Bytes unpacked_;                                          ///< a pack as messages with headers

  // ---- pace
  IdleTurns idle_;  ///< polls in a row that found nothing, had nothing to flush and followed no send
  std::uint64_t polls_ = 0;
  std::uint64_t sent_at_last_poll_ = 0;
  std::uint64_t blocked_ns_ = 0;
  bool communicating_ = false;  ///< the first message has been sent or handled; kept only for file_

  // ---- together
  /// The phase of quiesce(): none in progress; counting rounds; confirming that counts have not changed; all ranks have
  /// completed it, but this rank's application does not know yet.
  enum class Phase : std::uint8_t { kNone, kCounting, kConfirming, kDone } phase_ = Phase::kNone;
  Agreement agreement_;
  Agreement::Words counted_;      ///< this rank's part of the last counting round
  bool promised_ = false;         ///< it has answered "unchanged" and does not know the outcome: phase_ is kConfirming
  bool reducing_ = false;         ///< in reduce(): phase_ is kNone
  std::uint64_t registered_ = 0;  ///< signature of the handlers when the collective call began
  std::uint32_t concluded_ = 0;   ///< rounds that others may know of: at most agreement_.round()
  std::vector<std::uint32_t> lanes_of_children_;

  // ---- others
  Status failure_;          ///< the first one; ok: none. Nothing is sent or handled after it
  bool leaving_ = false;    ///< handlers are called no more: leave_job() has begun, or this is a child of fork()
  bool inherited_ = false;  ///< this process is a fork of the rank
  /// The Status of calls in a child of fork(), and after leave_job(). Both are made in advance, because allocation is
  /// not allowed then.
  Status in_child_ = inherited_by_fork("runtime", "and a child of a rank is not a rank: use it in the parent");
  Status over_{StatusCode::kFailedPrecondition, "this rank has left the job: its process is in exit()"};
  std::vector<Departure> departed_;                       ///< each rank once
  std::unordered_map<Rank, std::uint64_t> closed_since_;  ///< connections that ended without a departure; now_ns()
  std::uint64_t looks_ = 0;
};

}  // namespace wherry::route::detail
