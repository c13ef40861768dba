// SPDX-License-Identifier: Apache-2.0
// The part of route.hpp that is compiled into applications: how a message is written into an open buffer, and how the
// library calls a handler. Internal to the library: applications must not use these names.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "wherry/route_message.hpp"
#include "wherry/status.hpp"

namespace wherry::route::detail {

class RuntimeCore;
struct RuntimeAccess;  // src/route/client/runtime_access.hpp

// ---------------------------------------------------------------- sending

/// The part of a lane that an inlined send needs: the open buffer to one next hop.
struct LaneFront {
  std::byte* at = nullptr;        ///< where the next message goes
  std::byte* end = nullptr;       ///< end of the buffer; if before `at`, whole messages need the library to make room
  std::uint64_t pack = 0;         ///< header shared by the messages of the open pack; 0: no pack is open
  std::byte* pack_end = nullptr;  ///< where the open pack must end

  [[nodiscard]] bool has_room(std::size_t stride) const noexcept {
    return end - at >= static_cast<std::ptrdiff_t>(stride);
  }
  /// Returns whether a message with this header can join the open pack.
  [[nodiscard]] bool pack_takes(Header header, std::size_t step) const noexcept {
    return pack == header.word && pack_end - at >= static_cast<std::ptrdiff_t>(step);
  }
  /// Appends a message; `copy(to)` writes its payload. Precondition: `stride` is the header's, and there is room.
  template <typename Copy>
  void append(Header header, std::size_t stride, Copy copy) noexcept {
    std::byte* const to = at;
    header.store(to);
    copy(to + sizeof header);
    at = to + stride;
  }
  /// Appends a message without a header to the open pack; `copy(to)` writes its `step` bytes. Precondition: the pack
  /// has room for it.
  template <typename Copy>
  void append_packed(std::size_t step, Copy copy) noexcept {
    std::byte* const to = at;
    copy(to);
    at = to + step;
  }
};

/// The part of a rank that an inlined send needs.
struct Front {
  LaneFront* const* lane_of = nullptr;  ///< by rank
  Rank ranks = 0;
  std::uint64_t sent = 0;  ///< messages that this rank has sent
};

/// What to do when the pipe is full.
enum class WhenFull : std::uint8_t {
  kWouldBlock,  ///< refuse the message
  kAbsorb,      ///< keep the message while the budget lasts, else refuse it; never handle other messages
  kWait,        ///< keep it; beyond the budget, handle messages until there is room (in a handler: the job fails)
  kMust,        ///< keep the message even beyond the budget
};

/// Like memcpy, for more than kLongCopy bytes: faster into buffers that another core reads.
inline constexpr std::size_t kLongCopy = 256;
WHERRY_API void copy_long(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

template <Plain T>
inline constexpr std::size_t kPayloadBytes = std::is_empty_v<T> ? 0 : sizeof(T);

template <Plain T>
ByteView payload_of(const T& message) noexcept {
  return {reinterpret_cast<const std::byte*>(&message), kPayloadBytes<T>};
}

/// Writes a message into the open buffer to its rank. False: there is no room, or the message cannot be sent;
/// Runtime::send_bytes() finds the reason.
template <Plain T>
[[nodiscard]] bool try_write(Front& front, Rank to, std::uint32_t handler, const T& message) noexcept {
  constexpr std::size_t kSize = kPayloadBytes<T>;
  constexpr std::size_t kStride = Header::stride_of(kSize);
  if constexpr (kStride <= 1024) {
    if (to < front.ranks) [[likely]] {
      LaneFront& lane = *front.lane_of[to];
      const Header header = Header::make(kSize, handler, to);
      const auto copy = [&message](std::byte* at) noexcept {
        if constexpr (kSize != 0) std::memcpy(at, &message, kSize);
      };
      if constexpr (kSize != 0 && kSize <= kMaxPackedBytes) {
        constexpr std::size_t kStep = packed_stride(kSize);
        // No pack is open to handler 0, so only messages that join no pack are checked for it.
        if (lane.pack_takes(header, kStep)) {
          ++front.sent;
          lane.append_packed(kStep, copy);
          return true;
        }
      }
      if (lane.has_room(kStride) && handler != 0) [[likely]] {
        ++front.sent;
        lane.append(header, kStride, copy);
        return true;
      }
    }
  }
  return false;
}
[[nodiscard]] inline bool try_write(Front& front, Rank to, std::uint32_t handler, ByteView message) noexcept {
  if (to < front.ranks && handler != 0 && message.size() <= kMaxMessageBytes) [[likely]] {
    LaneFront& lane = *front.lane_of[to];
    const std::size_t stride = Header::stride_of(message.size());
    if (lane.has_room(stride)) [[likely]] {
      ++front.sent;
      lane.append(Header::make(message.size(), handler, to), stride, [message](std::byte* at) noexcept {
        if (message.size() > kLongCopy) {
          copy_long(at, message.data(), message.size());
        } else if (!message.empty()) {
          std::memcpy(at, message.data(), message.size());
        }
      });
      return true;
    }
  }
  return false;
}

// ---------------------------------------------------------------- what ranks compare about handlers

struct HandlerInfo {
  enum class Kind : std::uint32_t { kPlain, kBytes, kCoded, kService } kind = Kind::kBytes;
  std::string name;  ///< empty: the handler is identified by its order, and ranks also compare the other members
  std::string type;
  std::uint64_t size = 0;      ///< of a message; 0: any
  std::string function;        ///< distinguishes functions that take the same message type
  const void* code = nullptr;  ///< the address of a function given by pointer. If neither is set: HandlerEntry::run
};

/// Each lambda has its own type. Function pointers share types, and so do functions in a std::function.
template <typename F>
void tell_apart(const F& function, HandlerInfo& info) {
  if constexpr (std::is_pointer_v<F>) {
    info.code = reinterpret_cast<const void*>(function);
  } else {
#if defined(__cpp_rtti)
    info.function = typeid(F).name();
#endif
  }
}
template <typename R, typename... Arguments>
void tell_apart([[maybe_unused]] const std::function<R(Arguments...)>& function, [[maybe_unused]] HandlerInfo& info) {
#if defined(__cpp_rtti)
  info.function = function.target_type().name();
  if (const auto* pointer = function.template target<R (*)(Arguments...)>()) tell_apart(*pointer, info);
#endif
}
template <typename T, typename F>
HandlerInfo info_of(HandlerInfo::Kind kind, std::string_view name, std::uint64_t size, const F& function) {
  HandlerInfo info;
  info.kind = kind;
  info.name = name;
  info.size = size;
#if defined(__cpp_rtti)
  info.type = typeid(T).name();
#endif
  tell_apart(function, info);
  return info;
}

// ---------------------------------------------------------------- handling

struct Handled {
  const std::byte* next = nullptr;  ///< the first message that was not handled; null: even the first one does not fit
  std::uint64_t count = 0;
};
/// Handles the messages from `at` that have the same handler and rank as the first. Precondition: the first one has the
/// header `header` and ends at or before `limit`.
using HandleRun = Handled (*)(void* self, const std::byte* at, const std::byte* limit, Header header) noexcept;
/// Handles the `count` payloads of a pack, of which the first is at `at`.
using HandlePack = void (*)(void* self, const std::byte* at, std::size_t count) noexcept;

/// A registered handler.
struct HandlerEntry {
  HandleRun run;
  HandlePack pack;        ///< null: packs are unpacked for `run`
  std::size_t pack_size;  ///< bytes of each message that `pack` takes
  explicit HandlerEntry(HandleRun r, HandlePack p = nullptr, std::size_t size = 0) noexcept
      : run(r), pack(p), pack_size(size) {}
  HandlerEntry(const HandlerEntry&) = delete;
  HandlerEntry& operator=(const HandlerEntry&) = delete;
  virtual ~HandlerEntry() = default;
};

struct NoPrefetch {};

/// One loop for a run of equal headers. The compiler inlines handler and prefetch into it.
template <typename T, typename F, typename P>
struct PlainEntry final : HandlerEntry {
  static constexpr std::size_t kSize = kPayloadBytes<T>;
  static constexpr std::size_t kStride = Header::stride_of(kSize);
  static constexpr std::size_t kMessagesAhead = 32;
  static constexpr std::ptrdiff_t kAhead = kMessagesAhead * static_cast<std::ptrdiff_t>(kStride);

  PlainEntry(F f, P p) : HandlerEntry(&handle, &handle_pack, kSize), function(std::move(f)), prefetch(std::move(p)) {}

  static T load_value(const std::byte* at) noexcept {
    T value;
    if constexpr (kSize != 0) std::memcpy(&value, at, kSize);
    return value;
  }
  static T load(const std::byte* at) noexcept { return load_value(at + sizeof(Header)); }
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

/// Prefetches the next message, which another core wrote, while the current one is handled.
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
      entry.function(ByteView(at + sizeof header, header.size()));
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
    if (!Codec<T>::read(ByteView(at + sizeof header, header.size()), value)) return {};
    static_cast<CodedEntry*>(self)->function(std::move(value));
    return {at + header.stride(), 1};
  }
  F function;
};

// ---------------------------------------------------------------- requests

/// A request on its way. The reply carries the same number.
template <Plain Request>
struct Asked {
  std::uint64_t number = 0;
  Rank from = 0;
  Request request{};
};

WHERRY_API void send_reply(RuntimeCore& core, Rank to, std::uint64_t number, ByteView reply) noexcept;

/// Calls `function(const Request&)` for each request, and sends the result back.
template <Plain Request, Plain Reply, typename F>
std::unique_ptr<HandlerEntry> make_server(RuntimeCore* core, F function) {
  auto answer = [core, function = std::move(function)](const Asked<Request>& asked) {
    const Reply reply = function(asked.request);
    send_reply(*core, asked.from, asked.number, ByteView(reinterpret_cast<const std::byte*>(&reply), sizeof reply));
  };
  return std::make_unique<PlainEntry<Asked<Request>, decltype(answer), NoPrefetch>>(std::move(answer), NoPrefetch{});
}
/// Calls `then` with the reply. False: the reply has another type.
template <Plain Reply>
std::function<bool(ByteView)> make_receiver(std::function<void(const Reply&)> then) {
  return [then = std::move(then)](ByteView bytes) {
    Reply reply{};
    if (bytes.size() != sizeof reply) return false;
    std::memcpy(&reply, bytes.data(), sizeof reply);
    then(reply);
    return true;
  };
}

}  // namespace wherry::route::detail
