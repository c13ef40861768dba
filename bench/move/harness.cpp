// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/cpu.hpp"

namespace wherry::bench {

namespace {

constexpr std::uint64_t kPatienceNs = 30'000'000'000U;

std::size_t machine_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
}

}  // namespace

std::string size_text(std::size_t bytes) {
  return bytes >= kMiB ? fmt::format("{} MiB", bytes / kMiB) : fmt::format("{} KiB", bytes / kKiB);
}

std::vector<std::size_t> Bench::sizes(std::vector<std::size_t> all, std::vector<std::size_t> quick) const {
  if (options.quick) all = std::move(quick);
  // The largest experiment holds the data some sixteen times, in frames, sources and Arrow's own buffers.
  const std::size_t most = machine_memory() / 24;
  std::erase_if(all, [most](std::size_t size) { return size > most && size > kMiB; });
  return all;
}

void Bench::progress(const std::string& text) const {
  fmt::print(stderr, "bench_move: {}\n", text);
  std::fflush(stderr);
}

Stream Bench::open(const std::string& name, Strategy strategy, const Schema& schema, std::size_t bytes) const {
  StreamOptions stream;
  stream.name = name;
  stream.strategy = strategy;
  stream.retention.frames = 1;
  stream.announced_bytes = {bytes};
  return require(Stream::open(session, stream, strategy == Strategy::kRaw ? Schema{} : schema), "open_stream");
}

void spin(const Ticket& ticket) {
  const std::uint64_t start = now_ns();
  while (!ticket.ready()) {
    cpu_relax();
    check_interrupted();
    if (now_ns() - start > kPatienceNs) require(ticket.wait(std::chrono::nanoseconds(0)), "waiting for an offload");
  }
}

double transfer_ns(const Ticket& ticket) {
  require(ticket.wait(std::chrono::nanoseconds(0)), "an offload");
  return static_cast<double>(ticket.transfer_ns());
}

}  // namespace wherry::bench
