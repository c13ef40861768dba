// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "probe/environment.hpp"
#include "probe/host/copy.hpp"
#include "probe/host/paths.hpp"

namespace wherry::probe {
namespace {

/// The source is on the last node. The destination is on the first node, where the thread should also run.
class Numa final : public CopyPath {
 public:
  explicit Numa(const std::string& root) : CopyPath("cpu.numa", "memory of another NUMA node", "host memory") {
    const auto nodes = numa_nodes(root);
    here_ = nodes.front(), there_ = nodes.back();
    if (nodes.size() < 2) say_absent("this machine has one NUMA node: there is no other to copy from");
  }

 private:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept override { std::memcpy(to, from, bytes); }
  Status place(std::span<std::byte> from, std::span<std::byte> to) override {
    if (Status moved = bind(from, there_); !moved) return moved;
    return bind(to, here_);
  }
  /// Uses mbind(2), without libnuma. Pages on other nodes are moved.
  static Status bind(std::span<std::byte> memory, unsigned node) {
    constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
    std::array<unsigned long, 16> mask{};
    if (node / kBits >= mask.size())
      return {StatusCode::kUnsupported, fmt::format("NUMA node {} is beyond {}", node, mask.size() * kBits)};
    mask[node / kBits] = 1UL << node % kBits;
    if (syscall(SYS_mbind, memory.data(), memory.size(), MPOL_BIND, mask.data(), mask.size() * kBits, MPOL_MF_MOVE) ==
        0)
      return ok_status();
    return {StatusCode::kUnsupported, fmt::format("no memory on NUMA node {}: {}", node, std::strerror(errno))};
  }

  unsigned here_ = 0, there_ = 0;
};

}  // namespace

std::unique_ptr<Path> make_numa(const std::string& root) { return std::make_unique<Numa>(root); }

}  // namespace wherry::probe
