// SPDX-License-Identifier: Apache-2.0
// route: fire-and-forget messages between the ranks of a job (paper 001). A message is copied into a buffer that is on
// its way to the destination's next hop; the receiver handles it inside its own poll(). Order is not promised. No
// message is handled twice. Every message has been handled once quiesce() says ok: after that call, not before. What a
// rank has sent since its last quiesce(), or what is on its way to it, may be lost when it ends, and status() of the
// others may stay ok.
//
//   auto runtime = wherry::route::Runtime::start();            // under `wherry run`, MPI or Slurm; else one rank alone
//   if (!runtime) return fail(runtime.status());
//   auto add = runtime->on<Update>([&](const Update& u) { table[u.index] += u.by; });
//   for (std::uint64_t i : updates) {
//     if (runtime->send(owner_of(i), add, Update{i, 1}) != wherry::StatusCode::kOk) return fail(runtime->status());
//   }
//   if (wherry::Status done = runtime->quiesce(); !done) return fail(done);   // every message sent has been handled
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

#include "wherry/route_handler.hpp"
#include "wherry/route_message.hpp"
#include "wherry/status.hpp"

namespace wherry::route {

/// Where messages are routed between the ranks.
enum class Placement : std::uint8_t {
  kInline,  ///< in the ranks' own threads: no agent
  kShared,  ///< by an agent on the rank's own core (the paper's baseline, "None")
  kHost,    ///< by an agent on another core of the host ("x86")
  kDpu,     ///< by an agent on the SmartNIC: the same program under another address
};
WHERRY_API std::string_view to_string(Placement placement) noexcept;
WHERRY_API Result<Placement> parse_placement(std::string_view name);

struct Options {
  /// Unset: WHERRY_PLACEMENT if set, else kInline.
  std::optional<Placement> placement;
  /// Unset: WHERRY_ROUTE_BUFFER_BYTES if set, else 32 KiB. Of one buffer; a multiple of 64. All ranks must agree.
  std::optional<std::uint32_t> buffer_bytes;
  /// Unset: WHERRY_ROUTE_BUFFERS if set, else 4. On the way to each next hop; a power of two. All ranks must agree.
  std::optional<std::uint32_t> buffers;
  /// Bytes of messages that this rank may hold back because buffers are full, and of large messages that are leaving.
  /// At least kMaxMessageBytes: start() refuses less. send() waits when they are used up; in a handler, which cannot
  /// wait, the job fails.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  /// Messages leave at the latest by the first poll() after this time; zero: at every poll().
  std::chrono::nanoseconds flush_after = std::chrono::microseconds(50);
  /// How long start() waits for the other ranks.
  std::chrono::milliseconds start_timeout{30'000};
};

/// Counts since start().
struct Statistics {
  std::uint64_t sent = 0, handled = 0;        ///< messages of this rank
  std::uint64_t forwarded_bytes = 0;          ///< for other ranks, on their way through this one (kInline)
  std::uint64_t bytes_out = 0, bytes_in = 0;  ///< headers included
  std::uint64_t transfers = 0;                ///< times that a buffer, or a part of one, was handed on
  std::uint64_t flush_full = 0, flush_idle = 0, flush_timeout = 0, flush_explicit = 0;  ///< why they were
  std::uint64_t would_block = 0;                      ///< calls that found the pipe full
  std::uint64_t backlog_bytes = 0, backlog_high = 0;  ///< now, and at most
  /// In calls that found nothing to do, from the 17th such poll in a row on: waiting for others, or for full buffers.
  std::uint64_t blocked_ns = 0;
  [[nodiscard]] double average_transfer() const noexcept {
    return transfers == 0 ? 0 : static_cast<double>(bytes_out) / static_cast<double>(transfers);
  }
};

/// Names what becomes of a message of type T at its destination. The same on every rank: by the order of registration,
/// or by the name that the handler was given.
template <typename T>
class Handler {
 public:
  /// None: messages to it are refused.
  constexpr Handler() noexcept = default;
  /// Of its number; one that no handler can have makes none.
  constexpr explicit Handler(std::uint32_t id) noexcept : id_(may_be_sent_to(id) ? id : 0) {}
  /// None: 0.
  [[nodiscard]] constexpr std::uint32_t id() const noexcept { return id_; }

 private:
  std::uint32_t id_ = 0;
};

namespace detail {

/// The open buffer towards one next hop: the part that an inlined send needs.
struct LaneFront {
  std::byte* at = nullptr;        ///< where the next message goes
  std::byte* end = nullptr;       ///< may be before `at`: no room for whole messages without the library's help
  std::uint64_t pack = 0;         ///< the header that the messages of the open pack share; none is open: 0
  std::byte* pack_end = nullptr;  ///< where the open pack must end

  [[nodiscard]] bool has_room(std::size_t stride) const noexcept {
    return end - at >= static_cast<std::ptrdiff_t>(stride);
  }
  /// Whether a message with this header can join the open pack.
  [[nodiscard]] bool pack_takes(Header header, std::size_t step) const noexcept {
    return pack == header.word && pack_end - at >= static_cast<std::ptrdiff_t>(step);
  }
  /// Appends a message, whose payload `copy(to)` writes. Precondition: `stride` is the header's, and there is room.
  template <typename Copy>
  void append(Header header, std::size_t stride, Copy copy) noexcept {
    std::byte* const to = at;
    header.store(to);
    copy(to + sizeof header);
    at = to + stride;
  }
  /// Appends a message to the open pack: `step` bytes, which `copy(to)` writes, and no header. Precondition: the pack
  /// takes it.
  template <typename Copy>
  void append_packed(std::size_t step, Copy copy) noexcept {
    std::byte* const to = at;
    copy(to);
    at = to + step;
  }
};

struct Front {
  LaneFront* const* lane_of = nullptr;  ///< by rank
  Rank ranks = 0;
  std::uint64_t sent = 0;
};

/// When the pipe is full. kAbsorb: keep the message back while the budget lasts, else would-block; never handles
/// others. kWait: keep it back, and beyond the budget handle messages until there is room (in a handler: the job
/// fails). kMust: keep it back whatever the budget.
enum class WhenFull : std::uint8_t { kWouldBlock, kAbsorb, kWait, kMust };

class RuntimeCore;

}  // namespace detail

/// Answers of type Reply to requests of type Request.
template <typename Request, typename Reply>
struct Service {
  std::uint32_t id = 0;
};

/// One rank. One thread at a time may use it, and handlers run in that thread, inside poll(), send(), request() and the
/// collective calls. Handlers may send, but neither poll nor make collective calls, and must not throw. Destruction
/// leaves the job, without waiting for the others, and calls no handler: call quiesce() first where messages may still
/// be on their way. Ranks that wait in a collective call for one that has left get kUnavailable.
/// exit(0) in the thread that uses the Runtime leaves the job, too: then each call fails with kFailedPrecondition.
/// In a child of fork() each call fails with kFailedPrecondition, and destruction says nothing to the job. The child
/// must not write into what try_buffer() returned before. docs/route-states.md has the states of a Runtime and the
/// calls that each allows.
class WHERRY_API Runtime {
 public:
  /// Joins the job that this process was started in: that of `wherry run` (WHERRY_BOOTSTRAP), of an MPI launcher, or
  /// one rank alone. Collective: blocks until every rank is there. kFailedPrecondition: this process is a rank of a job
  /// already, whatever has started it; one Runtime at a time.
  static Result<Runtime> start(const Options& options = {});
  Runtime(Runtime&&) noexcept;
  Runtime& operator=(Runtime&&) noexcept;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  [[nodiscard]] Rank rank() const noexcept;
  [[nodiscard]] Rank ranks() const noexcept { return front_->ranks; }
  [[nodiscard]] std::uint32_t node() const noexcept;
  [[nodiscard]] std::uint32_t nodes() const noexcept;
  [[nodiscard]] Placement placement() const noexcept;
  [[nodiscard]] Statistics statistics() const noexcept;
  /// One line: "rank 0 of 4 on node 0 of 2, placement host, 4 buffers of 32768 bytes, ..."
  [[nodiscard]] std::string describe() const;
  /// Ok while the job is whole; else why it is not (a rank or an agent died, say). Then nothing is delivered any more.
  [[nodiscard]] const Status& status() const noexcept;

  // ---- handlers: the same ones, in the same order, on every rank, before the first poll() that could meet their
  // messages. Handlers with a name may be registered in any order; the name is unique on a rank. Each collective call
  // compares what the ranks have registered (kinds and sizes; names, or the types of messages and functions in their
  // order): kFailedPrecondition on every rank if they differ. A function that is registered twice for one type needs
  // names: without, the job fails with kAlreadyExists. So do ranks that are different programs: docs/route.md, Rules.

  /// `function(const T&)` is called for each message. With `prefetch(const T&)`, which is called some messages earlier
  /// and should ask for the memory that the handler will touch, and nothing else, it waits less for that.
  template <Plain T, typename F, typename P = detail::NoPrefetch>
    requires(!std::convertible_to<F, std::string_view>)
  Handler<T> on(F function, P prefetch = {}) {
    return on<T>({}, std::move(function), std::move(prefetch));
  }
  template <Plain T, typename F, typename P = detail::NoPrefetch>
  Handler<T> on(std::string_view name, F function, P prefetch = {}) {
    using Entry = detail::PlainEntry<T, F, P>;
    const auto info = detail::info_of<T>(detail::HandlerInfo::Kind::kPlain, name, Entry::kSize, function);
    return Handler<T>(add(std::make_unique<Entry>(std::move(function), std::move(prefetch)), info));
  }
  /// `function(ByteView)`: messages of any size. The bytes, aligned to 8, live during the call.
  template <std::same_as<ByteView> T, typename F>
  Handler<T> on(F function) {
    return on<T>({}, std::move(function));
  }
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
  template <Coded T, typename F>
  Handler<T> on(std::string_view name, F function) {
    using Entry = detail::CodedEntry<T, F>;
    const auto info = detail::info_of<T>(detail::HandlerInfo::Kind::kCoded, name, 0, function);
    return Handler<T>(add(std::make_unique<Entry>(std::move(function)), info));
  }

  // ---- sending: the message is copied, the caller keeps its own. It leaves when its buffer is full, or by poll(),
  // flush() or quiesce().

  /// kOk: taken. Otherwise nothing was sent. kWouldBlock: the pipe is full, poll() and try again. kInvalidArgument: no
  /// such rank, a handler that on() has not returned, or too large. kFailedPrecondition: a quiesce() or try_quiesce()
  /// of this rank that had not ended has been completed by all ranks meanwhile: call it, it says ok, then send. Else
  /// the code of status().
  template <Plain T>
  [[nodiscard]] StatusCode try_send(Rank to, Handler<T> handler, const T& message) noexcept {
    return send_plain(to, handler.id(), message, detail::WhenFull::kWouldBlock);
  }
  [[nodiscard]] StatusCode try_send(Rank to, Handler<ByteView> handler, ByteView message) noexcept {
    return send_view(to, handler.id(), message, detail::WhenFull::kWouldBlock);
  }
  /// As try_send, but never kWouldBlock. When the pipe is full, the message is kept back, up to Options::backlog_bytes;
  /// beyond, send() handles what arrives until there is room. A handler cannot wait: there the job fails with
  /// kResourceExhausted. So, outside of handlers, other handlers may run before send() returns, as with poll().
  template <Plain T>
  [[nodiscard]] StatusCode send(Rank to, Handler<T> handler, const T& message) noexcept {
    return send_plain(to, handler.id(), message, detail::WhenFull::kWait);
  }
  [[nodiscard]] StatusCode send(Rank to, Handler<ByteView> handler, ByteView message) noexcept {
    return send_view(to, handler.id(), message, detail::WhenFull::kWait);
  }
  template <Coded T>
  [[nodiscard]] StatusCode try_send(Rank to, Handler<T> handler, const std::type_identity_t<T>& message) {
    return send_coded(to, handler, message, detail::WhenFull::kWouldBlock);
  }
  template <Coded T>
  [[nodiscard]] StatusCode send(Rank to, Handler<T> handler, const std::type_identity_t<T>& message) {
    return send_coded(to, handler, message, detail::WhenFull::kWait);
  }

  // ---- requests: a message that is answered by one

  /// `function(const Request&) -> Reply` answers requests. Replies that find no room are kept back, as what handlers
  /// send: beyond Options::backlog_bytes the job fails with kResourceExhausted. Bound the requests under way.
  template <Plain Request, Plain Reply, typename F>
  Service<Request, Reply> serve(F function) {
    return serve<Request, Reply>({}, std::move(function));
  }
  template <Plain Request, Plain Reply, typename F>
  Service<Request, Reply> serve(std::string_view name, F function) {
    const auto info = detail::info_of<Service<Request, Reply>>(detail::HandlerInfo::Kind::kService, name,
                                                               sizeof(Request) << 32 | sizeof(Reply), function);
    auto answer = [core = core_.get(), function = std::move(function)](const Asked<Request>& asked) {
      const Reply reply = function(asked.request);
      send_reply(*core, asked.from, asked.number, ByteView(reinterpret_cast<const std::byte*>(&reply), sizeof reply));
    };
    using Entry = detail::PlainEntry<Asked<Request>, decltype(answer), detail::NoPrefetch>;
    return {add(std::make_unique<Entry>(std::move(answer), detail::NoPrefetch{}), info)};
  }
  /// `then(const Reply&)` is called, inside a later poll(), with the answer. It counts as a message: quiesce() waits
  /// for it. Waits and fails as send() does; an empty `then` is refused with kInvalidArgument.
  template <Plain Request, Plain Reply>
  [[nodiscard]] StatusCode request(Rank to, Service<Request, Reply> service, const Request& what,
                                   std::type_identity_t<std::function<void(const Reply&)>> then) {
    if (!then) return StatusCode::kInvalidArgument;
    const std::uint64_t number = expect([then = std::move(then)](ByteView bytes) {
      Reply reply{};
      if (bytes.size() != sizeof reply) return false;
      std::memcpy(&reply, bytes.data(), sizeof reply);
      then(reply);
      return true;
    });
    const StatusCode code = send(to, Handler<Asked<Request>>(service.id), Asked<Request>{number, rank(), what});
    if (code != StatusCode::kOk) forget(number);
    return code;
  }

  // ---- progress

  /// Handles what has arrived and sends what waits. Returns the number of messages handled.
  std::uint64_t poll() noexcept;
  /// Everything sent so far leaves now.
  void flush() noexcept;
  /// Collective: returns once every message that any rank has sent, in handlers too, has been handled: also what was
  /// sent between two calls of a quiesce that had not ended. Ranks that are still inside handle what faster ones send
  /// next. kDeadlineExceeded: not yet; the quiesce goes on, and this rank may send and poll, but must call quiesce() or
  /// try_quiesce() again before another collective call. Otherwise what status() says.
  Status quiesce(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1));
  /// The same without waiting: kOk, or kWouldBlock: call it again, meanwhile poll() and send if you like.
  [[nodiscard]] StatusCode try_quiesce() noexcept;
  /// Collective: combines a value of each rank. Handles messages while it waits. kFailedPrecondition: in a handler, or
  /// while a quiesce is under way that has not said ok. kInvalidArgument: no such Combine. Otherwise what status()
  /// says.
  enum class Combine : std::uint8_t { kSum, kMin, kMax };
  Result<std::uint64_t> reduce(std::uint64_t value, Combine how = Combine::kSum);
  Result<double> reduce(double value, Combine how = Combine::kSum);

  // ---- low level: buffers of messages (route_message.hpp), as in the paper

  /// Space on the way to `towards` for whole messages of at most `bytes` in all, to be filled and given to post_buffer;
  /// empty: not now, for the reasons of try_send(). Only messages for that rank. At most max_buffer() bytes.
  [[nodiscard]] std::span<std::byte> try_buffer(Rank towards, std::size_t bytes) noexcept;
  /// The first `bytes` of it are `messages` messages. Precondition: no call to the runtime since try_buffer.
  void post_buffer(Rank towards, std::size_t bytes, std::uint64_t messages) noexcept;
  [[nodiscard]] std::size_t max_buffer() const noexcept;
  /// Instead of handlers: `take(ByteView)` gets what has arrived, many messages at a time, headers included.
  std::uint64_t poll_buffers(const std::function<void(ByteView)>& take);

  [[nodiscard]] detail::RuntimeCore* core() const noexcept { return core_.get(); }
  explicit Runtime(std::unique_ptr<detail::RuntimeCore> core) noexcept;

 private:
  template <typename Request>
  struct Asked {
    std::uint64_t number = 0;
    Rank from = 0;
    Request request{};
  };

  template <Plain T>
  [[nodiscard]] StatusCode send_plain(Rank to, std::uint32_t handler, const T& message,
                                      detail::WhenFull when_full) noexcept {
    constexpr std::size_t kSize = std::is_empty_v<T> ? 0 : sizeof(T);
    constexpr std::size_t kStride = Header::stride_of(kSize);
    if constexpr (kStride <= 1024) {
      detail::Front& front = *front_;
      if (to < front.ranks) [[likely]] {
        detail::LaneFront& lane = *front.lane_of[to];
        const Header header = Header::make(kSize, handler, to);
        const auto copy = [&message](std::byte* at) noexcept {
          if constexpr (kSize != 0) std::memcpy(at, &message, kSize);
        };
        if constexpr (kSize != 0 && kSize <= kMaxPackedBytes) {
          constexpr std::size_t kStep = packed_stride(kSize);
          // No pack is open towards handler 0, so that only messages that find none are asked for theirs.
          if (lane.pack_takes(header, kStep)) {
            lane.append_packed(kStep, copy);
            ++front.sent;
            return StatusCode::kOk;
          }
        }
        if (lane.has_room(kStride) && handler != 0) [[likely]] {
          lane.append(header, kStride, copy);
          ++front.sent;
          return StatusCode::kOk;
        }
      }
    }
    return send_bytes(to, handler, ByteView(reinterpret_cast<const std::byte*>(&message), kSize), when_full);
  }
  [[nodiscard]] StatusCode send_view(Rank to, std::uint32_t handler, ByteView message,
                                     detail::WhenFull when_full) noexcept {
    detail::Front& front = *front_;
    if (to < front.ranks && handler != 0 && message.size() <= kMaxMessageBytes) [[likely]] {
      detail::LaneFront& lane = *front.lane_of[to];
      const std::size_t stride = Header::stride_of(message.size());
      if (lane.has_room(stride)) [[likely]] {
        lane.append(Header::make(message.size(), handler, to), stride, [message](std::byte* at) noexcept {
          if (message.size() > detail::kLongCopy) {
            copy_long(at, message.data(), message.size());
          } else if (!message.empty()) {
            std::memcpy(at, message.data(), message.size());
          }
        });
        ++front.sent;
        return StatusCode::kOk;
      }
    }
    return send_bytes(to, handler, message, when_full);
  }
  template <Coded T>
  [[nodiscard]] StatusCode send_coded(Rank to, Handler<T> handler, const T& message, detail::WhenFull when_full) {
    std::vector<std::byte> bytes = std::exchange(encoded_, {});  // a handler that runs meanwhile may send, too
    bytes.clear();
    Codec<T>::write(bytes, message);
    const StatusCode code = send_view(to, handler.id(), bytes, when_full);
    if (bytes.capacity() <= kKeptBytes) encoded_ = std::move(bytes);
    return code;
  }
  static void copy_long(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
  [[nodiscard]] StatusCode send_bytes(Rank to, std::uint32_t handler, ByteView message,
                                      detail::WhenFull when_full) noexcept;
  std::uint32_t add(std::unique_ptr<detail::HandlerEntry> entry, const detail::HandlerInfo& info);
  std::uint64_t expect(std::function<bool(ByteView)> then);
  void forget(std::uint64_t number) noexcept;
  static void send_reply(detail::RuntimeCore& core, Rank to, std::uint64_t number, ByteView reply) noexcept;

  static constexpr std::size_t kKeptBytes = 64 << 10;

  detail::Front* front_ = nullptr;
  std::unique_ptr<detail::RuntimeCore> core_;
  std::vector<std::byte> encoded_;  ///< memory for the next message that is not trivially copyable
};

}  // namespace wherry::route
