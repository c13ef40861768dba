// SPDX-License-Identifier: Apache-2.0
// The agent's side: computes the place of every byte of a frame before the first byte arrives (in-transit data
// placement, paper 004 sections II-C and V-F), and writes the Arrow IPC metadata around it.
//
// A frame is one self-contained Arrow IPC stream:
//   schema message | per dictionary: metadata, body | record batch: metadata, body | end-of-stream marker (8 bytes)
// Every body and every buffer starts at a multiple of `alignment` from the start of the frame (frames are page-aligned
// in memory). Padding of the message's metadata makes the gap before a body, as Arrow allows (its length prefix counts
// the padding).
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

/// The parts of a stream's IPC encoding that are the same for all frames. Immutable, so threads can share
/// it.
class IpcTemplate {
 public:
  /// Encodes the schema message once (with Arrow C++), and builds one metadata template per section (record batch and
  /// dictionary batch flatbuffers, Arrow format/Message.fbs). Only scalars at fixed positions change from frame to
  /// frame. alignment: 64 or 4096 (any power of two from 8 on is accepted).
  static Result<std::shared_ptr<const IpcTemplate>> make(const Schema& schema, const Plan& plan,
                                                         std::uint32_t alignment,
                                                         const std::string& schema_metadata = {});

  /// Places an offload. Precondition: check_offload returned ok. Reuses the vectors in `out`.
  void place(std::span<const NodeRef> nodes, std::span<const BufferRef> buffers, FrameLayout& out) const;

  /// Writes the schema message, the metadata and the end-of-stream marker around the bodies in `frame` (total_bytes
  /// long). Also zeroes the padding after each buffer, so that old bytes do not leak. `nodes` has the final null counts
  /// (never -1). Costs a memcpy and a few stores per section.
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

/// Checks an offload from an untrusted client. Counts must match the plan. Lengths must be >= 0 and agree between
/// parents and children. Each buffer must have the size that its node needs, at most 2^48 bytes, without overflow.
/// rebase must be in range, and null counts <= lengths. kInvalidArgument: the message names the fault.
Status check_offload(const Plan& plan, std::uint64_t rows, std::span<const NodeRef> nodes,
                     std::span<const BufferRef> buffers);

/// Called after all gets of a frame have completed. Shifts bitmaps whose rebase is not 0, and subtracts a first
/// offset that is not 0 (in place; unsliced columns are not touched). Counts unknown nulls into `nodes`, clears
/// bits beyond the last row, and writes the offset that a sender without rows omitted. kSourceFault: the first
/// or last offset of a variable-length node does not match its data's bytes or its child's rows.
/// kInvalidArgument: a column that is not nullable has nulls. On failure `at_fault`, if given, gets the index
/// into `buffers`.
Status finish_buffers(const Plan& plan, std::span<NodeRef> nodes, std::span<const BufferRef> buffers,
                      const FrameLayout& layout, std::span<std::byte> frame, std::uint64_t* at_fault = nullptr);

}  // namespace wherry::move
