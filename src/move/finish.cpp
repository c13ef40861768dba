// SPDX-License-Identifier: Apache-2.0
// The checks and corrections that need the bytes of a frame, after they have arrived.
#include <bit>
#include <cstring>
#include <string>

#include "move/layout.hpp"

namespace wherry::move {
namespace {

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

/// Shifts all bits by `by` (1 to 7) places towards the first bit. Zeros fill the end.
void shift_bits(std::span<std::byte> bits, unsigned by) {
  std::size_t i = 0;
  for (; i + 9 <= bits.size(); i += 8) {
    const auto low = load<std::uint64_t>(&bits[i]);
    const auto next = static_cast<std::uint64_t>(bits[i + 8]);
    store(&bits[i], (low >> by) | (next << (64 - by)));
  }
  for (; i < bits.size(); ++i) {
    const std::byte next = i + 1 < bits.size() ? bits[i + 1] : std::byte{0};
    bits[i] = (bits[i] >> by) | (next << (8 - by));
  }
}

/// Clears the bits beyond `rows`. Stores only where such a bit is set, so that clean pages stay clean.
void clear_beyond(std::span<std::byte> bits, std::uint64_t rows) {
  std::size_t i = rows / 8;
  if (i < bits.size() && rows % 8 != 0) {
    const std::byte kept = bits[i] & std::byte((1u << (rows % 8)) - 1);
    if (bits[i] != kept) bits[i] = kept;
    ++i;
  }
  for (; i < bits.size(); ++i) {
    if (bits[i] != std::byte{0}) bits[i] = std::byte{0};
  }
}

std::int64_t count_set(std::span<const std::byte> bits) {
  std::int64_t count = 0;
  std::size_t i = 0;
  for (; i + 8 <= bits.size(); i += 8) count += std::popcount(load<std::uint64_t>(&bits[i]));
  for (; i < bits.size(); ++i) count += std::popcount(static_cast<std::uint8_t>(bits[i]));
  return count;
}

void finish_bits(std::span<std::byte> bits, std::int64_t rebase, std::int64_t rows) {
  if (rebase != 0) shift_bits(bits, static_cast<unsigned>(rebase));
  clear_beyond(bits, static_cast<std::uint64_t>(rows));
}

/// Rebases the offsets. False if the first or last offset differs from the offload's. `Unsigned` prevents overflow by
/// wrong inner offsets.
template <typename Signed, typename Unsigned>
bool finish_offsets(std::span<std::byte> offsets, std::int64_t rebase, std::int64_t selected) {
  const std::int64_t first = load<Signed>(offsets.data());
  const std::int64_t last = load<Signed>(offsets.data() + offsets.size() - sizeof(Signed));
  if (first != rebase || last < first || last - first != selected) return false;
  if (rebase == 0) return true;
  const auto by = static_cast<Unsigned>(rebase);
  for (std::size_t at = 0; at < offsets.size(); at += sizeof(Signed)) {
    store(offsets.data() + at, static_cast<Unsigned>(load<Unsigned>(offsets.data() + at) - by));
  }
  return true;
}

}  // namespace

Status finish_buffers(const Plan& plan, std::span<NodeRef> nodes, std::span<const BufferRef> buffers,
                      const FrameLayout& layout, std::span<std::byte> frame, std::uint64_t* at_fault) {
  std::size_t next = 0;
  const auto fault = [&](StatusCode code, std::uint32_t at, const std::string& what) -> Status {
    if (at_fault != nullptr) *at_fault = next - 1;
    return {code, "node " + std::to_string(at) + ": " + what};
  };
  for (std::uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferSpec& buffer = plan.buffers[i];
    const NodeSpec& spec = plan.nodes[buffer.node];
    NodeRef& node = nodes[buffer.node];
    if (buffer.kind == BufferKind::kValidity && node.null_count == 0) continue;  // absent: no BufferRef either
    const BufferRef& source = buffers[next++];
    const std::int64_t rebase = source.rebase;
    const std::span<std::byte> bytes = frame.subspan(layout.buffers[i].offset, layout.buffers[i].bytes);

    switch (buffer.kind) {
      case BufferKind::kFixed:
      case BufferKind::kData:
        break;
      case BufferKind::kBits:
        finish_bits(bytes, rebase, node.length);
        break;
      case BufferKind::kValidity:
        finish_bits(bytes, rebase, node.length);
        // A node's validity is its first buffer, so no later buffer needs the value -1.
        if (node.null_count < 0) node.null_count = node.length - count_set(bytes);
        if (node.null_count > 0 && !spec.nullable) {
          return fault(StatusCode::kInvalidArgument, buffer.node,
                       std::to_string(node.null_count) + " of its " + std::to_string(node.length) +
                           " rows are null, and its field is not nullable: open the stream with a field that is");
        }
        break;
      case BufferKind::kOffsets: {
        if (source.bytes == 0) {  // of no rows
          std::memset(bytes.data(), 0, bytes.size());
          break;
        }
        const auto selected = spec.kind == Kind::kBinary ? static_cast<std::int64_t>(layout.buffers[i + 1].bytes)
                                                         : nodes[buffer.node + 1].length;
        const bool honest = spec.width == sizeof(std::int32_t)
                                ? finish_offsets<std::int32_t, std::uint32_t>(bytes, rebase, selected)
                                : finish_offsets<std::int64_t, std::uint64_t>(bytes, rebase, selected);
        if (!honest) {
          return fault(StatusCode::kSourceFault, buffer.node,
                       "its first offset is not " + std::to_string(rebase) + " or its last not " +
                           std::to_string(selected) +
                           " more, as the offload said; did the application change it before the ticket was ready?");
        }
        break;
      }
    }
  }
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].kind == Kind::kNull) nodes[i].null_count = nodes[i].length;
  }
  return {};
}

}  // namespace wherry::move
