// SPDX-License-Identifier: Apache-2.0
// Frames of the stream transport, and a parser that does not copy their bodies: the connection is read directly into
// the destination of a body.
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

/// Splits a stream of bytes into frames. Checks all input and allocates nothing. One thread.
class FrameReader {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    /// A head has arrived. Returns the destination for its body of head.bytes, or for a first part of it. An error ends
    /// the stream. So the sink checks the type and length of a frame before memory is allocated for it.
    virtual Result<std::span<std::byte>> on_head(const FrameHead& head) = 0;
    /// The first `have` bytes of the body have arrived. Returns the destination of the next bytes: at least one, and at
    /// most all that are missing.
    virtual Result<std::span<std::byte>> on_part(const FrameHead& /*head*/, std::uint64_t /*have*/) {
      return Status(StatusCode::kInternal, "no room for the body of a frame");
    }
    /// The whole body has arrived at its destination.
    virtual Status on_frame(const FrameHead& head) = 0;
  };
  explicit FrameReader(Sink& sink) noexcept : sink_(sink) {}
  /// The destination of the stream's next bytes. Never empty.
  [[nodiscard]] std::span<std::byte> wanted() noexcept { return in_body_ ? rest_ : std::span(head_).subspan(have_); }
  /// Call it when the first `bytes` of wanted() are filled. After an error the reader is unusable.
  Status filled(std::size_t bytes);
  /// Like filled(), but copies `bytes`, which may have any length.
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
