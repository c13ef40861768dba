// SPDX-License-Identifier: Apache-2.0
// Copies within one process: the base case, without another side.
#pragma once

#include "probe/host/memory.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// A copy by the calling thread, complete when try_post() returns. With CacheState::kFlushed, both ends are
/// in no cache: transfers go round as many slots as fit into kFlushedBytes, and restore() flushes them.
class CopyPath : public Path {
 public:
  static constexpr std::size_t kFlushedBytes = std::size_t{256} << 10;

  [[nodiscard]] const PathInfo& info() const override { return info_; }
  [[nodiscard]] Status accepts(const Shape& shape) const override;
  [[nodiscard]] Work work(const Shape& shape) const override;
  [[nodiscard]] Result<Bound> open(const Shape& shape) override;
  void prepare(std::uint64_t seed) override;
  void restore() override;
  [[nodiscard]] bool try_post(unsigned slot) override;
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override;
  [[nodiscard]] Status verify(std::uint64_t seed) override;
  [[nodiscard]] std::span<std::byte> landing() override { return landing_of(to_.data(), layout_); }
  void close() noexcept override;

 protected:
  CopyPath(const char* id, const char* from, const char* to);
  void say_absent(std::string why) { info_.absent = std::move(why); }
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept = 0;
  /// Places the pages before data is written to them.
  [[nodiscard]] virtual Status place(std::span<std::byte> /*from*/, std::span<std::byte> /*to*/) { return ok_status(); }

 private:
  PathInfo info_;
  Layout layout_;
  CacheState cache_ = CacheState::kWarm;
  Mapping from_, to_;
  std::uint64_t posted_ = 0;
  bool done_ = false;
};

/// A copy by one thread stores at most 64 bytes a cycle (AMD's and Intel's optimisation
/// manuals: one 512-bit store), at the core's highest clock, or at 8 GHz if that is unknown.
[[nodiscard]] Bound one_thread_bound();

}  // namespace wherry::probe
