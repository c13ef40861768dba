// SPDX-License-Identifier: Apache-2.0
// Fuzz target: arbitrary interleavings of sends, polls and try_quiesce() on up to four ranks (quiesce_testing.hpp).
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "route/client/quiesce_testing.hpp"

using wherry::route::testing_support::QuiescePlay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::size_t at = 1;
  std::uint64_t tail = data[0];
  // When the input bytes are used up, a fixed sequence lets all ranks finish.
  const auto choose = [&](std::uint32_t n) -> std::uint32_t {
    if (at < size) return data[at++] % n;
    tail = tail * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::uint32_t>(tail >> 33) % n;
  };
  std::vector<std::uint32_t> nodes(1 + data[0] % 4);
  for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) nodes[rank] = (data[0] & 16) != 0 ? rank / 2 : 0;
  QuiescePlay play({.node_of_rank = nodes, .episodes = 2, .sends = 4, .steps = 200'000}, choose);
  if (const std::string wrong = play.run(); !wrong.empty()) {
    std::fprintf(stderr, "%s\n", wrong.c_str());
    std::abort();
  }
  return 0;
}
