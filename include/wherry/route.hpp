// SPDX-License-Identifier: Apache-2.0
// route: fire-and-forget messages between the ranks of a job (paper 001). send() copies a message into a buffer that
// leaves for the destination's next hop; the receiver handles it inside its own poll().
//
//   auto runtime = wherry::route::Runtime::start();            // under `wherry run`, MPI or Slurm; else one rank alone
//   if (!runtime) return fail(runtime.status());
//   auto add = runtime->on<Update>([&](const Update& u) { table[u.index] += u.by; });
//   for (std::uint64_t i : updates) {
//     if (runtime->send(owner_of(i), add, Update{i, 1}) != wherry::StatusCode::kOk) return fail(runtime->status());
//   }
//   if (wherry::Status done = runtime->quiesce(); !done) return fail(done);   // every message sent has been handled
//
// Delivery: no message is handled twice. Once quiesce() returns ok, every message has been handled. Before that nothing
// is promised: messages that a rank has sent since its last quiesce(), or that are on their way to it, may be lost when
// it ends, and status() of the other ranks may stay ok. Order is not promised.
// Threads: one at a time for each Runtime. Handlers run in that thread.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wherry/route_detail.hpp"
#include "wherry/route_message.hpp"
#include "wherry/status.hpp"

namespace wherry::route {

/// The processor that routes messages between the ranks.
enum class Placement : std::uint8_t {
  kInline,  ///< in the ranks' own threads: no agent
  kShared,  ///< by an agent on the rank's own core (the paper's baseline, "None")
  kHost,    ///< by an agent on another core of the host ("x86")
  kDpu,     ///< by an agent on the SmartNIC: the same program under another address
};
/// "inline", "shared", "host" or "dpu"; static text.
WHERRY_API std::string_view to_string(Placement placement) noexcept;
/// The placement of that name. kInvalidArgument for another one.
WHERRY_API Result<Placement> parse_placement(std::string_view name);

/// How a rank takes part in its job.
struct Options {
  /// Unset: WHERRY_PLACEMENT if set, else kInline.
  std::optional<Placement> placement;
  /// Of one buffer; a multiple of 64. Unset: WHERRY_ROUTE_BUFFER_BYTES if set, else 32 KiB. The same on all ranks.
  std::optional<std::uint32_t> buffer_bytes;
  /// Towards each next hop; a power of two. Unset: WHERRY_ROUTE_BUFFERS if set, else 4. The same on all ranks.
  std::optional<std::uint32_t> buffers;
  /// Bytes of messages that this rank may keep back while buffers are full, and of large messages that are leaving. At
  /// least kMaxMessageBytes: start() refuses less. Beyond them send() waits; in a handler, which cannot wait, the job
  /// fails.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  /// Messages leave at the latest by the first poll() after this time; zero: at every poll().
  std::chrono::nanoseconds flush_after = std::chrono::microseconds(50);
  /// How long start() waits for the other ranks.
  std::chrono::milliseconds start_timeout{30'000};
};

/// Counts since start().
struct Statistics {
  std::uint64_t sent = 0, handled = 0;        ///< messages of this rank
  std::uint64_t forwarded_bytes = 0;          ///< for other ranks, through this one (kInline)
  std::uint64_t bytes_out = 0, bytes_in = 0;  ///< headers included
  std::uint64_t transfers = 0;                ///< times that a buffer, or a part of one, was handed on
  std::uint64_t flush_full = 0, flush_idle = 0, flush_timeout = 0, flush_explicit = 0;  ///< transfers, by cause
  std::uint64_t would_block = 0;                      ///< calls that found the pipe full
  std::uint64_t backlog_bytes = 0, backlog_high = 0;  ///< kept back: now, and at most

  /// Nanoseconds in polls that found nothing to do, from the 17th in a row on: waiting for other ranks or for full
  /// buffers.
  std::uint64_t blocked_ns = 0;
  /// Bytes a transfer; 0 before the first.
  [[nodiscard]] double average_transfer() const noexcept {
    return transfers == 0 ? 0 : static_cast<double>(bytes_out) / static_cast<double>(transfers);
  }
};

/// Names the handler of messages of type T at their destination. The same on every rank: by the order of registration,
/// or by the name that the handler was given.
template <typename T>
class Handler {
 public:
  /// None: messages to it are refused.
  constexpr Handler() noexcept = default;
  /// By its number. A number that no handler can have makes none.
  constexpr explicit Handler(std::uint32_t id) noexcept : id_(may_be_sent_to(id) ? id : 0) {}
  /// None: 0.
  [[nodiscard]] constexpr std::uint32_t id() const noexcept { return id_; }

 private:
  std::uint32_t id_ = 0;
};

/// Replies of type Reply to requests of type Request.
template <typename Request, typename Reply>
struct Service {
  std::uint32_t id = 0;  ///< of its handler; 0: none
};

/// One rank of a job.
///
/// - Threads: one at a time. Handlers run in it, inside poll(), send(), request() and the collective calls (start,
///   quiesce, reduce). They may send. They must not throw, poll or make collective calls.
/// - Ownership: a message is copied before send() returns. A handler's argument lives during the call.
/// - States: docs/guide/route-states.md lists them and the calls that each allows. Once status() is not ok, calls
///   return its code and nothing is delivered any more.
/// - The end: destruction leaves the job, without waiting for the other ranks, and calls no handler; quiesce() first
///   where messages may be on their way. Ranks that wait in a collective call for a rank that has left get
///   kUnavailable. exit(0) in the thread that uses the Runtime leaves the job, too: from then on each call fails with
///   kFailedPrecondition.
/// - fork(): in a child each call fails with kFailedPrecondition, and destruction says nothing to the job. The child
///   must not write into memory that try_buffer() returned before.
class WHERRY_API Runtime {
 public:
  /// Joins the job that this process was started in: that of `wherry run`, of a PMIx server or of an MPI launcher, or
  /// one rank alone (WHERRY_BOOTSTRAP). Collective: blocks until every rank has called it, at most
  /// Options::start_timeout. kFailedPrecondition: this process is a rank of a job already, whatever has started it.
  static Result<Runtime> start(const Options& options = {});
  Runtime(Runtime&&) noexcept;
  Runtime& operator=(Runtime&&) noexcept;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// This process, from 0 to ranks() - 1.
  [[nodiscard]] Rank rank() const noexcept;
  /// The processes of the job.
  [[nodiscard]] Rank ranks() const noexcept { return front_->ranks; }
  /// The node of this rank, from 0 to nodes() - 1.
  [[nodiscard]] std::uint32_t node() const noexcept;
  /// The nodes of the job: groups of ranks on one machine, or that `wherry run --nodes` made.
  [[nodiscard]] std::uint32_t nodes() const noexcept;
  /// The one in use, the same on all ranks.
  [[nodiscard]] Placement placement() const noexcept;
  /// A copy of the counts, of this rank alone.
  [[nodiscard]] Statistics statistics() const noexcept;
  /// One line: "rank 0 of 4 on node 0 of 2, placement host, 4 buffers of 32768 bytes, ..."
  [[nodiscard]] std::string describe() const;
  /// Ok until the job fails; then why (a rank or an agent died, say). It never becomes ok again.
  [[nodiscard]] const Status& status() const noexcept;

  // ---- handlers
  // Register the same ones on every rank, before the first poll() that could meet their messages: in the same order,
  // or, with a name that is unique on a rank, in any order. They stay until the Runtime is destroyed.
  //
  // Each collective call compares what the ranks have registered: kinds and sizes, then names or, without a name, the
  // order and the types of message and function. If they differ, it fails with kFailedPrecondition on every rank. A
  // function that is registered twice for one type needs names: without, the job fails with kAlreadyExists. Ranks that
  // run different programs must use names (docs/guide/route.md, Rules).

  /// `function(const T&)` is called for each message. `prefetch(const T&)` is called some messages earlier: it should
  /// only ask for the memory that the handler will touch, which the handler then waits for less.
  template <Plain T, typename F, typename P = detail::NoPrefetch>
    requires(!std::convertible_to<F, std::string_view>)
  Handler<T> on(F function, P prefetch = {}) {
    return on<T>({}, std::move(function), std::move(prefetch));
  }
  /// The same by name, which may come in any order.
  template <Plain T, typename F, typename P = detail::NoPrefetch>
  Handler<T> on(std::string_view name, F function, P prefetch = {}) {
    using Entry = detail::PlainEntry<T, F, P>;
    const auto info = detail::info_of<T>(detail::HandlerInfo::Kind::kPlain, name, Entry::kSize, function);
    return Handler<T>(add(std::make_unique<Entry>(std::move(function), std::move(prefetch)), info));
  }
  /// `function(ByteView)`: messages of any size. The bytes are aligned to 8.
  template <std::same_as<ByteView> T, typename F>
  Handler<T> on(F function) {
    return on<T>({}, std::move(function));
  }
  /// The same by name, which may come in any order.
  template <std::same_as<ByteView> T, typename F>
  Handler<T> on(std::string_view name, F function) {
    using Entry = detail::BytesEntry<F>;
    const auto info = detail::info_of<T>(detail::HandlerInfo::Kind::kBytes, name, 0, function);
    return Handler<T>(add(std::make_unique<Entry>(std::move(function)), info));
  }
  /// `function(T&&)`, of a type with a Codec.
  template <Coded T, typename F>
  Handler<T> on(F function) {
    return on<T>({}, std::move(function));
  }
  /// The same by name, which may come in any order.
  template <Coded T, typename F>
  Handler<T> on(std::string_view name, F function) {
    using Entry = detail::CodedEntry<T, F>;
    const auto info = detail::info_of<T>(detail::HandlerInfo::Kind::kCoded, name, 0, function);
    return Handler<T>(add(std::make_unique<Entry>(std::move(function)), info));
  }

  // ---- sending
  // A message leaves when its buffer is full, or by poll(), flush() or quiesce().

  /// Never blocks and never runs a handler. kOk: taken. Otherwise nothing was sent:
  /// - kWouldBlock: the pipe is full: poll(), then try again
  /// - kInvalidArgument: no such rank, a handler that on() has not returned, or a message that is too large
  /// - kFailedPrecondition: all ranks have completed a quiesce that this rank has not been told of: call quiesce() or
  ///   try_quiesce(), which returns ok, then send
  /// - else: the code of status()
  template <Plain T>
  [[nodiscard]] StatusCode try_send(Rank to, Handler<T> handler, const T& message) noexcept {
    return send_plain(to, handler.id(), message, detail::WhenFull::kWouldBlock);
  }
  /// The same of bytes, which are copied.
  [[nodiscard]] StatusCode try_send(Rank to, Handler<ByteView> handler, ByteView message) noexcept {
    return send_view(to, handler.id(), message, detail::WhenFull::kWouldBlock);
  }
  /// The same of a type with a Codec, whose bytes are those that its Codec writes.
  template <Coded T>
  [[nodiscard]] StatusCode try_send(Rank to, Handler<T> handler, const std::type_identity_t<T>& message) {
    return send_coded(to, handler, message, detail::WhenFull::kWouldBlock);
  }
  /// As try_send(), but never kWouldBlock. When the pipe is full, the message is kept back, up to
  /// Options::backlog_bytes. Beyond that send() blocks: it handles arriving messages, as poll() does, until there is
  /// room. A handler cannot wait: there the job fails with kResourceExhausted.
  template <Plain T>
  [[nodiscard]] StatusCode send(Rank to, Handler<T> handler, const T& message) noexcept {
    return send_plain(to, handler.id(), message, detail::WhenFull::kWait);
  }
  /// The same of bytes, which are copied.
  [[nodiscard]] StatusCode send(Rank to, Handler<ByteView> handler, ByteView message) noexcept {
    return send_view(to, handler.id(), message, detail::WhenFull::kWait);
  }
  /// The same of a type with a Codec.
  template <Coded T>
  [[nodiscard]] StatusCode send(Rank to, Handler<T> handler, const std::type_identity_t<T>& message) {
    return send_coded(to, handler, message, detail::WhenFull::kWait);
  }

  // ---- requests: messages that are answered

  /// `function(const Request&) -> Reply` answers requests. A reply is sent by a handler: if it finds no room, it is
  /// kept back, and beyond Options::backlog_bytes the job fails with kResourceExhausted. Bound the requests under way.
  template <Plain Request, Plain Reply, typename F>
  Service<Request, Reply> serve(F function) {
    return serve<Request, Reply>({}, std::move(function));
  }
  /// The same by name, which may come in any order.
  template <Plain Request, Plain Reply, typename F>
  Service<Request, Reply> serve(std::string_view name, F function) {
    const auto info = detail::info_of<Service<Request, Reply>>(detail::HandlerInfo::Kind::kService, name,
                                                               sizeof(Request) << 32 | sizeof(Reply), function);
    return {add(detail::make_server<Request, Reply>(core_.get(), std::move(function)), info)};
  }
  /// `then(const Reply&)` is called with the reply, inside a later poll(). The reply counts as a message: quiesce()
  /// waits for it. Blocks and fails as send() does. kInvalidArgument: `then` is empty.
  template <Plain Request, Plain Reply>
  [[nodiscard]] StatusCode request(Rank to, Service<Request, Reply> service, const Request& what,
                                   std::type_identity_t<std::function<void(const Reply&)>> then) {
    using Asked = detail::Asked<Request>;
    if (!then) return StatusCode::kInvalidArgument;
    const std::uint64_t number = expect(detail::make_receiver<Reply>(std::move(then)));
    const StatusCode code = send(to, Handler<Asked>(service.id), Asked{number, rank(), what});
    if (code != StatusCode::kOk) forget(number);
    return code;
  }

  // ---- progress

  /// Handles arrived messages and sends waiting ones. Never blocks. Returns the number of messages handled.
  std::uint64_t poll() noexcept;
  /// Everything sent so far leaves now, as far as there is room. Never blocks.
  void flush() noexcept;

  // ---- collective calls: all ranks make the same ones in the same order

  /// Blocks until every message that any rank has sent has been handled. This includes messages that handlers send, and
  /// those sent between two calls of a quiesce that has not ended. Handles messages meanwhile, also those that faster
  /// ranks send next. kDeadlineExceeded: not yet. The quiesce goes on: this rank may send and poll, and must call
  /// quiesce() or try_quiesce() again before another collective call. Else what status() says.
  Status quiesce(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1));
  /// The same without blocking: kOk, or kWouldBlock: call it again; in between, poll() and send at will.
  [[nodiscard]] StatusCode try_quiesce() noexcept;
  /// How reduce() combines the values.
  enum class Combine : std::uint8_t { kSum, kMin, kMax };
  /// Combines a value of each rank; every rank gets the outcome. Blocks, and handles messages meanwhile.
  /// kFailedPrecondition: in a handler, or while a quiesce is under way that has not returned ok. kInvalidArgument: no
  /// such Combine. Else what status() says.
  Result<std::uint64_t> reduce(std::uint64_t value, Combine how = Combine::kSum);
  /// The same of floating-point numbers; a sum is rounded.
  Result<double> reduce(double value, Combine how = Combine::kSum);

  // ---- low level: buffers of messages (route_message.hpp), as in the paper

  /// Space on the way to `towards` for whole messages for that rank, at most max_buffer() bytes in all. The library
  /// owns it: fill it and give it to post_buffer() before any other call. Empty: not now, for the reasons of
  /// try_send(). Never blocks.
  [[nodiscard]] std::span<std::byte> try_buffer(Rank towards, std::size_t bytes) noexcept;
  /// The first `bytes` of it are `messages` messages. Precondition: no call to the Runtime since try_buffer().
  void post_buffer(Rank towards, std::size_t bytes, std::uint64_t messages) noexcept;
  /// The most bytes that try_buffer() can give: those of a buffer, less its head.
  [[nodiscard]] std::size_t max_buffer() const noexcept;
  /// poll() without handlers: `take(ByteView)` gets the arrived messages, many at a time, headers included. The bytes
  /// live during the call. Returns how many bytes were read.
  std::uint64_t poll_buffers(const std::function<void(ByteView)>& take);

 private:
  friend struct detail::RuntimeAccess;

  explicit Runtime(std::unique_ptr<detail::RuntimeCore> core) noexcept;

  template <Plain T>
  [[nodiscard]] StatusCode send_plain(Rank to, std::uint32_t handler, const T& message,
                                      detail::WhenFull when_full) noexcept {
    if (detail::try_write(*front_, to, handler, message)) [[likely]]
      return StatusCode::kOk;
    return send_bytes(to, handler, detail::payload_of(message), when_full);
  }
  [[nodiscard]] StatusCode send_view(Rank to, std::uint32_t handler, ByteView message,
                                     detail::WhenFull when_full) noexcept {
    if (detail::try_write(*front_, to, handler, message)) [[likely]]
      return StatusCode::kOk;
    return send_bytes(to, handler, message, when_full);
  }
  template <Coded T>
  [[nodiscard]] StatusCode send_coded(Rank to, Handler<T> handler, const T& message, detail::WhenFull when_full) {
    std::vector<std::byte> bytes = std::exchange(encoded_, {});  // a handler that runs meanwhile may send, too
    bytes.clear();
    Codec<T>::write(bytes, message);
    const StatusCode code = send_view(to, handler.id(), bytes, when_full);
    if (bytes.capacity() <= kMaxKeptBytes) encoded_ = std::move(bytes);
    return code;
  }
  [[nodiscard]] StatusCode send_bytes(Rank to, std::uint32_t handler, ByteView message,
                                      detail::WhenFull when_full) noexcept;
  std::uint32_t add(std::unique_ptr<detail::HandlerEntry> entry, const detail::HandlerInfo& info);
  std::uint64_t expect(std::function<bool(ByteView)> then);
  void forget(std::uint64_t number) noexcept;

  static constexpr std::size_t kMaxKeptBytes = 64 << 10;

  detail::Front* front_ = nullptr;
  std::unique_ptr<detail::RuntimeCore> core_;
  std::vector<std::byte> encoded_;  ///< memory for the next message that goes through a Codec; up to kMaxKeptBytes
};

}  // namespace wherry::route
