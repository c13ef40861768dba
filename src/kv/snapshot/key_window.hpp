// SPDX-License-Identifier: Apache-2.0
// The node's end of key_stream.hpp: a Unix socket of mode 0600, where processes of the node's user and of root get its
// table's keys. Thread: the node's own, which calls turn() between requests. One turn reads at most kMaxPieceBuckets
// buckets, and never blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kv/message.hpp"
#include "kv/snapshot/key_stream.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// Reads a node's table for listing, from the host's own memory or from a card's.
class TableLister {
 public:
  /// Returns when list() can see every write that the node has acknowledged.
  virtual void settle() = 0;
  /// Appends the key of each location of these buckets that was ever written, even if it was deleted since.
  virtual void list(std::uint32_t first, std::uint32_t buckets, std::vector<std::uint64_t>& keys) = 0;

 protected:
  TableLister() = default;
  TableLister(const TableLister&) = default;
  TableLister& operator=(const TableLister&) = default;
  ~TableLister() = default;
};

/// The path of the socket for a node of a cluster file, in the file's directory.
[[nodiscard]] std::string key_window_path(const std::string& cluster_file, std::uint32_t node);

class KeyWindow {
 public:
  /// `core`: the node's registers. `core` and `lister` must outlive the window. Errors: as listen_unix().
  static Result<KeyWindow> open(const std::string& path, std::uint32_t node, SnapshotSource source, RegisterIo& core,
                                TableLister& lister);
  KeyWindow(KeyWindow&&) noexcept;
  KeyWindow& operator=(KeyWindow&&) noexcept;
  ~KeyWindow();  ///< the socket's file goes, too

  void turn();
  /// True while keys are being sent to a process; then call turn() soon.
  [[nodiscard]] bool busy() const noexcept;

 private:
  struct Impl;
  explicit KeyWindow(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
