// SPDX-License-Identifier: Apache-2.0
// The MAC and the interface for each IPv4 address that a port sends to, if the port builds its own Ethernet frames.
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
  /// Keeps this neighbour's path up to date for as long as the table lives. Does not wait: refresh() asks the kernel,
  /// and a later refresh() has the answer. A change of MAC or interface is found, too.
  wherry::Status keep(std::uint32_t ip);
  /// Whether all kept neighbours are known. Costs some tens of microseconds when a look-up is due, else nothing. So
  /// call it often.
  bool refresh(std::uint64_t now_ns);
  [[nodiscard]] Path find(std::uint32_t ip) const noexcept;
  /// A frame came from this address along this path. Learns the paths of kept neighbours only: any machine may send.
  void learn(std::uint32_t ip, const Path& path) noexcept;

 private:
  struct Neighbour {
    std::uint32_t ip = 0;
    Path path;
    bool kept = false;
    std::uint64_t due_ns = 0;  ///< to be looked for again
  };
  /// A new entry if there is none. nullptr: no room.
  [[nodiscard]] Neighbour* neighbour(std::uint32_t ip) noexcept;
  void look_for(Neighbour& one) const;

  std::vector<std::string> interfaces_;
  /// The namespace of those interfaces: refresh() may be called from another one.
  NetworkNamespace network_ = NetworkNamespace::current();
  std::array<Neighbour, 64> neighbours_{};
  std::size_t known_ = 0;         ///< of neighbours_
  std::uint64_t refresh_ns_ = 0;  ///< when refresh() has something to do
  bool complete_ = true;          ///< what it said last
};

}  // namespace wherry::kv
