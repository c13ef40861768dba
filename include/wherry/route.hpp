// SPDX-License-Identifier: Apache-2.0
// route: fire-and-forget messages between the ranks of a job (paper 001). A message is copied into a buffer that is on
// its way to the destination's next hop; the receiver handles it inside its own poll(). Order is not promised;
// delivery, exactly once, is.
//
//   auto runtime = wherry::route::Runtime::start();            // under `wherry run`, MPI or Slurm; else one rank alone
//   auto add = runtime->on<Update>([&](const Update& u) { table[u.index] += u.by; });
//   runtime->send(owner_of(i), add, Update{i, 1});
//   runtime->quiesce();                                        // every message sent anywhere has been handled
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
  /// What send() may hold back for full buffers, and large messages on their way, in bytes. At least kMaxMessageBytes.
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

/// Uninterpreted bytes, for handlers and senders of messages of any size.
using ByteView = std::span<const std::byte>;

namespace detail {

/// What it says is in the memory of one process.
template <typename T>
inline constexpr bool kRefers = std::is_pointer_v<T>;
template <typename C, typename Traits>
inline constexpr bool kRefers<std::basic_string_view<C, Traits>> = true;
template <typename T, std::size_t N>
inline constexpr bool kRefers<std::span<T, N>> = true;

}  // namespace detail

template <typename T>
concept Plain = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !detail::kRefers<T> &&
                sizeof(T) <= kMaxMessageBytes;

/// How a type that is not trivially copyable travels. Specialise with
///   static void write(std::vector<std::byte>& out, const T& value);   // appends
///   static bool read(ByteView in, T& value);                          // false: not a T; the job fails
/// route_codec.hpp does so for the standard containers, and makes it a line for structures of them.
template <typename T>
struct Codec;
template <typename T>
concept Coded = !Plain<T> && requires(std::vector<std::byte>& out, ByteView in, T& value) {
  Codec<T>::write(out, value);
  { Codec<T>::read(in, value) } -> std::same_as<bool>;
};

/// Names what becomes of a message of type T at its destination. The same on every rank: handlers are registered in the
/// same order everywhere.
template <typename T>
struct Handler {
  std::uint32_t id = 0;
};

namespace detail {

/// The open buffer towards one next hop: the part that an inlined send needs.
struct LaneFront {
  std::byte* at = nullptr;
  std::byte* end = nullptr;       ///< may be before `at`: no room for whole messages without the library's help
  std::uint64_t pack = 0;         ///< the header that the messages of the open pack share; none is open: 0
  std::byte* pack_end = nullptr;  ///< room for them
};

/// From so many bytes on, Runtime::copy_long() copies into buffers faster than memcpy.
inline constexpr std::size_t kLongCopy = 256;

struct Front {
  LaneFront* const* lane_of = nullptr;  ///< by rank
  Rank ranks = 0;
  std::uint64_t sent = 0;
};

/// The first message that was not handled, or null: the first one is none of this handler's; and how many were.
struct Handled {
  const std::byte* next = nullptr;
  std::uint64_t count = 0;
};
/// Handles the messages from `at` on for as long as they are for the same handler and rank as the first, whose header
/// is `header` and which lies before `limit` as a whole.
using HandleRun = Handled (*)(void* self, const std::byte* at, const std::byte* limit, Header header) noexcept;
/// Handles `count` packed messages, the first of them at `at`.
using HandlePack = void (*)(void* self, const std::byte* at, std::size_t count) noexcept;

struct HandlerEntry {
  HandleRun run;
  HandlePack pack;        ///< none: each packed message goes to `run`, with its header
  std::size_t pack_size;  ///< of the messages that `pack` takes
  explicit HandlerEntry(HandleRun r, HandlePack p = nullptr, std::size_t size = 0) noexcept
      : run(r), pack(p), pack_size(size) {}
  HandlerEntry(const HandlerEntry&) = delete;
  HandlerEntry& operator=(const HandlerEntry&) = delete;
  virtual ~HandlerEntry() = default;
};

struct NoPrefetch {};

/// A run of equal headers goes through one loop that the compiler sees whole, handler and prefetch included.
template <typename T, typename F, typename P>
struct PlainEntry final : HandlerEntry {
  static constexpr std::size_t kSize = std::is_empty_v<T> ? 0 : sizeof(T);
  static constexpr std::size_t kStride = Header::stride_of(kSize);
  static constexpr std::size_t kMessagesAhead = 32;
  static constexpr std::ptrdiff_t kAhead = kMessagesAhead * static_cast<std::ptrdiff_t>(kStride);

  PlainEntry(F f, P p) : HandlerEntry(&handle, &handle_pack, kSize), function(std::move(f)), prefetch(std::move(p)) {}

  static T load_value(const std::byte* at) noexcept {
    T value;
    if constexpr (kSize != 0) std::memcpy(&value, at, kSize);
    return value;
  }
  static T load(const std::byte* at) noexcept { return load_value(at + 8); }
  static Handled handle(void* self, const std::byte* at, const std::byte* limit, Header header) noexcept {
    auto& entry = *static_cast<PlainEntry*>(self);
    if (header.size() != kSize) return {};
    const std::byte* const start = at;
    do {
      if constexpr (!std::same_as<P, NoPrefetch>) {
        if (limit - at >= kAhead + static_cast<std::ptrdiff_t>(kStride) && Header::load(at + kAhead) == header)
          entry.prefetch(load(at + kAhead));
      }
      entry.function(load(at));
      at += kStride;
    } while (limit - at >= static_cast<std::ptrdiff_t>(kStride) && Header::load(at) == header);
    return {at, static_cast<std::uint64_t>(at - start) / kStride};
  }
  static void handle_pack(void* self, const std::byte* at, std::size_t count) noexcept {
    auto& entry = *static_cast<PlainEntry*>(self);
    constexpr std::size_t kStep = packed_stride(kSize);
    if constexpr (!std::same_as<P, NoPrefetch>) {
      const std::size_t first = count < kMessagesAhead ? count : kMessagesAhead;
      for (std::size_t i = 0; i < first; ++i) entry.prefetch(load_value(at + i * kStep));
      for (; count > kMessagesAhead; --count, at += kStep) {
        entry.prefetch(load_value(at + kMessagesAhead * kStep));
        entry.function(load_value(at));
      }
    }
    for (; count != 0; --count, at += kStep) entry.function(load_value(at));
  }
  F function;
  [[no_unique_address]] P prefetch;
};

/// Asks for the lines of the next message, which another core wrote, while this one is handled.
inline void prefetch_some(const std::byte* from, const std::byte* limit) noexcept {
  constexpr std::ptrdiff_t kBytes = 2048, kLine = 64;
  const std::byte* const to = limit - from < kBytes ? limit : from + kBytes;
  for (; from < to; from += kLine) __builtin_prefetch(from);
}

template <typename F>
struct BytesEntry final : HandlerEntry {
  explicit BytesEntry(F f) : HandlerEntry(&handle), function(std::move(f)) {}
  static Handled handle(void* self, const std::byte* at, const std::byte* limit, Header header) noexcept {
    auto& entry = *static_cast<BytesEntry*>(self);
    std::uint64_t count = 0;
    const Header first = header;
    do {
      const std::byte* const next = at + header.stride();
      if (header.size() > kLongCopy) prefetch_some(next, limit);
      entry.function(ByteView(at + 8, header.size()));
      at = next;
      ++count;
      if (at == limit) break;
      header = Header::load(at);
    } while (header.same_way(first) && header.stride() <= static_cast<std::size_t>(limit - at));
    return {at, count};
  }
  F function;
};

template <typename T, typename F>
struct CodedEntry final : HandlerEntry {
  explicit CodedEntry(F f) : HandlerEntry(&handle), function(std::move(f)) {}
  static Handled handle(void* self, const std::byte* at, const std::byte*, Header header) noexcept {
    T value{};
    if (!Codec<T>::read(ByteView(at + 8, header.size()), value)) return {};
    static_cast<CodedEntry*>(self)->function(std::move(value));
    return {at + header.stride(), 1};
  }
  F function;
};

enum class WhenFull : std::uint8_t { kWouldBlock, kAbsorb };

class RuntimeCore;

}  // namespace detail

/// Answers of type Reply to requests of type Request.
template <typename Request, typename Reply>
struct Service {
  std::uint32_t id = 0;
};

/// One rank. One thread at a time may use it, and handlers run in that thread, inside poll(), send() and quiesce().
/// Handlers may send, but neither poll nor quiesce, and must not throw. Destruction leaves the job, without
/// waiting for the others, and calls no handler: call quiesce() first where messages may still be on their way.
/// In a child of fork() each call fails with kFailedPrecondition, and destruction says nothing to the job.
class WHERRY_API Runtime {
 public:
  /// Joins the job that this process was started in: that of `wherry run` (WHERRY_BOOTSTRAP), of an MPI launcher, or
  /// one rank alone. Collective: blocks until every rank is there.
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
  // messages

  /// `function(const T&)` is called for each message. With `prefetch(const T&)`, which is called some messages earlier
  /// and should ask for the memory that the handler will touch, and nothing else, it waits less for that.
  template <Plain T, typename F, typename P = detail::NoPrefetch>
  Handler<T> on(F function, P prefetch = {}) {
    return {add(std::make_unique<detail::PlainEntry<T, F, P>>(std::move(function), std::move(prefetch)))};
  }
  /// `function(ByteView)`: messages of any size. The bytes, aligned to 8, live during the call.
  template <std::same_as<ByteView> T, typename F>
  Handler<T> on(F function) {
    return {add(std::make_unique<detail::BytesEntry<F>>(std::move(function)))};
  }
  /// `function(T&&)`, of a type with a Codec.
  template <Coded T, typename F>
  Handler<T> on(F function) {
    return {add(std::make_unique<detail::CodedEntry<T, F>>(std::move(function)))};
  }

  // ---- sending: the message is copied, the caller keeps its own. It leaves when its buffer is full, or by poll(),
  // flush() or quiesce().

  /// kOk, or kWouldBlock: the pipe is full, nothing happened, poll() and try again. kInvalidArgument: no such rank, too
  /// large. Otherwise what status() says.
  template <Plain T>
  [[nodiscard]] StatusCode try_send(Rank to, Handler<T> handler, const T& message) noexcept {
    return send_plain(to, handler.id, message, detail::WhenFull::kWouldBlock);
  }
  [[nodiscard]] StatusCode try_send(Rank to, Handler<ByteView> handler, ByteView message) noexcept {
    return send_view(to, handler.id, message, detail::WhenFull::kWouldBlock);
  }
  /// As try_send, but when the pipe is full it handles what has arrived (unless a handler calls it) and then keeps the
  /// message back, up to Options::backlog_bytes: kWouldBlock beyond.
  template <Plain T>
  StatusCode send(Rank to, Handler<T> handler, const T& message) noexcept {
    return send_plain(to, handler.id, message, detail::WhenFull::kAbsorb);
  }
  StatusCode send(Rank to, Handler<ByteView> handler, ByteView message) noexcept {
    return send_view(to, handler.id, message, detail::WhenFull::kAbsorb);
  }
  template <Coded T>
  [[nodiscard]] StatusCode try_send(Rank to, Handler<T> handler, const std::type_identity_t<T>& message) {
    return send_coded(to, handler, message, detail::WhenFull::kWouldBlock);
  }
  template <Coded T>
  StatusCode send(Rank to, Handler<T> handler, const std::type_identity_t<T>& message) {
    return send_coded(to, handler, message, detail::WhenFull::kAbsorb);
  }

  // ---- requests: a message that is answered by one

  /// `function(const Request&) -> Reply` answers requests.
  template <Plain Request, Plain Reply, typename F>
  Service<Request, Reply> serve(F function) {
    auto answer = [core = core_.get(), function = std::move(function)](const Asked<Request>& asked) {
      const Reply reply = function(asked.request);
      send_reply(*core, asked.from, asked.number, ByteView(reinterpret_cast<const std::byte*>(&reply), sizeof reply));
    };
    return {on<Asked<Request>>(std::move(answer)).id};
  }
  /// `then(const Reply&)` is called, inside a later poll(), with the answer. It counts as a message: quiesce() waits
  /// for it.
  template <Plain Request, Plain Reply>
  StatusCode request(Rank to, Service<Request, Reply> service, const Request& what,
                     std::function<void(const Reply&)> then) {
    const std::uint64_t number = expect([then = std::move(then)](ByteView bytes) {
      Reply reply{};
      if (bytes.size() != sizeof reply) return false;
      std::memcpy(&reply, bytes.data(), sizeof reply);
      then(reply);
      return true;
    });
    const StatusCode code = send(to, Handler<Asked<Request>>{service.id}, Asked<Request>{number, rank(), what});
    if (code != StatusCode::kOk) forget(number);
    return code;
  }

  // ---- progress

  /// Handles what has arrived and sends what waits. Returns the number of messages handled.
  std::uint64_t poll() noexcept;
  /// Everything sent so far leaves now.
  void flush() noexcept;
  /// Collective: returns once every message sent by any rank, by handlers too, has been handled. kDeadlineExceeded:
  /// call it again; otherwise status(). Ranks that are still inside handle what faster ones send next.
  Status quiesce(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1));
  /// The same without waiting: kOk, or kWouldBlock: call it again, meanwhile poll() and send if you like.
  [[nodiscard]] StatusCode try_quiesce() noexcept;
  /// Collective: combines a value of each rank. Handles messages while it waits.
  enum class Combine : std::uint8_t { kSum, kMin, kMax };
  Result<std::uint64_t> reduce(std::uint64_t value, Combine how = Combine::kSum);
  Result<double> reduce(double value, Combine how = Combine::kSum);

  // ---- low level: buffers of messages (route_message.hpp), as in the paper

  /// Space on the way to `towards` for whole messages of at most `bytes` in all, to be filled and given to post_buffer;
  /// empty: not now. Only messages for that rank. At most max_buffer() bytes.
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
  StatusCode send_plain(Rank to, std::uint32_t handler, const T& message, detail::WhenFull when_full) noexcept {
    constexpr std::size_t kSize = std::is_empty_v<T> ? 0 : sizeof(T);
    constexpr std::size_t kStride = Header::stride_of(kSize);
    if constexpr (kStride <= 1024) {
      detail::Front& front = *front_;
      if (to < front.ranks) [[likely]] {
        detail::LaneFront& lane = *front.lane_of[to];
        std::byte* const at = lane.at;
        const Header header = Header::make(kSize, handler, to);
        if constexpr (kSize != 0 && kSize <= kMaxPackedBytes) {
          constexpr std::size_t kStep = packed_stride(kSize);
          if (lane.pack == header.word && lane.pack_end - at >= static_cast<std::ptrdiff_t>(kStep)) {
            std::memcpy(at, &message, kSize);
            lane.at = at + kStep;
            ++front.sent;
            return StatusCode::kOk;
          }
        }
        if (lane.end - at >= static_cast<std::ptrdiff_t>(kStride)) [[likely]] {
          header.store(at);
          if constexpr (kSize != 0) std::memcpy(at + 8, &message, kSize);
          lane.at = at + kStride;
          ++front.sent;
          return StatusCode::kOk;
        }
      }
    }
    return send_bytes(to, handler, ByteView(reinterpret_cast<const std::byte*>(&message), kSize), when_full);
  }
  StatusCode send_view(Rank to, std::uint32_t handler, ByteView message, detail::WhenFull when_full) noexcept {
    detail::Front& front = *front_;
    if (to < front.ranks && message.size() <= kMaxMessageBytes) [[likely]] {
      detail::LaneFront& lane = *front.lane_of[to];
      std::byte* const at = lane.at;
      const std::size_t stride = Header::stride_of(message.size());
      if (lane.end - at >= static_cast<std::ptrdiff_t>(stride)) [[likely]] {
        Header::make(message.size(), handler, to).store(at);
        if (message.size() > detail::kLongCopy) {
          copy_long(at + 8, message.data(), message.size());
        } else if (!message.empty()) {
          std::memcpy(at + 8, message.data(), message.size());
        }
        lane.at = at + stride;
        ++front.sent;
        return StatusCode::kOk;
      }
    }
    return send_bytes(to, handler, message, when_full);
  }
  template <Coded T>
  StatusCode send_coded(Rank to, Handler<T> handler, const T& message, detail::WhenFull when_full) {
    std::vector<std::byte> bytes = std::exchange(encoded_, {});  // a handler that runs meanwhile may send, too
    bytes.clear();
    Codec<T>::write(bytes, message);
    const StatusCode code = send_view(to, handler.id, bytes, when_full);
    if (bytes.capacity() <= kKeptBytes) encoded_ = std::move(bytes);
    return code;
  }
  static void copy_long(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
  StatusCode send_bytes(Rank to, std::uint32_t handler, ByteView message, detail::WhenFull when_full) noexcept;
  std::uint32_t add(std::unique_ptr<detail::HandlerEntry> entry);
  std::uint64_t expect(std::function<bool(ByteView)> then);
  void forget(std::uint64_t number) noexcept;
  static void send_reply(detail::RuntimeCore& core, Rank to, std::uint64_t number, ByteView reply) noexcept;

  static constexpr std::size_t kKeptBytes = 64 << 10;

  detail::Front* front_ = nullptr;
  std::unique_ptr<detail::RuntimeCore> core_;
  std::vector<std::byte> encoded_;  ///< memory for the next message that is not trivially copyable
};

}  // namespace wherry::route
