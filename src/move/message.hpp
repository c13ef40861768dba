// SPDX-License-Identifier: Apache-2.0
// Messages of move: the offload (on the fabric, the only hot message) and requests on the control connection.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.hpp"
#include "move/flatten.hpp"
#include "session/new_region.hpp"
#include "wherry/move.hpp"

namespace wherry::move {

inline constexpr unsigned kOffloadMessage = 1;  ///< active message id of the move service
inline constexpr std::string_view kServiceName = "move";

/// Which part of its frame a message has.
enum class Half : std::uint8_t {
  kWhole = 0,  ///< all buffers
  kFirst = 1,  ///< those of columns that are final early; a message of kRest follows (Stream::post with later columns)
  kRest = 2,   ///< the others (Stream::post_rest)
};

/// On the wire: this header, then nodes, buffers, dropped region ids (u32 each, padded to 8 bytes), new regions. One
/// cache line, little-endian. docs/design/life-of-a-buffer.md has a figure.
struct OffloadHeader {
  std::uint64_t session = 0;  ///< first in every fabric message: says and proves whose it is
  std::uint64_t ticket = 0;   ///< 1, 2, 3, ...
  std::uint64_t tag = 0;      ///< kRest: ignored, the frame has the tag of its first half
  std::uint64_t rows = 0;
  std::uint64_t deadline_ns = 0;  ///< from its arrival; 0: none
  std::uint32_t stream = 0;
  /// 0, or the client's number of a binding, which is a stored list of nodes and buffers. Bindings and regions share
  /// one number range. A message with nodes and buffers defines the binding again. A message without them uses the
  /// binding and its rows. The agent drops a binding when its number is among the dropped regions, or when its stream
  /// ends. Only for whole frames.
  std::uint32_t binding = 0;
  std::uint32_t buffer_count = 0;
  std::uint32_t dropped_count = 0;
  std::uint32_t region_count = 0;
  std::uint16_t node_count = 0;
  /// Both halves of a frame list all of its nodes and buffers with equal lengths. A buffer that belongs to the other
  /// half has address 0 and region 0.
  Half half = Half::kWhole;
  std::uint8_t zero = 0;  ///< free; anything else is refused
};
static_assert(sizeof(OffloadHeader) == 64 && std::has_unique_object_representations_v<OffloadHeader>);

/// A region that is new to the agent: this header, then key_bytes bytes of packed key, padded to 8.
struct RegionHeader {
  std::uint32_t id = 0;
  std::uint32_t key_bytes = 0;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
};
static_assert(sizeof(RegionHeader) == 24 && sizeof(NodeRef) == 16 && sizeof(BufferRef) == 32);

using session::NewRegion;

/// A parsed offload; the spans point into the message.
struct OffloadView {
  OffloadHeader header;
  std::span<const NodeRef> nodes;
  std::span<const BufferRef> buffers;
  std::span<const std::uint32_t> dropped;
  std::vector<NewRegion> regions;  ///< usually empty
};

inline constexpr std::uint32_t kMaxOffloadNodes = kMaxNodes;
static_assert(kMaxOffloadNodes <= 0xffff);
inline constexpr std::uint32_t kMaxOffloadBuffers = 1U << 17;

inline constexpr std::uint32_t kMaxKeyBytes = 1U << 16;  ///< of one packed key; UCX's have some ten a transport

/// Parses untrusted bytes. kProtocol: they are not exactly one offload. `message` must be aligned to 8 bytes (UCX
/// aligns it; otherwise the caller makes a copy). Keeps the capacity of `out.regions`. Sets `out.header` even on
/// failure if the message is long enough, so that the caller knows the ticket.
Status parse_offload(ByteView message, OffloadView& out);

/// The size of the message that write_offload writes for these arguments.
WHERRY_HOT std::size_t offload_bytes(const FlatOffload& flat, std::span<const std::uint32_t> dropped,
                                     std::span<const NewRegion> regions) noexcept;
/// Writes a message of offload_bytes() bytes.
WHERRY_HOT void write_offload(const OffloadHeader& header, const FlatOffload& flat,
                              std::span<const std::uint32_t> dropped, std::span<const NewRegion> regions,
                              std::byte* to) noexcept;
/// Like write_offload(), into `out`, which is cleared first (it keeps its capacity).
void build_offload(const OffloadHeader& header, const FlatOffload& flat, std::span<const std::uint32_t> dropped,
                   std::span<const NewRegion> regions, Bytes& out);

/// The limit that an offload with kResourceExhausted has exceeded.
enum class Limit : std::uint8_t {
  kBudget,       ///< bytes of the agent's memory for frames
  kOffloads,     ///< offloads of one session that wait at the agent
  kQueuedBytes,  ///< bytes that their lists of buffers take there
  kRegionBytes,  ///< bytes of one session's table of regions
};
/// Encodes a limit for CompletionRecord::detail. `allowed` (below 2^56): the value of the limit.
constexpr std::uint64_t limit_detail(Limit limit, std::uint64_t allowed) noexcept {
  return static_cast<std::uint64_t>(limit) << 56 | (allowed & ((std::uint64_t{1} << 56) - 1));
}
/// The limit in words, with the remedy.
std::string limit_text(std::uint64_t detail);

/// CompletionRecord::detail of a part's offload that failed because of its step: the number of the part at fault, plus
/// one. With kUnavailable, that part's client has died, or the part was closed. With kFailedPrecondition, that part has
/// posted a later tag, or (kStepIsOver) the step is complete or older than the latest complete step.
inline constexpr std::uint64_t kStepIsOver = ~std::uint64_t{0};
/// CompletionRecord::detail of a frame's rest with kFailedPrecondition: the first half failed or is missing.
inline constexpr std::uint64_t kNoFirstHalf = ~std::uint64_t{0} - 1;

/// Request "open". The answer is the stream's id (u32).
struct OpenRequest {
  StreamOptions options;
  Schema schema;
  /// An earlier request of this session for this stream got no answer in time. It may have opened a stream without
  /// posts. If options and schema are equal, the agent returns that stream; otherwise it closes it first.
  bool again = false;
};
/// `again` is the first byte, so that requests can be compared without it.
Bytes encode(const OpenRequest& m);
/// kProtocol: the bytes are not a request. kInvalidArgument: a bad name or impossible announced sizes.
Result<OpenRequest> decode_open(ByteView in);

inline constexpr std::uint32_t kMaxParts = 4096;                          ///< of one stream
inline constexpr std::size_t kMaxOperatorsBytes = std::size_t{64} << 10;  ///< of StreamOptions::operators
/// kInvalidArgument if the operators are longer than kMaxOperatorsBytes.
Status check_operators(const StreamOptions& options);
/// kInvalidArgument if the part's number is not below `parts`.
Status check_parts(const StreamOptions& options);
/// kInvalidArgument if the bytes are not key/value pairs in the encoding of the C data interface.
Status check_schema_metadata(std::string_view metadata);
/// Whether `name` is 1 to 255 of [A-Za-z0-9._-] and not "." or "..".
bool valid_stream_name(std::string_view name) noexcept;

}  // namespace wherry::move
