// SPDX-License-Identifier: Apache-2.0
// The other side of a path: a child process (fork()) on another core, which serves requests.
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

/// A child process, which ends with this object and with its parent process. Move-only.
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

  /// Runs `serve` in a child that is pinned to cores().other. The child ends when `serve` returns. `serve` must
  /// not use locks that other threads of this process may hold. kResourceExhausted: the process cannot be created.
  [[nodiscard]] static Result<Child> start(const std::function<void()>& serve);
  void stop() noexcept;
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool alive() const noexcept;

 private:
  pid_t pid_ = -1;
};

/// A request between the two sides.
struct Request {
  enum Op : std::uint32_t { kTransfer, kReport, kFill };
  std::uint32_t op = kTransfer;
  std::uint32_t slot = 0;
  std::uint64_t argument = 0;  // kFill: the seed
};

/// The child's answers to requests that are not transfers, in shared memory.
struct Answers {
  alignas(64) std::atomic<std::uint64_t> given{0};
  std::uint64_t user_ns = 0, system_ns = 0;  ///< of the child's process, when it was last asked

  /// Called in the child.
  void report() noexcept;
  void done() noexcept { given.fetch_add(1, std::memory_order_release); }
};

/// A path whose other side is a child process. open() starts the child, and close() ends it.
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

  /// Makes the state that both sides share, before the child exists. `shape` was accepted.
  [[nodiscard]] virtual Status connect(const Shape& shape) = 0;
  /// Runs in the child until this process ends it.
  virtual void serve() = 0;
  /// Sends the child a request that is not a transfer. Returns false if the child has ended.
  [[nodiscard]] virtual bool ask(const Request& request) noexcept = 0;
  /// Undoes connect().
  virtual void disconnect() noexcept = 0;
  /// Called in the child: answers a request that is not a transfer.
  void answer(const Request& request) noexcept;

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::byte* source(unsigned slot) const noexcept { return from_.data().data() + layout_.offset(slot); }
  [[nodiscard]] std::byte* destination(unsigned slot) const noexcept {
    return to_.data().data() + layout_.offset(slot);
  }
  [[nodiscard]] const Child& child() const noexcept { return child_; }
  /// Makes the source or destination private to one side, so that the other side cannot access it.
  void keep_private(bool source_is_childs, bool destination_is_ours) {
    source_is_childs_ = source_is_childs;
    to_kind_ = destination_is_ours ? Mapping::Kind::kPrivate : Mapping::Kind::kShared;
  }
  void note_posted(unsigned slot) noexcept { posted_ = std::max(posted_, slot + 1); }

 private:
  /// Waits for one more answer. Returns false if the child has ended.
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

/// One iteration of a loop that waits for the other side; `count`
/// counts them. It yields the core if both sides share one.
void spin(std::uint64_t& count) noexcept;

}  // namespace wherry::probe
