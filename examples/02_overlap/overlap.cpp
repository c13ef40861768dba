// SPDX-License-Identifier: Apache-2.0
// Teaches: computing while the agent pulls. Both buffers are Wherry's own memory, registered, and mapped by an agent on
// this machine. Step n computes into one while the agent may still read step n - 1 from the other.
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>

#include "wherry/move.hpp"

namespace {

int fail(const wherry::Status& status) {
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return 1;
}

void compute(std::uint64_t step, std::span<double> field) {
  for (std::size_t i = 0; i < field.size(); ++i)
    field[i] = std::sin(static_cast<double>(step) + static_cast<double>(i));
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  constexpr std::size_t kCells = 1 << 20;
  constexpr std::uint64_t kSteps = 20;
  auto session = wherry::Session::open();
  if (!session) return fail(session.status());
  std::array<wherry::Memory, 2> memory;
  for (auto& piece : memory) {
    auto allocated = session->allocate(kCells * sizeof(double));
    if (!allocated) return fail(allocated.status());
    piece = *std::move(allocated);
  }
  auto stream = wherry::Stream::open(*session, {.name = "field", .announced_bytes = {kCells * sizeof(double)}},
                                     {wherry::field<double>("u")});
  if (!stream) return fail(stream.status());

  std::array<wherry::Ticket, 2> tickets;
  int waited = 0;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const std::size_t mine = step % 2;
    if (step >= 2) {  // this buffer was posted two steps ago
      if (!tickets[mine].ready()) ++waited;
      if (auto done = tickets[mine].wait(10s); !done) return fail(done);
    }
    compute(step, memory[mine].as<double>());
    auto posted = stream->post({memory[mine].as<double>()}, {.tag = step});
    if (!posted) return fail(posted.status());
    tickets[mine] = *posted;
  }
  if (auto done = session->drain(10s); !done) return fail(done);
  std::printf("%llu steps, of which %d had to wait for their buffer\n", static_cast<unsigned long long>(kSteps),
              waited);
  return tickets[(kSteps - 1) % 2].sequence() == kSteps - 1 ? 0 : 1;
}
