// SPDX-License-Identifier: Apache-2.0
#include "probe/agent_work.hpp"

namespace wherry::bench {

std::size_t AgentWork::route() {
  const std::uint64_t before = router_.counts.bytes_in;
  for (;;) {
    const std::uint64_t seen = router_.counts.bytes_in;
    router_.each_input([&](route::Input& input) {
      router_.drain(input, [](const std::byte* at, const std::byte*) { return at; });  // none is the agent's own
    });
    if (router_.counts.bytes_in == seen) break;
  }
  router_.flush(route::Flush::kIdle);
  return router_.counts.bytes_in - before;
}

}  // namespace wherry::bench
