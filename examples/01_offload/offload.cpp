// SPDX-License-Identifier: Apache-2.0
// Teaches: handing plain C++ arrays to the agent. post() returns at once. The arrays must not change until the ticket
// is ready.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "wherry/move.hpp"

namespace {

int fail(const wherry::Status& status) {
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return 1;
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  auto session = wherry::Session::open();
  if (!session) return fail(session.status());

  const std::vector<double> energy(1'000'000, 0.5);
  const std::vector<std::int32_t> id(1'000'000, 7);

  auto stream = wherry::Stream::open(*session, {.name = "particles"},
                                     {wherry::field<double>("energy"), wherry::field<std::int32_t>("id")});
  if (!stream) return fail(stream.status());

  const auto start = std::chrono::steady_clock::now();
  auto ticket = stream->post({energy, id}, {.tag = 1});
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (!ticket) return fail(ticket.status());

  // The application continues to compute here. It must not change energy and id yet.
  if (auto done = ticket->wait(10s); !done) return fail(done);
  std::printf("posted in %.1f us; frame %llu was in place %.1f us after its first get\n", took.count(),
              static_cast<unsigned long long>(ticket->sequence()), static_cast<double>(ticket->transfer_ns()) / 1e3);

  if (auto closed = stream->close(); !closed) return fail(closed);
  return ticket->sequence() == 0 && ticket->transfer_ns() > 0 ? 0 : 1;
}
