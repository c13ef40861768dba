// SPDX-License-Identifier: Apache-2.0
// Frames of the stream transport, and a parser that splits them without copying their bodies. Code that reads from the
// connection reads directly into a body's destination.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "wherry/status.hpp"

namespace wherry::fabric {

enum class FrameType : std::uint32_t {
  kMessage = 1,  ///< `number`: the message's id; the body is the message
  kRead,         ///< "send me this memory": body u64 address, u64 bytes; `number` counts them
  kData,         ///< of the read `number`: the body is the memory
  kDone,         ///< of the read `number`: body u64 ReadOutcome; what its data frame brought counts only now
  kPut,          ///< body u64 address, then up to kMaxPutBytes for it
  kBye,          ///< no body: the sender leaves of its own accord
};
enum class ReadOutcome : std::uint64_t {
  kOk = 0,
  kNotOffered,  ///< the memory was not registered; there was no data frame
  kFault,       ///< it could not be read; the data frame's bytes mean nothing
};
inline constexpr std::size_t kMaxPutBytes = 64;

struct FrameHead {
  std::uint64_t bytes = 0;  ///< of the body
  FrameType type{};
  std::uint32_t number = 0;
};
static_assert(sizeof(FrameHead) == 16);

/// Takes a stream of bytes apart into frames. Believes nothing; allocates nothing. One thread.
class FrameReader {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    /// A head has come. Returns the destination of its body: head.bytes, or a first part of that. An error ends the
    /// stream. So the sink decides which frames exist, and how long they may be, before memory is allocated for them.
    virtual Result<std::span<std::byte>> on_head(const FrameHead& head) = 0;
    /// The first `have` bytes of the body have arrived. Returns the destination of the next ones: at least one byte,
    /// and at most the missing ones.
    virtual Result<std::span<std::byte>> on_part(const FrameHead& /*head*/, std::uint64_t /*have*/) {
      return Status(StatusCode::kInternal, "no room for the body of a frame");
    }
    /// The body is where it belongs.
    virtual Status on_frame(const FrameHead& head) = 0;
  };
  explicit FrameReader(Sink& sink) noexcept : sink_(sink) {}
  /// The destination of the next bytes of the stream. Never empty.
  [[nodiscard]] std::span<std::byte> wanted() noexcept { return in_body_ ? rest_ : std::span(head_).subspan(have_); }
  /// The first `bytes` of wanted() have been filled. After an error the reader cannot be used any more.
  Status filled(std::size_t bytes);
  /// The same with a copy, for any number of bytes.
  Status feed(ByteView bytes);
  [[nodiscard]] bool in_body() const noexcept { return in_body_; }

 private:
  Sink& sink_;
  std::array<std::byte, sizeof(FrameHead)> head_{};
  std::size_t have_ = 0;  ///< of the head
  FrameHead current_;
  bool in_body_ = false;
  std::span<std::byte> rest_;  ///< of the part at hand
  std::uint64_t missing_ = 0;  ///< of the body
};

}  // namespace wherry::fabric
