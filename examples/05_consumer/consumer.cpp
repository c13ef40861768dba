// SPDX-License-Identifier: Apache-2.0
// Teaches: using an installed Wherry from your own project. The CMakeLists.txt beside this file is complete.
#include <wherry/move.hpp>

#include <chrono>
#include <cstdio>
#include <vector>

int main() {
  auto session = wherry::Session::open({.agent = "embedded"});
  if (!session) {
    std::fprintf(stderr, "%s\n", session.status().to_string().c_str());
    return 1;
  }
  auto stream = wherry::Stream::open(*session, {.name = "x"}, {wherry::field<double>("x")});
  const std::vector<double> x(1000, 1.0);
  if (!stream) return 1;
  auto ticket = stream->post({x});
  const bool ok = ticket && ticket->wait(std::chrono::seconds(10));
  std::printf("%s: %s\n", session->info().to_string().c_str(), ok ? "delivered" : "failed");
  return ok ? 0 : 1;
}
