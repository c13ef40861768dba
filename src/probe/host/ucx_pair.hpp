// SPDX-License-Identifier: Apache-2.0
// Two processes connected through src/fabric, and the memory of both.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.hpp"
#include "fabric/fabric.hpp"
#include "probe/host/child.hpp"
#include "probe/host/memory.hpp"

namespace wherry::probe {

/// One pair for each transport, shared by get, put and message: connecting takes tens of milliseconds, and a
/// process that uses UCX should not fork again. The child sleeps in read(2) unless wake() makes it progress.
class UcxPair {
 public:
  static constexpr std::size_t kArenaBytes = (std::size_t{16} << 20) + (std::size_t{1} << 17);
  static constexpr unsigned kMostDepth = 16;

  /// Returns a transport's pair. The first user creates it, and it ends with the last user.
  [[nodiscard]] static Result<std::shared_ptr<UcxPair>> of(Transport transport);
  UcxPair() = default;
  UcxPair(const UcxPair&) = delete;
  UcxPair& operator=(const UcxPair&) = delete;
  ~UcxPair();

  [[nodiscard]] std::span<std::byte> mine() const noexcept { return mine_.data(); }
  /// The child's memory, which this process can also access.
  [[nodiscard]] std::span<std::byte> theirs() const noexcept { return theirs_.data(); }
  [[nodiscard]] fabric::Worker& worker() noexcept { return *worker_; }
  [[nodiscard]] fabric::Endpoint& endpoint() noexcept { return endpoint_; }
  [[nodiscard]] const fabric::Region& local() const noexcept { return local_; }
  [[nodiscard]] const fabric::RemoteRegion& remote() const noexcept { return remote_; }
  /// Whether a get completed while the child slept. False: a get needs the child's help.
  [[nodiscard]] bool one_sided() const noexcept { return one_sided_; }
  /// Where the child stores received messages.
  void set_layout(const Layout& layout) noexcept;
  /// The number of messages that the child has stored and answered, by slot.
  [[nodiscard]] std::uint64_t answered(unsigned slot) const noexcept { return answered_[slot]; }
  /// The child makes progress from now until sleep().
  void wake() noexcept;
  void sleep() noexcept;
  [[nodiscard]] Path::CpuTime other_side() noexcept;
  /// Ends all operations in flight, of all users. The next call of of() makes a new pair.
  void cancel() noexcept;
  /// The names that UCX uses.
  [[nodiscard]] std::string transports() const { return endpoint_.transports(); }

 private:
  struct Shared;
  struct Theirs;
  Status make(Transport transport);
  void serve(Transport transport);
  Status find_whether_one_sided();

  Mapping mine_, theirs_, shared_memory_;
  Shared* shared_ = nullptr;
  Fd control_, childs_control_;
  Child child_;
  std::shared_ptr<fabric::Context> context_;
  std::unique_ptr<fabric::Worker> worker_;
  fabric::Endpoint endpoint_;
  fabric::Region local_;
  fabric::RemoteRegion remote_;
  std::array<std::uint64_t, kMostDepth> answered_{};
  struct Slot {
    UcxPair* pair = nullptr;
    unsigned number = 0;
  };
  std::array<Slot, kMostDepth> slots_{};
  bool one_sided_ = false, awake_ = false, broken_ = false;
};

}  // namespace wherry::probe
