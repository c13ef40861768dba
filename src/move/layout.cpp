// SPDX-License-Identifier: Apache-2.0
#include "move/layout.hpp"

#include <cstring>
#include <limits>
#include <string>

namespace wherry::move {
namespace {

constexpr std::uint64_t kEndOfStreamBytes = 8;
constexpr std::uint64_t kPrefixBytes = 8;  ///< of an encapsulated message: continuation marker, metadata length

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

void zero(std::span<std::byte> frame, std::uint64_t from, std::uint64_t to) {
  std::memset(frame.data() + from, 0, to - from);
}

template <typename T>
void store(std::span<std::byte> frame, std::uint64_t at, T value) {
  std::memcpy(frame.data() + at, &value, sizeof value);
}

// A FieldNode of an Arrow message has the layout of a NodeRef: two int64, length and null count.
static_assert(sizeof(NodeRef) == 16 && offsetof(NodeRef, null_count) == 8);

class OffloadCheck {
 public:
  OffloadCheck(const Plan& plan, std::uint64_t rows, std::span<const NodeRef> nodes, std::span<const BufferRef> buffers)
      : plan_(plan), rows_(rows), nodes_(nodes), buffers_(buffers) {}

  Status run() {
    if (nodes_.size() != plan_.nodes.size()) {
      return invalid("has " + std::to_string(nodes_.size()) + " nodes, the schema " +
                     std::to_string(plan_.nodes.size()));
    }
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (const char* fault = node(i)) {
        return invalid("node " + std::to_string(i) + " (" + std::to_string(nodes_[i].length) + " rows, " +
                       std::to_string(nodes_[i].null_count) + " nulls): " + fault);
      }
    }
    if (next_ != buffers_.size()) {
      return invalid("has " + std::to_string(buffers_.size()) + " buffers, its nodes " + std::to_string(next_));
    }
    return {};
  }

 private:
  static Status invalid(const std::string& what) { return {StatusCode::kInvalidArgument, "the offload " + what}; }

  /// Returns the fault of node i, or null.
  const char* node(std::uint32_t i) {
    const NodeSpec& spec = plan_.nodes[i];
    const NodeRef& ref = nodes_[i];
    if (ref.length < 0 || ref.length > kMaxExtent) return "length is negative or more than 2^48";
    if (ref.null_count < -1 || ref.null_count > ref.length) return "null count is neither -1 nor 0 to length";
    if (const char* fault = length(spec, ref)) return fault;
    if (spec.kind == Kind::kNull) return nullptr;

    if (ref.null_count != 0) {
      if (const char* fault = bits(ref.length)) return fault;
    }
    switch (spec.kind) {
      case Kind::kFixed: {
        std::uint64_t bytes = 0;
        if (__builtin_mul_overflow(static_cast<std::uint64_t>(ref.length), spec.width, &bytes))
          return "length times width overflows";
        return exactly(bytes);
      }
      case Kind::kBool:
        return bits(ref.length);
      case Kind::kList:
        return offsets(spec, ref, static_cast<std::uint64_t>(nodes_[i + 1].length));
      case Kind::kBinary: {
        const std::uint64_t data = next_ + 1 < buffers_.size() ? buffers_[next_ + 1].bytes : 0;
        if (const char* fault = offsets(spec, ref, data)) return fault;
        return exactly(data);
      }
      case Kind::kNull:
      case Kind::kFixedSizeList:
      case Kind::kStruct:
        return nullptr;
    }
    return nullptr;
  }

  const char* length(const NodeSpec& spec, const NodeRef& ref) const {
    if (spec.parent < 0) {
      const bool column = spec.section + 1 == plan_.sections.size();
      return column && static_cast<std::uint64_t>(ref.length) != rows_
                 ? "length is not the number of rows of the offload"
                 : nullptr;
    }
    const NodeSpec& parent_spec = plan_.nodes[static_cast<std::size_t>(spec.parent)];
    const NodeRef& parent = nodes_[static_cast<std::size_t>(spec.parent)];
    switch (parent_spec.kind) {
      case Kind::kStruct:
        return ref.length == parent.length ? nullptr : "length is not that of its struct";
      case Kind::kFixedSizeList: {
        std::int64_t wanted = 0;
        const bool overflow = __builtin_mul_overflow(parent.length, std::int64_t{parent_spec.list_size}, &wanted);
        return overflow || ref.length != wanted ? "length is not that of its list times the list size" : nullptr;
      }
      default:
        return nullptr;  // a list: offsets() of the parent looked at it
    }
  }

  /// Takes the next buffer, which must have exactly that many bytes. With fewer bytes, readers would run past its end.
  /// More bytes would publish memory that is not part of a column.
  const char* exactly(std::uint64_t bytes, std::int64_t rebase = 0) {
    if (next_ >= buffers_.size()) return "a buffer is missing";
    const BufferRef& buffer = buffers_[next_];
    if (bytes > static_cast<std::uint64_t>(kMaxExtent)) return "a buffer of more than 2^48 bytes";
    if (buffer.bytes != bytes) return "a buffer has not exactly the bytes that its rows need";
    if (buffer.address > std::numeric_limits<std::uint64_t>::max() - bytes)
      return "a buffer ends beyond the last address";
    if (buffer.rebase != rebase) return "a rebase where there is nothing to rebase";
    ++next_;
    return nullptr;
  }

  const char* bits(std::int64_t rows) {
    if (next_ >= buffers_.size()) return "a buffer is missing";
    const std::int64_t first = buffers_[next_].rebase;
    if (first < 0 || first > 7 || (rows == 0 && first != 0)) return "the rebase of bits is not 0 to 7";
    return exactly(rows == 0 ? 0 : static_cast<std::uint64_t>(first + rows + 7) / 8, first);
  }

  /// `selected`: bytes of the data, or rows of the child.
  const char* offsets(const NodeSpec& spec, const NodeRef& ref, std::uint64_t selected) {
    if (next_ >= buffers_.size()) return "a buffer is missing";
    const BufferRef& buffer = buffers_[next_];
    if (selected > static_cast<std::uint64_t>(kMaxExtent)) return "the offsets select more than 2^48";
    if (ref.length == 0) {
      if (selected != 0) return "no rows, and yet they select something";
      // An array without rows may have no offset or a single offset.
      if (buffer.bytes == 0) return exactly(0);
    }
    const std::int64_t most = spec.width == sizeof(std::int32_t) ? std::numeric_limits<std::int32_t>::max()
                                                                 : std::numeric_limits<std::int64_t>::max();
    if (buffer.rebase < 0 || buffer.rebase > most - static_cast<std::int64_t>(selected))
      return "the rebase of offsets is out of range";
    return exactly((static_cast<std::uint64_t>(ref.length) + 1) * spec.width, buffer.rebase);
  }

  const Plan& plan_;
  std::uint64_t rows_;
  std::span<const NodeRef> nodes_;
  std::span<const BufferRef> buffers_;
  std::size_t next_ = 0;  ///< first buffer that no node has claimed yet
};

}  // namespace

void IpcTemplate::place(std::span<const NodeRef> nodes, std::span<const BufferRef> buffers, FrameLayout& out) const {
  const std::size_t section_count = plan_.sections.size();
  out.buffers.resize(plan_.buffers.size());
  out.body_offset.resize(section_count);
  out.body_bytes.resize(section_count);

  std::uint64_t at = schema_message_.size();
  const BufferRef* next = buffers.data();
  for (std::size_t s = 0; s < section_count; ++s) {
    const Section& section = plan_.sections[s];
    at = align_up(at + sections_[s].metadata.size(), alignment_);
    out.body_offset[s] = at;
    for (std::uint32_t i = section.first_buffer; i < section.first_buffer + section.buffer_count; ++i) {
      const BufferSpec& spec = plan_.buffers[i];
      const bool absent = spec.kind == BufferKind::kValidity && nodes[spec.node].null_count == 0;
      std::uint64_t bytes = absent ? 0 : (next++)->bytes;
      // Arrow's format requires length + 1 offsets. A sender without rows may omit the single offset; then
      // finish_buffers writes the zero.
      if (spec.kind == BufferKind::kOffsets && bytes == 0) bytes = plan_.nodes[spec.node].width;
      out.buffers[i] = {at, bytes};
      at = align_up(at + bytes, alignment_);
    }
    out.body_bytes[s] = at - out.body_offset[s];
  }
  out.total_bytes = at + kEndOfStreamBytes;
}

void IpcTemplate::write_metadata(const FrameLayout& layout, std::span<const NodeRef> nodes,
                                 std::span<std::byte> frame) const {
  std::memcpy(frame.data(), schema_message_.data(), schema_message_.size());
  std::uint64_t at = schema_message_.size();
  for (std::size_t s = 0; s < plan_.sections.size(); ++s) {
    const Section& section = plan_.sections[s];
    const SectionTemplate& message = sections_[s];
    const std::uint64_t body = layout.body_offset[s];

    std::memcpy(frame.data() + at, message.metadata.data(), message.metadata.size());
    zero(frame, at + message.metadata.size(), body);
    store(frame, at + sizeof(std::uint32_t),
          static_cast<std::int32_t>(body - at - kPrefixBytes));  // the padding counts
    store(frame, at + message.body_length_at, layout.body_bytes[s]);
    store(frame, at + message.rows_at, nodes[section.first_node].length);
    std::memcpy(frame.data() + at + message.nodes_at, &nodes[section.first_node], section.node_count * sizeof(NodeRef));

    std::uint64_t entry = at + message.buffers_at;
    for (std::uint32_t i = section.first_buffer; i < section.first_buffer + section.buffer_count; ++i, entry += 16) {
      const Placement& buffer = layout.buffers[i];
      store(frame, entry, buffer.offset - body);
      store(frame, entry + 8, buffer.bytes);
      const std::uint64_t end = buffer.offset + buffer.bytes;
      zero(frame, end, align_up(end, alignment_));
    }
    at = body + layout.body_bytes[s];
  }
  store(frame, at, std::uint32_t{0xFFFFFFFF});
  store(frame, at + 4, std::uint32_t{0});
}

Status check_offload(const Plan& plan, std::uint64_t rows, std::span<const NodeRef> nodes,
                     std::span<const BufferRef> buffers) {
  return OffloadCheck(plan, rows, nodes, buffers).run();
}

}  // namespace wherry::move
