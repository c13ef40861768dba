// SPDX-License-Identifier: Apache-2.0
// MAC and interface of each IPv4 address that a port sends to. For ports that build their own Ethernet frames.
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
  /// Keeps this neighbour's path up to date as long as the table lives. Does not wait: refresh() asks the kernel, and a
  /// later refresh() gets the answer. It also detects a change of MAC or interface.
  wherry::Status keep(std::uint32_t ip);
  /// Returns whether all kept neighbours are known. Costs some tens of microseconds if a look-up is due, otherwise
  /// nothing, so call it often.
  bool refresh(std::uint64_t now_ns);
  [[nodiscard]] Path find(std::uint32_t ip) const noexcept;
  /// Learns from a frame that came from this address along this path. Only for kept neighbours: any machine may send.
  void learn(std::uint32_t ip, const Path& path) noexcept;

 private:
  struct Neighbour {
    std::uint32_t ip = 0;
    Path path;
    bool kept = false;
    std::uint64_t due_ns = 0;  ///< to be looked for again
  };
  /// Returns a neighbour's entry, new if there is none. nullptr: no room.
  [[nodiscard]] Neighbour* neighbour(std::uint32_t ip) noexcept;
  void look_for(Neighbour& one) const;

  std::vector<std::string> interfaces_;
  /// The network namespace of these interfaces, because refresh() may be called from another one.
  NetworkNamespace network_ = NetworkNamespace::current();
  std::array<Neighbour, 64> neighbours_{};
  std::size_t known_ = 0;         ///< of neighbours_
  std::uint64_t refresh_ns_ = 0;  ///< when refresh() has something to do
  bool complete_ = true;          ///< what it said last
};

}  // namespace wherry::kv
