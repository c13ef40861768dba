// SPDX-License-Identifier: Apache-2.0
// What may be a message of wherry/route.hpp, and how the library calls the functions that handle messages. Applications
// use ByteView, Plain, Coded and Codec of here; namespace detail is the library's own.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "wherry/route_message.hpp"
#include "wherry/status.hpp"

namespace wherry::route {

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

namespace detail {

/// From so many bytes on, Runtime::copy_long() copies into buffers faster than memcpy.
inline constexpr std::size_t kLongCopy = 256;

/// What ranks must agree on about a handler.
struct HandlerInfo {
  enum class Kind : std::uint32_t { kPlain, kBytes, kCoded, kService } kind = Kind::kBytes;
  std::string name;  ///< empty: the order of registration says which one it is, and the following counts, too
  std::string type;
  std::uint64_t size = 0;      ///< of a message; 0: any
  std::string function;        ///< what tells the function from others of the same type of messages
  const void* code = nullptr;  ///< where it is, if that does; with neither, the place of the handler's own code does
};

/// Each lambda has a type of its own. Functions that are given by pointers do not, nor does what std::function holds.
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

}  // namespace detail

}  // namespace wherry::route
