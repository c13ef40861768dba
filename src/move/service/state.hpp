// SPDX-License-Identifier: Apache-2.0
// The move service's state of sessions, streams and offloads. Private to the service.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.hpp"
#include "move/service/dataset.hpp"
#include "move/service/offload_engine.hpp"

namespace wherry::move {

/// One accepted offload, from its message to its frame.
struct OffloadEngine::Offload {
  enum class State : std::uint8_t {
    kWaiting,  ///< for destination memory
    kMoving,   ///< gets in flight or still to be issued
    kHalf,     ///< the first half is in place; it waits for the second (Half)
    kPlaced,   ///< everything is where it belongs; published when those before it are
    kFailed,
  };
  State state = State::kWaiting;
  std::uint64_t ticket = 0;  ///< of the message at work; 0: it was answered, and the other half has not come
  std::uint64_t tag = 0, rows = 0;
  std::uint64_t deadline_at = 0;  ///< now_ns() after which it fails; 0: never
  std::uint64_t source_bytes = 0;
  std::uint64_t shape = 0;         ///< of its frame, see StreamState::shape; 0: not known beforehand
  std::uint64_t queued_bytes = 0;  ///< of its own lists here, see ClientState::queued_bytes
  std::uint64_t start = 0;         ///< which of its client's starts it was
  bool waited = false;             ///< for memory or for room in its stream; counted
  bool suspect = false;            ///< its gets were in flight when one failed, see OffloadEngine::recover

  std::vector<NodeRef> nodes;
  std::vector<BufferRef> buffers;          ///< as the client sent them
  std::vector<std::uint64_t> destination;  ///< one a buffer: offset in the frame
  std::vector<BufferRef> plan_buffers;     ///< raw streams: the two buffers of the frame's plan; others: unused
  std::shared_ptr<Frame> frame;

  fabric::Completion done;
  std::uint32_t at_buffer = 0;   ///< next get: this buffer ...
  std::uint64_t at_offset = 0;   ///< ... from this byte on
  std::uint32_t last_get = 0;    ///< the buffer of the get that was issued last
  std::uint64_t started_ns = 0;  ///< of its first turn; 0: it had none
  std::uint64_t moved_ns = 0;    ///< of the half before

  bool halves = false;            ///< the frame comes in two posts: buffers without a region belong to the other one
  bool first_half = false;        ///< `buffers` are those of the first
  std::uint64_t rest_ticket = 0;  ///< 0: the second half has not come
  std::vector<BufferRef> rest;    ///< of the second half: its buffers; those of the first have region 0

  StatusCode code = StatusCode::kOk;
  std::uint64_t detail = 0;

  /// The bytes of an offload's lists: nodes, buffers, destinations.
  static std::uint64_t bytes_of(std::uint64_t node_count, std::uint64_t buffer_count) noexcept {
    return node_count * sizeof(NodeRef) + buffer_count * (sizeof(BufferRef) + sizeof(std::uint64_t));
  }
  [[nodiscard]] bool all_issued() const noexcept { return at_buffer == buffers.size(); }
  void rewind() noexcept {
    at_buffer = 0;
    at_offset = 0;
    done.reset();
  }
};

struct OffloadEngine::StreamState {
  std::uint32_t id = 0;  ///< for the client
  std::shared_ptr<const StreamInfo> info;
  std::shared_ptr<Dataset> dataset;  ///< null: the stream has no parts; then info is its own
  std::uint32_t part = 0;
  std::uint64_t last_tag = 0;  ///< of the latest offload, with a dataset
  ClientState* client = nullptr;
  std::deque<std::unique_ptr<Offload>> queue;  ///< in the order in which they were posted, which is the order of frames
  std::uint64_t next_sequence = 0;
  /// Incremented when an offload's lengths differ from those of the offload before. Two frames of one stream with the
  /// same shape have the same bytes around their bodies. So an extent that held such a frame needs no new metadata
  /// (paper 004 V-F: "a pre-existing buffer in the Arrow IPC format").
  std::uint32_t shape = 0;
  std::vector<NodeRef> shape_nodes;
  std::vector<std::uint64_t> shape_bytes;
  std::uint32_t moving = 0;
  std::uint64_t received = 0;  ///< offload messages seen
  bool active = false;         ///< it is in OffloadEngine::active_
  bool closing = false;
  Bytes opened_with;  ///< the request's options and schema, until something is posted: see OpenRequest::again
  std::uint64_t shape_of(std::span<const NodeRef> nodes, std::span<const BufferRef> buffers);
  std::uint64_t close_after =
      0;  ///< closing: messages that the client sent before it closed; they may come after the request
  [[nodiscard]] bool finished() const noexcept { return closing && queue.empty() && received >= close_after; }
};

struct OffloadEngine::ClientState {
  struct RegionState {
    std::uint64_t base = 0, size = 0;
    Bytes key;
    std::uint32_t epoch = 0;  ///< of the connection that `remote` belongs to
    fabric::RemoteRegion remote;
    /// The bytes of a table entry, including the table's overhead.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return sizeof(RegionState) + 64 + key.size(); }
  };
  struct DroppedRegion {
    RegionState region;
    std::uint64_t until = 0;  ///< offloads that started later do not use it
  };
  /// Buffers that the client posts repeatedly: OffloadHeader::binding.
  struct Binding {
    std::uint32_t stream = 0;
    std::uint64_t rows = 0;
    std::vector<NodeRef> nodes;
    std::vector<BufferRef> buffers;
    [[nodiscard]] std::uint64_t bytes() const noexcept {
      return sizeof(Binding) + 64 + nodes.size() * sizeof(NodeRef) + buffers.size() * sizeof(BufferRef);
    }
  };
  session::Client* handle = nullptr;
  std::unordered_map<std::uint32_t, Binding> bindings;
  std::uint64_t binding_bytes = 0;
  std::unordered_map<std::uint32_t, RegionState> regions;
  std::deque<DroppedRegion> dropped;  ///< forgotten by the client, or replaced; freed when no get can be using them
  std::uint64_t region_bytes = 0;     ///< of both
  std::unordered_map<std::uint32_t, std::unique_ptr<StreamState>> streams;
  std::uint32_t arrived = 0;        ///< messages in the inbox
  std::uint64_t arrived_bytes = 0;  ///< of those
  std::uint32_t offloads = 0;       ///< in all queues
  std::uint64_t queued_bytes = 0;   ///< that their lists take
  std::uint64_t starts = 0;
  std::uint32_t moving = 0;
  bool reconnect = false;      ///< a get failed: the connection must be made anew once nothing is in flight
  std::uint32_t suspects = 0;  ///< offloads that must start again one at a time; no other starts meanwhile
  Offload* trial = nullptr;    ///< the one whose turn it is
  bool lost = false;           ///< it cannot be reached any more; the control connection will say so soon
  std::uint64_t untold = 0;    ///< offloads that failed, and about which no line has been logged yet
  std::string first_untold;    ///< why the first of them did
};

}  // namespace wherry::move
