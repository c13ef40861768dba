// SPDX-License-Identifier: Apache-2.0
// Streams of messages between two ranks or through an agent, compared with plain copies. Also latency when idle.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/random.hpp"
#include "experiments.hpp"
#include "huge.hpp"
#include "turns.hpp"

namespace wherry::bench {
namespace {

using route::ByteView;
using route::Header;
using route::Runtime;

/// Sends messages of 8 to 4096 bytes both ways at once; the handler copies them out. Then copies as many bytes in and
/// out as whole buffers. Returns for each turn: GB/s of payload, GB/s of copies.
Results random_sizes(Runtime& runtime, std::size_t bytes, int turns) {
  const route::Rank other = 1 - runtime.rank();
  std::vector<std::byte> source(std::size_t{1} << 20), sink(std::size_t{1} << 20);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(splitmix64(i));
  constexpr std::size_t kSizes = 4096;
  std::vector<std::uint32_t> sizes(kSizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = static_cast<std::uint32_t>(8 + splitmix64(i) % 4089);
  std::size_t got = 0, at = 0;
  const auto copy_out = [&](ByteView data) {
    if (at + data.size() > sink.size()) at = 0;
    std::memcpy(sink.data() + at, data.data(), data.size());
    at += data.size();
    got += data.size();
  };
  const auto take = runtime.on<ByteView>(copy_out);
  const std::function<void(ByteView)> take_buffer = copy_out;
  Results results;
  for (int turn = 0; turn < turns; ++turn) {
    double messages = 0, copies = 0;
    std::size_t payload = 0;
    for (int side = 0; side < 2; ++side) {
      if ((side + turn) % 2 == 0) {
        messages = seconds(runtime, [&] {
          std::size_t from = 0;
          for (std::size_t i = 0; payload < bytes; ++i) {
            const std::size_t size = sizes[i & (kSizes - 1)];
            if (from + size > source.size()) from = 0;
            send(runtime, other, take, ByteView(source.data() + from, size));
            from += size;
            payload += size;
            if (i % 16 == 15) runtime.poll();
          }
          quiesce(runtime);
        });
      } else {
        copies = seconds(runtime, [&] {
          // Messages that fill a buffer each.
          const std::size_t piece = runtime.max_buffer();
          std::size_t from = 0, left = bytes;
          got = 0;
          std::size_t expected = 0;
          while (left != 0) {
            runtime.poll_buffers(take_buffer);
            const auto space = runtime.try_buffer(other, piece);
            if (space.empty()) {
              check(runtime);
              continue;
            }
            if (from + piece > source.size()) from = 0;
            std::memcpy(space.data(), source.data() + from, piece);
            Header::make(piece - 8, take.id(), other).store(space.data());
            runtime.post_buffer(other, piece, 1);
            from += piece;
            expected += piece;
            left -= std::min(left, piece);
          }
          runtime.flush();
          while (got < expected) {
            runtime.poll_buffers(take_buffer);
            check(runtime);
          }
        });
      }
    }
    results.push_back(static_cast<double>(payload) * 1e-9 / messages);
    results.push_back(static_cast<double>(bytes) * 1e-9 / copies);
    quiesce(runtime);
  }
  return results;
}

/// Sends messages of `size` bytes through the agent back to their sender, in buffers that were prepared before. Returns
/// M messages/s of each turn.
Results through_agent(Runtime& runtime, std::size_t size, std::size_t messages, int turns) {
  const auto handler = runtime.on<ByteView>([](ByteView) {});
  const std::size_t stride = Header::stride_of(size);
  const std::size_t piece = runtime.max_buffer() / stride * stride;
  std::vector<std::byte> buffer(piece);
  for (std::size_t at = 0; at < piece; at += stride)
    Header::make(size, handler.id(), runtime.rank()).store(buffer.data() + at);
  std::size_t got = 0;
  const std::function<void(ByteView)> take = [&](ByteView data) { got += data.size(); };
  Results results;
  for (int turn = 0; turn < turns; ++turn) {
    std::size_t sent = 0;
    got = 0;
    const double took = seconds(runtime, [&] {
      while (sent < messages * stride) {
        const auto space = runtime.try_buffer(runtime.rank(), piece);
        if (!space.empty()) {
          std::memcpy(space.data(), buffer.data(), piece);
          runtime.post_buffer(runtime.rank(), piece, piece / stride);
          sent += piece;
        }
        runtime.poll_buffers(take);
        check(runtime);
      }
      runtime.flush();
      while (got < sent) {
        runtime.poll_buffers(take);
        check(runtime);
      }
    });
    const std::size_t count = sent / stride;
    results.push_back(static_cast<double>(count) * 1e-6 / took);
  }
  return results;
}

/// Sends one message at a time to the other rank and back. Returns the one-way times in us, sorted.
Results ping_pong(Runtime& runtime, int times) {
  struct Ping {
    std::uint64_t number;
  };
  const route::Rank other = 1 - runtime.rank();
  std::uint64_t arrived = 0;
  const auto ping = runtime.on<Ping>([&](const Ping& p) { arrived = p.number; });
  Results results;
  barrier(runtime);
  for (int i = 1; i <= times; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    const auto has_arrived = [&] { return arrived == number; };
    if (runtime.rank() == 0) {
      const std::uint64_t start = now_ns();
      (void)runtime.send(other, ping, Ping{number});
      runtime.flush();
      poll_until(runtime, has_arrived);
      results.push_back(static_cast<double>(now_ns() - start) * 0.5e-3);
    } else {
      poll_until(runtime, has_arrived);
      (void)runtime.send(other, ping, Ping{number});
      runtime.flush();
    }
  }
  quiesce(runtime);
  std::sort(results.begin(), results.end());
  return results;
}

}  // namespace

void run_random_sizes(RouteBench& bench) {
  std::vector<double> ours, copies, ratio;
  for (int round = 0; round < bench.rounds(); ++round) {
    const auto all = run_job(bench.pair(), [&](Runtime& runtime, const SharedMemory&) {
      return random_sizes(runtime, std::size_t{bench.quick() ? 64U : 512U} << 20, 3);
    });
    for (std::size_t turn = 1; turn < 3; ++turn) {
      ours.push_back(all[0][2 * turn]);
      copies.push_back(all[0][2 * turn + 1]);
      ratio.push_back(ours.back() / copies.back());
    }
  }
  bench.row("random_sizes",
            {{"payload_gbytes", median(ours)}, {"copy_gbytes", median(copies)}, {"ratio", median(ratio)}});
  bench.progress(
      fmt::format("random sizes: {:.1f} GB/s of payload each way, plain copies {:.1f}", median(ours), median(copies)));
  bench.bar("random_size_gbps_ratio", ratio, ">=", 0.6);
}

void run_agent_rate(RouteBench& bench) {
  for (const std::size_t size : {std::size_t{8}, std::size_t{16}, std::size_t{64}}) {
    std::vector<double> rates;
    for (int round = 0; round < bench.rounds(); ++round) {
      JobOptions job;
      job.placement = route::Placement::kHost;
      job.rank_cores = {bench.options().core_a};
      job.agent_cores = {bench.options().core_b};
      const auto all = run_job(job, [&](Runtime& runtime, const SharedMemory&) {
        return through_agent(runtime, size, bench.quick() ? 4'000'000 : 40'000'000, 3);
      });
      rates.insert(rates.end(), all[0].begin() + 1, all[0].end());
    }
    bench.row("agent_rate", {{"size", size}, {"mmps", median(rates)}});
    bench.progress(fmt::format("one routing thread: {:.0f} M messages/s of {} bytes", median(rates), size));
    if (size == 16) bench.bar("agent_mmps_per_core", rates, ">=", 80, "M messages/s");
  }
}

void run_latency(RouteBench& bench) {
  for (const auto placement : {route::Placement::kInline, route::Placement::kShared, route::Placement::kHost}) {
    std::vector<double> medians, p99;
    for (int round = 0; round < bench.rounds(); ++round) {
      const auto all = run_job(bench.two_nodes(placement),
                               [&](Runtime& runtime, const SharedMemory&) { return ping_pong(runtime, 10'000); });
      medians.push_back(all[0][all[0].size() / 2]);
      p99.push_back(all[0][all[0].size() * 99 / 100]);
    }
    bench.row("latency", {{"placement", to_string(placement)}, {"p50_us", median(medians)}, {"p99_us", median(p99)}});
    bench.progress(fmt::format("idle latency, {}: p50 {:.2f} us, p99 {:.2f} us", to_string(placement), median(medians),
                               median(p99)));
    if (placement == route::Placement::kHost) bench.bar("idle_latency_us", medians, "<=", 5, "us");
  }
}

}  // namespace wherry::bench
