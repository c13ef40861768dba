// SPDX-License-Identifier: Apache-2.0
// Clients, mostly ill-behaved, for fault_test and process_test: fault_client SESSION_FILE SCENARIO [ARGUMENT]
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "wherry/move.hpp"

using namespace wherry;
using namespace std::chrono_literals;

namespace {

int fail(const char* where, const Status& s) {
  std::fprintf(stderr, "fault_client: %s: %s\n", where, s.to_string().c_str());
  return 3;
}

/// Posts for ever, two frames ahead of the agent. Frame n is read from source n % 3, which is filled with one value.
int die(Session& session) {
  auto stream = Stream::open(session, {.name = "doomed", .retention = {.frames = 2}}, {field<double>("x")});
  if (!stream) return fail("open_stream", stream.status());
  constexpr std::size_t kRows = (32 << 20) / sizeof(double);
  std::vector<std::vector<double>> sources;
  for (int k = 0; k < 3; ++k) {
    sources.emplace_back(kRows);
    for (std::size_t i = 0; i < kRows; ++i) sources.back()[i] = k * 1e9 + static_cast<double>(i);
  }
  for (std::uint64_t n = 0;; ++n) {
    auto ticket = stream->post({Column(sources[n % 3])}, {.tag = n % 3, .wait_for_ticket = 10s});
    if (!ticket) return fail("post", ticket.status());
  }
}

/// Many small offloads of the same 500 sizes, as fast as possible. Status 0: all were delivered.
int load(Session& session, const std::string& name, int count) {
  auto stream =
      Stream::open(session, {.name = name, .retention = {.frames = 8}}, {field<double>("x"), field<float>("y")});
  if (!stream) return fail("open_stream", stream.status());
  const std::vector<double> x(4096, 1.0);
  const std::vector<float> y(4096, 2.0F);
  for (int i = 0; i < count; ++i) {
    const std::size_t rows = 1 + 8 * static_cast<std::size_t>(i % 500);
    auto ticket =
        stream->post({Column(std::span(x).first(rows)), Column(std::span(y).first(rows))}, {.wait_for_ticket = 20s});
    if (!ticket) return fail("post", ticket.status());
  }
  const Status s = session.drain(20s);
  return s ? 0 : fail("drain", s);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string_view scenario = argv[2];
  const std::string argument = argc > 3 ? argv[3] : "";
  SessionOptions options;
  options.agent = argv[1];
  if (scenario == "die") options.max_tickets = 4;
  if (argument == "tcp") options.transport = Transport::kTcp;
  auto session = Session::open(options);
  if (!session) return fail("open", session.status());
  if (scenario == "die") return die(*session);
  if (scenario == "load") return load(*session, argument, argc > 4 ? std::atoi(argv[4]) : 0);
  const Retention lossless{.frames = 1, .when_full = Retention::WhenFull::kWait};
  auto stream =
      Stream::open(*session, {.name = "doomed", .retention = scenario == "wait" ? lossless : Retention{.frames = 2}},
                   {field<double>("x")});
  if (!stream) return fail("open_stream", stream.status());

  if (scenario == "tcp") {
    // CMA is denied to this process, so the session works over TCP and reports the reason.
    const std::string& used = session->info().transports;
    if (!used.starts_with("stream/") || used.find("instead: ") == used.npos) {
      std::fprintf(stderr, "fault_client: transports '%s'\n", used.c_str());
      return 4;
    }
    const std::vector<double> x(1000, 1.0);
    auto ticket = stream->post({Column(x)});
    if (!ticket) return fail("post", ticket.status());
    const Status s = ticket->wait(20s);
    return s ? 0 : fail("wait", s);
  }
  if (scenario == "wait") {
    // The second offload waits for a reader that never comes, and the agent is killed meanwhile. Status 0: the client
    // got an error within seconds.
    const std::vector<double> x(1000, 1.0);
    auto first = stream->post({Column(x)});
    if (!first || !first->wait(10s)) return 3;
    auto second = stream->post({Column(x)});
    if (!second) return fail("post", second.status());
    std::puts("waiting");
    std::fflush(stdout);
    const Status s = second->wait(30s);
    return s.code() == StatusCode::kUnavailable ? 0 : fail("wait", s);
  }
  if (scenario == "unmap") {
    // The memory is unmapped while an offload reads it: that ticket fails, and the next one works.
    const std::size_t bytes = 8 << 20;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(memory, 1, bytes);
    auto region = session->register_memory(memory, bytes);
    if (!region) return fail("register", region.status());
    munmap(memory, bytes);
    const std::span<const double> gone(static_cast<const double*>(memory), bytes / 8);
    const std::vector<double> fine(1000, 2.0);
    auto bad = stream->post({Column(gone)});
    auto good = stream->post({Column(fine)});
    if (!bad || !good) return 3;
    const Status s = bad->wait(10s);
    if (s.code() != StatusCode::kSourceFault) return fail("the unmapped one", s);
    if (Status g = good->wait(10s); !g) return fail("the good one posted with it", g);
    auto later = stream->post({Column(fine)});
    if (Status l = later->wait(10s); !l) return fail("the good one posted later", l);
    return good->sequence() == 0 && later->sequence() == 1 ? 0 : 4;
  }
  return 2;
}
