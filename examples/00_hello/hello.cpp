// SPDX-License-Identifier: Apache-2.0
// Teaches: opening a session. open() finds or starts an agent (SessionOptions::agent), which reports how it reads this
// process's memory.
#include <cstdio>

#include "wherry/session.hpp"

int main() {
  auto session = wherry::Session::open();
  if (!session) {
    std::fprintf(stderr, "%s\n", session.status().to_string().c_str());
    return 1;
  }
  std::printf("%s\n", session->info().to_string().c_str());
  std::printf("readers find it through %s\n", session->info().session_file.c_str());

  // one_sided: the agent reads our memory while we compute. Otherwise this process spends time on every transfer.
  return session->info().heap == wherry::Verdict::kOneSided ? 0 : 1;
}
