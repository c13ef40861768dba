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
// Delivery: no message is handled twice. When quiesce() returns ok, every message has been handled. Before that, there
// is no guarantee: if a rank ends, messages that it sent since its last quiesce(), or that are on their way to it, may
// be lost, and status() of the other ranks may stay ok. Messages may arrive in any order.
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
  kShared,  ///< an agent on the rank's own core routes (the paper's baseline, "None")
  kHost,    ///< an agent on another core of the host routes ("x86")
  kDpu,     ///< an agent on the SmartNIC routes: the same program at another address
};
/// The placement's name: "inline", "shared", "host" or "dpu"; static text.
WHERRY_API std::string_view to_string(Placement placement) noexcept;
/// The placement with this name. kInvalidArgument for any other name.
WHERRY_API Result<Placement> parse_placement(std::string_view name);

/// How a rank takes part in its job.
struct Options {
  /// If unset: WHERRY_PLACEMENT from the environment, else kInline.
  std::optional<Placement> placement;
  /// Size of one buffer, a multiple of 64. Unset: WHERRY_ROUTE_BUFFER_BYTES, else 32 KiB. The same on all ranks.
  std::optional<std::uint32_t> buffer_bytes;
  /// Buffers to each next hop, a power of two. Unset: WHERRY_ROUTE_BUFFERS, else 4. The same on all ranks.
  std::optional<std::uint32_t> buffers;
  /// Limit, in bytes, for messages that this rank keeps while buffers are full, and for large messages that are
  /// leaving. start() refuses less than kMaxMessageBytes. At the limit send() waits; a handler cannot wait, so the job
  /// fails there.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  /// A message leaves at the first poll() after this time, at the latest. Zero: at every poll().
  std::chrono::nanoseconds flush_after = std::chrono::microseconds(50);
  /// How long start() waits for the other ranks.
  std::chrono::milliseconds start_timeout{30'000};
};

/// Counts since start().
struct Statistics {
  std::uint64_t sent = 0, handled = 0;        ///< messages that this rank sent and handled
  std::uint64_t forwarded_bytes = 0;          ///< bytes for other ranks that this rank passed on (kInline)
  std::uint64_t bytes_out = 0, bytes_in = 0;  ///< headers included
  std::uint64_t transfers = 0;                ///< times that a buffer, or a part of one, was passed to the next hop
  std::uint64_t flush_full = 0, flush_idle = 0, flush_timeout = 0, flush_explicit = 0;  ///< transfers, by cause
  std::uint64_t would_block = 0;                      ///< calls that found the pipe full
  std::uint64_t backlog_bytes = 0, backlog_high = 0;  ///< kept back: now, and at most

  /// Nanoseconds in polls that found nothing to do, from the 17th in a row: time spent waiting for other ranks or for
  /// full buffers.
  std::uint64_t blocked_ns = 0;
  /// Average bytes per transfer; 0 before the first.
  [[nodiscard]] double average_transfer() const noexcept {
    return transfers == 0 ? 0 : static_cast<double>(bytes_out) / static_cast<double>(transfers);
  }
};

/// Identifies the handler of messages of type T at their destination. A handler is the same on every rank because of
/// its order of registration or its name.
template <typename T>
class Handler {
 public:
  /// An empty handler: sending a message to it fails.
  constexpr Handler() noexcept = default;
  /// The handler with this number. A number that no handler can have gives an empty handler.
  constexpr explicit Handler(std::uint32_t id) noexcept : id_(may_be_sent_to(id) ? id : 0) {}
  /// The handler's number; 0 if empty.
  [[nodiscard]] constexpr std::uint32_t id() const noexcept { return id_; }

 private:
  std::uint32_t id_ = 0;
};

/// A service that answers requests of type Request with replies of type Reply.
template <typename Request, typename Reply>
struct Service {
  std::uint32_t id = 0;  ///< number of the service's handler; 0: no service
};

/// One rank of a job.
///
/// - Threads: one at a time. Handlers run in that thread, inside poll(), send(), request() and the collective calls
///   (start, quiesce, reduce). They may send. They must not throw, poll or make collective calls.
/// - Ownership: a message is copied before send() returns. A handler's argument is valid during the call.
/// - States: docs/guide/route-states.md lists the states and the calls allowed in each. When status() is not ok, calls
///   return its code, and no message is delivered any more.
/// - The end: the destructor leaves the job without waiting for other ranks or calling handlers. Call quiesce() first
///   if messages may be on their way. Ranks that wait in a collective call for a rank that has left get kUnavailable.
///   exit(0) in the thread that uses the Runtime leaves the job too: afterwards each call fails with
///   kFailedPrecondition.
/// - fork(): in a child each call fails with kFailedPrecondition, and the destructor sends nothing to the job. The
///   child must not write into memory that try_buffer() returned before the fork.
class WHERRY_API Runtime {
 public:
  /// Joins the job in which `wherry run`, a PMIx server or an MPI launcher started this process, or starts a job of one
  /// rank (WHERRY_BOOTSTRAP). Collective: blocks until every rank has called it, at most Options::start_timeout.
  /// kFailedPrecondition: this process is already a rank of a job, however it was started.
  static Result<Runtime> start(const Options& options = {});
  Runtime(Runtime&&) noexcept;
  Runtime& operator=(Runtime&&) noexcept;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// The number of this rank, from 0 to ranks() - 1.
  [[nodiscard]] Rank rank() const noexcept;
  /// The number of ranks in the job.
  [[nodiscard]] Rank ranks() const noexcept { return front_->ranks; }
  /// The number of this rank's node, from 0 to nodes() - 1.
  [[nodiscard]] std::uint32_t node() const noexcept;
  /// The number of nodes in the job. A node is the ranks on one machine, or a group made by `wherry run --nodes`.
  [[nodiscard]] std::uint32_t nodes() const noexcept;
  /// The placement in use, the same on all ranks.
  [[nodiscard]] Placement placement() const noexcept;
  /// A copy of this rank's own counts.
  [[nodiscard]] Statistics statistics() const noexcept;
  /// One line: "rank 0 of 4 on node 0 of 2, placement host, 4 buffers of 32768 bytes, ..."
  [[nodiscard]] std::string describe() const;
  /// Ok until the job fails; then the reason (a rank or an agent died, for example). The status never becomes ok again.
  [[nodiscard]] const Status& status() const noexcept;

  // ---- handlers
  // Register the same handlers on every rank, before the first poll() that may meet their messages. Use the same order,
  // or give each a name that is unique on a rank; then any order works. Handlers stay until the Runtime is destroyed.
  //
  // Each collective call compares the ranks' registrations: kinds and sizes, then names or, for a handler without a
  // name, the order and the types of message and function. If they differ, the call fails with kFailedPrecondition on
  // every rank. A function that is registered twice for one type needs names; without names the job fails with
  // kAlreadyExists. Ranks that run different programs must use names (docs/guide/route.md, Rules).

  /// Calls `function(const T&)` for each message, and `prefetch(const T&)` some messages earlier. `prefetch` should
  /// only request the memory that the handler will touch, so that the handler waits less for it.
  template <Plain T, typename F, typename P = detail::NoPrefetch>
    requires(!std::convertible_to<F, std::string_view>)
  Handler<T> on(F function, P prefetch = {}) {
    return on<T>({}, std::move(function), std::move(prefetch));
  }
  /// The same handler registered by name; then ranks may register in any order.
  template <Plain T, typename F, typename P = detail::NoPrefetch>
  Handler<T> on(std::string_view name, F function, P prefetch = {}) {
    using Entry = detail::PlainEntry<T, F, P>;
    const auto info = detail::info_of<T>(detail::HandlerInfo::Kind::kPlain, name, Entry::kSize, function);
    return Handler<T>(add(std::make_unique<Entry>(std::move(function), std::move(prefetch)), info));
  }
  /// Calls `function(ByteView)` for messages of any size. The bytes are aligned to 8.
  template <std::same_as<ByteView> T, typename F>
  Handler<T> on(F function) {
    return on<T>({}, std::move(function));
  }
  /// The same handler registered by name; then ranks may register in any order.
  template <std::same_as<ByteView> T, typename F>
  Handler<T> on(std::string_view name, F function) {
    using Entry = detail::BytesEntry<F>;
    const auto info = detail::info_of<T>(detail::HandlerInfo::Kind::kBytes, name, 0, function);
    return Handler<T>(add(std::make_unique<Entry>(std::move(function)), info));
  }
  /// Calls `function(T&&)` for messages of a type with a Codec.
  template <Coded T, typename F>
  Handler<T> on(F function) {
    return on<T>({}, std::move(function));
  }
  /// The same handler registered by name; then ranks may register in any order.
  template <Coded T, typename F>
  Handler<T> on(std::string_view name, F function) {
    using Entry = detail::CodedEntry<T, F>;
    const auto info = detail::info_of<T>(detail::HandlerInfo::Kind::kCoded, name, 0, function);
    return Handler<T>(add(std::make_unique<Entry>(std::move(function)), info));
  }

  // ---- sending
  // A message leaves when its buffer is full, or at a poll(), flush() or quiesce().

  /// Never blocks and never runs a handler. kOk: the message was accepted. Otherwise it was not sent:
  /// - kWouldBlock: the pipe is full. Call poll(), then try again
  /// - kInvalidArgument: no such rank, a handler that on() did not return, or a message that is too large
  /// - kFailedPrecondition: all ranks have completed a quiesce, and this rank has not yet received the result. Call
  ///   quiesce() or try_quiesce(), which returns ok, then send
  /// - otherwise: the code of status()
  template <Plain T>
  [[nodiscard]] StatusCode try_send(Rank to, Handler<T> handler, const T& message) noexcept {
    return send_plain(to, handler.id(), message, detail::WhenFull::kWouldBlock);
  }
  /// try_send() for bytes, which are copied.
  [[nodiscard]] StatusCode try_send(Rank to, Handler<ByteView> handler, ByteView message) noexcept {
    return send_view(to, handler.id(), message, detail::WhenFull::kWouldBlock);
  }
  /// try_send() for a type with a Codec, which writes the bytes.
  template <Coded T>
  [[nodiscard]] StatusCode try_send(Rank to, Handler<T> handler, const std::type_identity_t<T>& message) {
    return send_coded(to, handler, message, detail::WhenFull::kWouldBlock);
  }
  /// As try_send(), but never returns kWouldBlock. If the pipe is full, the message is kept, up to
  /// Options::backlog_bytes. At that limit send() blocks: like poll(), it handles arriving messages until there is
  /// room. A handler cannot wait: the job fails there with kResourceExhausted.
  template <Plain T>
  [[nodiscard]] StatusCode send(Rank to, Handler<T> handler, const T& message) noexcept {
    return send_plain(to, handler.id(), message, detail::WhenFull::kWait);
  }
  /// send() for bytes, which are copied.
  [[nodiscard]] StatusCode send(Rank to, Handler<ByteView> handler, ByteView message) noexcept {
    return send_view(to, handler.id(), message, detail::WhenFull::kWait);
  }
  /// send() for a type with a Codec.
  template <Coded T>
  [[nodiscard]] StatusCode send(Rank to, Handler<T> handler, const std::type_identity_t<T>& message) {
    return send_coded(to, handler, message, detail::WhenFull::kWait);
  }

  // ---- requests: messages that are answered

  /// `function(const Request&) -> Reply` answers requests. A handler sends the reply: without room it is kept, and
  /// beyond Options::backlog_bytes the job fails with kResourceExhausted. So limit the number of open requests.
  template <Plain Request, Plain Reply, typename F>
  Service<Request, Reply> serve(F function) {
    return serve<Request, Reply>({}, std::move(function));
  }
  /// The same service registered by name; then ranks may register in any order.
  template <Plain Request, Plain Reply, typename F>
  Service<Request, Reply> serve(std::string_view name, F function) {
    const auto info = detail::info_of<Service<Request, Reply>>(detail::HandlerInfo::Kind::kService, name,
                                                               sizeof(Request) << 32 | sizeof(Reply), function);
    return {add(detail::make_server<Request, Reply>(core_.get(), std::move(function)), info)};
  }
  /// Calls `then(const Reply&)` with the reply, inside a later poll(). The reply counts as a message: quiesce() waits
  /// for it. Blocks and fails as send() does. kInvalidArgument: `then` is empty.
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
  /// Passes on the messages of earlier sends that still wait in this rank, as far as there is room. Never blocks.
  void flush() noexcept;

  // ---- collective calls: all ranks make the same ones in the same order

  /// Blocks until every message that any rank has sent has been handled. These include messages from handlers, and
  /// messages sent between two calls of an unfinished quiesce. Meanwhile handles messages, including the next ones of
  /// faster ranks. kDeadlineExceeded: the quiesce is not finished. This rank may send and poll, and must call quiesce()
  /// or try_quiesce() again before another collective call. Otherwise returns status().
  Status quiesce(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1));
  /// As quiesce(), without blocking. kWouldBlock: call it again; poll() and send are allowed in between.
  [[nodiscard]] StatusCode try_quiesce() noexcept;
  /// How reduce() combines the values.
  enum class Combine : std::uint8_t { kSum, kMin, kMax };
  /// Combines one value from each rank; every rank gets the result. Blocks, and handles messages meanwhile.
  /// kFailedPrecondition: inside a handler, or a quiesce has begun and has not yet returned ok. kInvalidArgument:
  /// unknown `how`. Otherwise returns status().
  Result<std::uint64_t> reduce(std::uint64_t value, Combine how = Combine::kSum);
  /// Combines floating-point numbers; a sum is rounded.
  Result<double> reduce(double value, Combine how = Combine::kSum);

  // ---- low level: buffers of messages (route_message.hpp), as in the paper

  /// Space for whole messages on the way to `towards`, at most max_buffer() bytes. The library owns the space: fill it
  /// and pass it to post_buffer() before any other call. Empty: not possible now, for the same reasons as in
  /// try_send(). Never blocks.
  [[nodiscard]] std::span<std::byte> try_buffer(Rank towards, std::size_t bytes) noexcept;
  /// Posts the first `bytes` of the buffer, with `messages` messages. Precondition: no other call since try_buffer().
  void post_buffer(Rank towards, std::size_t bytes, std::uint64_t messages) noexcept;
  /// The most bytes that try_buffer() can return: a buffer without its header.
  [[nodiscard]] std::size_t max_buffer() const noexcept;
  /// poll() without handlers: `take(ByteView)` gets many arrived messages at a time, headers included. The bytes are
  /// valid during the call. Returns the number of bytes read.
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
