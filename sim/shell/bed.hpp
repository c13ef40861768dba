// SPDX-License-Identifier: Apache-2.0
// The thesis's testbench (sections 5.2 to 5.5): one packet over one path of the shell, and the times in the thesis's
// tables.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/shell/parameters.hpp"

namespace wherry::sim::shell {

enum class Path : std::uint8_t {
  kHostToWire,  ///< case 1, outgoing
  kWireToHost,  ///< case 1, incoming
  kWireToHbm,   ///< case 2, write
  kHbmToWire,   ///< case 2, read
  kHostToHbm,   ///< case 3, write
  kHbmToHost,   ///< case 3, read
};
struct PathName {
  Path path;
  std::uint32_t number;   ///< of the case
  std::string_view name;  ///< as the published values' ids have it: "out", "in", "write", "read"
};
[[nodiscard]] const std::vector<PathName>& paths();

struct Section {
  std::string_view name;  ///< as the published values' ids have it: "host_qdma"
  double ns;
};

/// Of one packet. Nanoseconds.
struct Measured {
  double descriptor = 0;           ///< case 2 has none
  double total = 0;                ///< without the descriptor, as in Tables 5.1, 5.3 and 5.5
  std::vector<Section> sections;   ///< of Tables 5.2, 5.4 and 5.6, in the order of the path; their sum is the total
  std::uint32_t transactions = 0;  ///< reads of the card's memory
  std::uint64_t wrong = 0;         ///< bytes that did not arrive, or that differ from what was sent
};

/// `bytes`: a multiple of 64, 64 to 16384.
[[nodiscard]] Measured run(Path path, std::uint32_t bytes, const Parameters& parameters);

}  // namespace wherry::sim::shell
