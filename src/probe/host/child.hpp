// SPDX-License-Identifier: Apache-2.0
// The other side of a path: a child of fork() on another core, which serves requests.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "probe/host/memory.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// A process that ends with this object, and with the one that made it. Move-only.
class Child {
 public:
  Child() noexcept = default;
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { stop(); }

  /// Runs `serve` in a child, pinned to cores().other. The child ends when that returns. It must not touch locks that
  /// other threads of this process may hold. kResourceExhausted: no process can be created.
  [[nodiscard]] static Result<Child> start(const std::function<void()>& serve);
  void stop() noexcept;
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool alive() const noexcept;

 private:
  pid_t pid_ = -1;
};

/// A request of one side to the other.
struct Request {
  enum Op : std::uint32_t { kTransfer, kReport, kFill };
  std::uint32_t op = kTransfer;
  std::uint32_t slot = 0;
  std::uint64_t argument = 0;  // kFill: the seed
};

/// In shared memory: the child's answers to requests other than transfers.
struct Answers {
  alignas(64) std::atomic<std::uint64_t> given{0};
  std::uint64_t user_ns = 0, system_ns = 0;  ///< of the child's process, when it was last asked

  /// In the child.
  void report() noexcept;
  void done() noexcept { given.fetch_add(1, std::memory_order_release); }
};

/// A path whose other side is a child that is started by open() and ended by close().
class ChildPath : public Path {
 public:
  [[nodiscard]] const PathInfo& info() const override { return info_; }
  [[nodiscard]] Result<Bound> open(const Shape& shape) override;
  void prepare(std::uint64_t seed) override;
  [[nodiscard]] Status verify(std::uint64_t seed) override;
  [[nodiscard]] std::span<std::byte> landing() override { return landing_of(to_.data(), layout_); }
  [[nodiscard]] CpuTime other_side() override;
  void close() noexcept override;

 protected:
  explicit ChildPath(PathInfo info) : info_(std::move(info)) {}

  /// The common state of both sides, before the child exists. `shape` was accepted.
  [[nodiscard]] virtual Status connect(const Shape& shape) = 0;
  /// In the child, until this process ends it.
  virtual void serve() = 0;
  /// A request to the child, other than a transfer. false: it has ended.
  [[nodiscard]] virtual bool ask(const Request& request) noexcept = 0;
  /// Back as before connect().
  virtual void disconnect() noexcept = 0;
  /// In the child: answers a request other than a transfer.
  void answer(const Request& request) noexcept;

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::byte* source(unsigned slot) const noexcept { return from_.data().data() + layout_.offset(slot); }
  [[nodiscard]] std::byte* destination(unsigned slot) const noexcept {
    return to_.data().data() + layout_.offset(slot);
  }
  [[nodiscard]] const Child& child() const noexcept { return child_; }
  /// Makes source or destination private to a side, so the other cannot see it then.
  void keep_private(bool source_is_childs, bool destination_is_ours) {
    source_is_childs_ = source_is_childs;
    to_kind_ = destination_is_ours ? Mapping::Kind::kPrivate : Mapping::Kind::kShared;
  }
  void note_posted(unsigned slot) noexcept { posted_ = std::max(posted_, slot + 1); }

 private:
  /// Waits for the answer to one more request. false: the child has ended.
  bool await_answer() noexcept;

  PathInfo info_;
  Layout layout_;
  bool source_is_childs_ = false;
  Mapping::Kind to_kind_ = Mapping::Kind::kShared;
  Mapping from_, to_, answers_memory_;
  Answers* answers_ = nullptr;
  std::uint64_t asked_ = 0;
  unsigned posted_ = 0;  ///< slots that have been used since prepare()
  Child child_;
};

/// One spin of a loop that waits for the other side. `count` counts them. If both sides share one core, it yields the
/// core.
void spin(std::uint64_t& count) noexcept;

}  // namespace wherry::probe
