// SPDX-License-Identifier: Apache-2.0
// A delivered offload in the agent's memory, and its stream.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fabric/arena.hpp"
#include "move/layout.hpp"
#include "wherry/move.hpp"

namespace wherry::move {

class Pipeline;         // operate/pipeline.hpp
class Products;         // products.hpp
class ProductTemplate;  //
class SinkDirectory;    // sink_directory.hpp

/// Properties that all frames of a stream share. Immutable after the stream is opened.
struct StreamInfo {
  std::string name;
  Strategy strategy = Strategy::kIpc;
  Schema schema;                ///< of a raw stream: one field "buffer" of large_binary
  std::string schema_metadata;  ///< StreamOptions::schema_metadata
  Plan plan;
  std::shared_ptr<const IpcTemplate> ipc;
  Retention retention;
  Sink sink;
  std::uint32_t parts = 0;  ///< StreamOptions::parts: a step of the stream is as many frames; 0: one
  std::vector<std::shared_ptr<const StreamInfo>> derived;  ///< streams that operators.hpp makes of this one
  std::string source;                                      ///< the stream that this one is derived from; or empty
  std::shared_ptr<const Pipeline> pipeline;                ///< how; null: it is not derived
  /// The common part of the frames' products. Used only by make_products (products.hpp), on the data thread.
  mutable std::shared_ptr<ProductTemplate> products;
  /// The directory of the stream's files. Null without a sink. Also null after the stream is closed, because closed
  /// streams are kept for long and the handle needs a descriptor. Data thread only; FileSink takes its own reference
  /// for each frame.
  mutable std::shared_ptr<const SinkDirectory> files;
};

/// The progress of a stream's parts.
struct PartsStatus {
  std::uint32_t parts = 0;                      ///< 0: the stream has none
  std::uint32_t open = 0;                       ///< that are open for writing
  std::uint64_t incomplete = 0, discarded = 0;  ///< steps: not complete yet; given up
};

/// Immutable once published. Readers on any thread share it. Its memory returns to the arena with the last reference.
class Frame {
 public:
  std::shared_ptr<const StreamInfo> stream;
  std::uint64_t sequence = 0;  ///< 0, 1, ... within its stream
  std::uint64_t tag = 0;       ///< the application's own number (a time step, say)
  std::uint64_t rows = 0;
  std::uint64_t source_bytes = 0;  ///< moved from the host
  std::uint64_t transfer_ns = 0;   ///< first get issued to last byte placed
  Extent extent;                   ///< page-aligned; layout.total_bytes of it are used
  FrameLayout layout;
  std::vector<NodeRef> nodes;
  std::shared_ptr<const Products> products;  ///< null unless the strategy is arrays, record_batch or c_abi
  /// In a stream in parts, the frame of part 0 represents the step, and holds the frames of parts 1, 2, ...
  std::uint32_t part = 0;
  std::vector<std::shared_ptr<const Frame>> others;

  // The frames of the step that this frame represents.
  [[nodiscard]] std::size_t frames() const noexcept { return 1 + others.size(); }
  [[nodiscard]] const Frame& frame(std::size_t i) const noexcept { return i == 0 ? *this : *others[i - 1]; }
  template <typename Figure>
  [[nodiscard]] std::uint64_t sum(Figure figure) const noexcept {
    std::uint64_t all = figure(*this);
    for (const auto& other : others) all += figure(*other);
    return all;
  }
  [[nodiscard]] std::uint64_t step_rows() const noexcept {
    return sum([](const Frame& f) { return f.rows; });
  }
  /// The total bytes of the step's IPC streams. It uses more bytes of the arena.
  [[nodiscard]] std::uint64_t step_bytes() const noexcept {
    return sum([](const Frame& f) { return f.layout.total_bytes; });
  }
  [[nodiscard]] std::uint64_t step_memory() const noexcept {
    return sum([](const Frame& f) { return f.extent.bytes().size(); });
  }

  /// The frame as a complete Arrow IPC stream, valid while the frame lives. If the stream's strategy does not write the
  /// metadata in transit (arrays, record_batch, c_abi, raw), the first call writes it. Thread-safe.
  [[nodiscard]] std::span<const std::byte> ipc() const;
  /// For the service: records that the metadata is already written.
  void set_ipc_written() noexcept { ipc_written_.store(true, std::memory_order_release); }

 private:
  mutable std::atomic<bool> ipc_written_{false};
  mutable std::mutex write_mutex_;
};

using FramePtr = std::shared_ptr<const Frame>;

/// One frame of a step. A reference to it keeps the whole step in memory.
inline FramePtr frame_of(const FramePtr& step, std::size_t i) { return {step, &step->frame(i)}; }

}  // namespace wherry::move
