// SPDX-License-Identifier: Apache-2.0
// Messages per second by size and placement. The throughput of whole buffers between two nodes is the upper limit.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "experiments.hpp"
#include "message_stream.hpp"
#include "turns.hpp"

namespace wherry::bench {
namespace {

using route::ByteView;
using route::Header;
using route::Placement;
using route::Runtime;

constexpr std::size_t kSizes[] = {8, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};

}  // namespace

OfSize stream(Runtime& runtime, route::Handler<ByteView> take, ByteView source, std::size_t size,
              std::size_t messages) {
  const route::Rank other = 1 - runtime.rank();
  const Span span(runtime);
  std::uint64_t blocked_ns = 0;
  const double took = seconds(runtime, [&] {
    std::size_t from = 0, polled = 0;
    for (std::size_t i = 0; i < messages; ++i) {
      if (from + size > source.size()) from = 0;
      send_counting(runtime, other, take, source.subspan(from, size), blocked_ns);
      from += size;
      // Polls after each buffer's worth of bytes, because large messages wait until a poll sends them in fragments.
      if (i * size >= polled) {
        runtime.poll();
        polled += runtime.max_buffer();
      }
    }
    quiesce(runtime);
  });
  return {took, span.transfer_bytes(), static_cast<double>(blocked_ns) * 1e-9 / took};
}

std::vector<OfSize> stream_sizes(Runtime& runtime, std::span<const std::size_t> sizes, StreamEffort effort) {
  std::uint64_t sum = 0;
  const auto take = runtime.on<ByteView>([&](ByteView data) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data(), sizeof word);
    sum += word;
  });
  const std::vector<std::byte> source(std::size_t{4} << 20, std::byte{1});
  std::vector<OfSize> found;
  for (const std::size_t size : sizes) {
    const std::size_t messages = effort.messages(size);
    stream(runtime, take, source, size, messages / 4 + 1);
    found.push_back(stream(runtime, take, source, size, messages));
  }
  return found;
}

namespace {

StreamEffort effort_of(bool quick) {
  return quick ? StreamEffort{std::size_t{16} << 20, 500'000} : StreamEffort{std::size_t{128} << 20, 4'000'000};
}

Results all_sizes(Runtime& runtime, bool quick) {
  Results results;
  for (const OfSize& of : stream_sizes(runtime, kSizes, effort_of(quick)))
    results.insert(results.end(), {of.seconds, of.transfer_bytes, of.blocked_share});
  return results;
}

/// Sends `bytes` bytes in whole buffers, to this rank and the other in turn. The handler does not read them. Returns
/// the seconds of each turn.
Results whole_buffers(Runtime& runtime, std::size_t bytes, int turns) {
  const auto take = runtime.on<ByteView>([](ByteView) {});
  const std::size_t piece = runtime.max_buffer();
  const std::vector<std::byte> source(piece, std::byte{1});
  const std::size_t buffers = bytes / piece;
  Results results;
  for (int turn = 0; turn < turns; ++turn) {
    results.push_back(seconds(runtime, [&] {
      for (std::size_t i = 0; i < buffers;) {
        const auto to = static_cast<route::Rank>((i + runtime.rank()) % 2);
        const auto space = runtime.try_buffer(to, piece);
        if (space.empty()) {
          runtime.poll();
          check(runtime);
          continue;
        }
        std::memcpy(space.data(), source.data(), piece);
        Header::make(piece - 8, take.id(), to).store(space.data());
        runtime.post_buffer(to, piece, 1);
        ++i;
      }
      quiesce(runtime);
    }));
  }
  return results;
}

}  // namespace

void run_message_sizes(RouteBench& bench) {
  constexpr Placement kPlacements[] = {Placement::kInline, Placement::kShared, Placement::kHost};
  struct Samples {
    std::vector<double> mmps, gbps, transfer, blocked;
  };
  std::map<Placement, std::map<std::size_t, Samples>> all;
  for (int round = 0; round < bench.rounds(); ++round) {
    for (const Placement placement : kPlacements) {
      const auto results = run_job(bench.two_nodes(placement), [&](Runtime& runtime, const SharedMemory&) {
        return all_sizes(runtime, bench.quick());
      });
      const Results& mine = results.front();  // both ranks begin and end together
      for (std::size_t i = 0; i < std::size(kSizes); ++i) {
        Samples& samples = all[placement][kSizes[i]];
        const double messages = 2.0 * static_cast<double>(effort_of(bench.quick()).messages(kSizes[i]));
        samples.mmps.push_back(messages * 1e-6 / mine[3 * i]);
        samples.gbps.push_back(messages * static_cast<double>(kSizes[i]) * 8e-9 / mine[3 * i]);
        samples.transfer.push_back(mine[3 * i + 1]);
        samples.blocked.push_back(mine[3 * i + 2]);
      }
    }
  }
  for (const Placement placement : kPlacements) {
    std::string text;
    for (const auto& [size, samples] : all[placement]) {
      bench.row("message_sizes", {{"placement", to_string(placement)},
                                  {"size", size},
                                  {"mmps", median(samples.mmps)},
                                  {"gbps", median(samples.gbps)},
                                  {"transfer_bytes", median(samples.transfer)},
                                  {"blocked_share", median(samples.blocked)}});
      if (size == 8) text += fmt::format("{:.0f} M messages/s of 8 bytes", median(samples.mmps));
      if (size == 4096 || size == 1 << 20)
        text += fmt::format(", {:.0f} Gbit/s of {}", median(samples.gbps), size == 4096 ? "4 KiB" : "1 MiB");
    }
    bench.progress(fmt::format("message sizes, {}: {}", to_string(placement), text));
  }
}

void run_link(RouteBench& bench) {
  const std::size_t bytes = std::size_t{bench.quick() ? 64U : 256U} << 20;
  for (const Placement placement : {Placement::kInline, Placement::kHost}) {
    std::vector<double> gbps;
    for (int round = 0; round < bench.rounds(); ++round) {
      const auto results = run_job(bench.two_nodes(placement), [&](Runtime& runtime, const SharedMemory&) {
        return whole_buffers(runtime, bytes, 3);
      });
      for (std::size_t turn = 1; turn < 3; ++turn)
        gbps.push_back(2.0 * static_cast<double>(bytes) * 8e-9 / results[0][turn]);
    }
    bench.row("link", {{"placement", to_string(placement)}, {"gbps", median(gbps)}});
    bench.progress(
        fmt::format("whole buffers between two nodes, {}: {:.0f} Gbit/s", to_string(placement), median(gbps)));
  }
}

}  // namespace wherry::bench
