// SPDX-License-Identifier: Apache-2.0
// The agent's side: the place of every byte of a frame, known before the first one arrives (in-transit data placement,
// paper 004 sections II-C and V-F), and the Arrow IPC metadata around it.
//
// A frame is one self-contained Arrow IPC stream:
//   schema message | per dictionary: metadata, body | record batch: metadata, body | end-of-stream marker (8 bytes)
// Every body starts, and every buffer in it starts, at a multiple of `alignment` from the start of the frame (frames
// are page-aligned in memory). Padding of the message's metadata makes the gap before a body, as Arrow allows (its
// length prefix counts the padding).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "move/flatten.hpp"
#include "move/plan.hpp"

namespace wherry::move {

struct Placement {
  std::uint64_t offset = 0;  ///< from the start of the frame
  std::uint64_t bytes = 0;   ///< 0: absent or empty (offsets never are: an array without rows has one, which is 0)
};

struct FrameLayout {
  std::vector<Placement> buffers;          ///< one per buffer of the plan, absent ones too
  std::vector<std::uint64_t> body_offset;  ///< one per section, from the start of the frame
  std::vector<std::uint64_t> body_bytes;   ///< one per section, a multiple of the alignment
  std::uint64_t total_bytes = 0;           ///< of the whole IPC stream, the end-of-stream marker included
};

/// Everything about a stream's IPC encoding that does not change from frame to frame. Immutable, shared between
/// threads.
class IpcTemplate {
 public:
  /// Encodes the schema message once (with Arrow C++), and builds one metadata template per section (record batch and
  /// dictionary batch flatbuffers, Arrow format/Message.fbs). Only scalars at fixed positions change from frame to
  /// frame. alignment: 64 or 4096 (any power of two from 8 on is accepted).
  static Result<std::shared_ptr<const IpcTemplate>> make(const Schema& schema, const Plan& plan,
                                                         std::uint32_t alignment,
                                                         const std::string& schema_metadata = {});

  /// Places a checked offload. Precondition: check_offload said ok. Reuses the vectors in `out`.
  void place(std::span<const NodeRef> nodes, std::span<const BufferRef> buffers, FrameLayout& out) const;

  /// Writes schema message, metadata and end-of-stream marker around the bodies into `frame` (total_bytes long). Also
  /// zeroes the padding after each buffer, so that old bytes do not leak. `nodes` carries the final null counts (none
  /// is -1). Costs a memcpy and a few stores per section.
  void write_metadata(const FrameLayout& layout, std::span<const NodeRef> nodes, std::span<std::byte> frame) const;

  [[nodiscard]] std::span<const std::byte> schema_message() const noexcept { return schema_message_; }
  [[nodiscard]] std::uint32_t alignment() const noexcept { return alignment_; }

 private:
  struct SectionTemplate {
    std::vector<std::byte> metadata;  ///< encapsulated: continuation, length, flatbuffer; unpadded
    std::uint32_t rows_at = 0, nodes_at = 0, buffers_at = 0,
                  body_length_at = 0;  ///< positions of the scalars that change
  };
  Plan plan_;
  std::uint32_t alignment_ = 64;
  std::vector<std::byte> schema_message_;
  std::vector<SectionTemplate> sections_;
};

/// Checks an offload from a client that is not trusted: counts match the plan, lengths are >= 0 and agree between
/// parents and children, every buffer holds what its node needs and no more than 2^48 bytes, nothing overflows, rebase
/// is in range, null counts <= lengths. kInvalidArgument names the fault.
Status check_offload(const Plan& plan, std::uint64_t rows, std::span<const NodeRef> nodes,
                     std::span<const BufferRef> buffers);

/// Called after all gets of a frame completed. Shifts bitmaps whose rebase is not 0 and subtracts the first offset
/// where it is not 0 (in place; unsliced columns are not touched). Counts unknown nulls into `nodes`, clears bits
/// beyond the last row, and writes the offset that a sender of no rows left out. Checks first and last offset of every
/// variable-length node against the bytes of its data or the rows of its child (else kSourceFault), and that columns
/// that are not nullable have no nulls (else kInvalidArgument). On failure `at_fault`, if given, is the index into
/// `buffers`.
Status finish_buffers(const Plan& plan, std::span<NodeRef> nodes, std::span<const BufferRef> buffers,
                      const FrameLayout& layout, std::span<std::byte> frame, std::uint64_t* at_fault = nullptr);

}  // namespace wherry::move
