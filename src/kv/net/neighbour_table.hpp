// SPDX-License-Identifier: Apache-2.0
// Whom an IPv4 address means to a port that builds its own Ethernet frames, and through which of its interfaces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/network_namespace.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

class NeighbourTable {
 public:
  struct Path {
    std::uint64_t mac = 0;      ///< 0: not known yet
    std::size_t interface = 0;  ///< its index among those of the table
    friend constexpr bool operator==(const Path&, const Path&) = default;
  };

  explicit NeighbourTable(std::vector<std::string> interfaces) : interfaces_(std::move(interfaces)) {}

  wherry::Status add(std::uint32_t ip, const Path& path);
  /// For as long as the table lives, without waiting: refresh() asks the kernel, and a later one knows, through which
  /// interface this one is reached and with which MAC, also when either changes.
  wherry::Status keep(std::uint32_t ip);
  /// Whether all that are kept are known. Some tens of microseconds when one is due, else nothing; call it often.
  bool refresh(std::uint64_t now_ns);
  [[nodiscard]] Path find(std::uint32_t ip) const noexcept;
  /// A frame of a neighbour came along this path. Others than those that are kept are not learnt: anybody may send.
  void learn(std::uint32_t ip, const Path& path) noexcept;

 private:
  struct Neighbour {
    std::uint32_t ip = 0;
    Path path;
    bool kept = false;
    std::uint64_t due_ns = 0;  ///< to be looked for again
  };
  /// A new one if there is none; nullptr: no room.
  [[nodiscard]] Neighbour* neighbour(std::uint32_t ip) noexcept;
  void look_for(Neighbour& one) const;

  std::vector<std::string> interfaces_;
  /// Where those are, whoever calls refresh() later.
  NetworkNamespace network_ = NetworkNamespace::current();
  std::array<Neighbour, 64> neighbours_{};
  std::size_t known_ = 0;         ///< of neighbours_
  std::uint64_t refresh_ns_ = 0;  ///< when refresh() has something to do
  bool complete_ = true;          ///< what it said last
};

}  // namespace wherry::kv
