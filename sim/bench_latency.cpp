// SPDX-License-Identifier: Apache-2.0
// Measures one operation at a time on an idle core, with the line in its cache, as the thesis does in chapter 5.6.
//
// The core's time runs from the first beat of the request to the last beat of the answer. The memory's part runs from
// the first address or data at the memory pins to the last data or answer there. The rest is the core's part, which the
// thesis calls "replication".
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/bench.hpp"
#include "sim/bench_rig.hpp"

namespace wherry::kv::rtl {
namespace {

using nlohmann::json;

// Times of the 100 Gbit/s port at 1 KiB, from the thesis's Table 5.8.
constexpr std::uint64_t kReadCmacNs = 71 + 154;
constexpr std::uint64_t kWriteCmacNs = 117 + 71;

constexpr Kv request_of(Kind kind, std::uint64_t key, std::uint16_t lane, std::uint32_t number) {
  return {.kind = static_cast<std::uint8_t>(kind), .epoch = Rig::kEpoch, .client = lane, .request = number, .key = key};
}

/// A span of cycles, divided into three parts.
struct Split {
  Cycles rx = 0;
  Cycles memory = 0;
  Cycles tx = 0;
  [[nodiscard]] Cycles total() const noexcept { return rx + memory + tx; }
};

Split split(Cycles begin, Cycles memory_begin, Cycles memory_end, Cycles end) {
  if (memory_end == 0 || memory_end < begin || memory_end > end) return {.rx = end - begin};
  return {.rx = memory_begin - begin, .memory = memory_end - memory_begin, .tx = end - memory_end};
}

Split read_once(Rig& rig, std::uint64_t key, std::size_t bytes) {
  rig.settle();
  rig.core().forget_memory_times();
  rig.put(Rig::client(), request_of(Kind::read, key, 0, 1));
  const Sent reply = rig.await(Kind::read_done);
  if (reply.bytes != kHeaderBytes + bytes) give_up(fmt::format("a read answered with {} bytes", reply.bytes));
  const MemoryTimes& times = rig.core().memory_times();
  return split(rig.core().entered(Side::kNet).first, times.first_job, times.last_word, reply.last);
}

void write_alone(Rig& rig, std::uint64_t key, std::size_t bytes, std::uint32_t number) {
  const auto value = value_of(bytes);
  rig.put(Rig::client(), request_of(Kind::write, key, 1, number), value);
  if (rig.await(Kind::write_done).header.detail != 0) give_up("a write was refused");
  rig.settle();
}

Split replica_write(Rig& rig, std::uint64_t key, std::size_t bytes, std::uint32_t version) {
  rig.settle();
  rig.core().forget_memory_times();
  Kv header = request_of(Kind::replicate, key, 1, version);
  header.node = 1;
  header.version = version;
  header.detail = node_detail(first_way_of(hash_of(key)), 0);
  header.candidate = first_candidate(key);
  const auto value = value_of(bytes);
  rig.put(Rig::node(1), header, value);
  const Sent reply = rig.await(Kind::replicated);
  const MemoryTimes& times = rig.core().memory_times();
  const Cycles begin = rig.core().entered(Side::kNet).first;
  return split(begin, times.first_job, times.last_done, reply.last);
}

struct LeaderWrite {
  Cycles first_frame;  ///< first beat of the request to first beat of the first `replicate`
  Cycles first_pass;   ///< to the last beat of the last `replicate`
  Split second_pass;
};

LeaderWrite leader_write(Rig& rig, std::uint32_t followers, std::uint64_t key, std::size_t bytes,
                         std::uint32_t number) {
  rig.settle();
  const auto value = value_of(bytes);
  rig.put(Rig::client(), request_of(Kind::write, key, 1, number), value);
  std::vector<Sent> frames;
  while (frames.size() < followers) frames.push_back(rig.await(Kind::replicate));
  const Cycles begin = rig.core().entered(Side::kNet).first;
  LeaderWrite times{
      .first_frame = frames.front().first - begin, .first_pass = frames.back().last - begin, .second_pass = {}};
  rig.settle();
  rig.core().forget_memory_times();
  for (const Sent& frame : frames) {
    Kv answer = frame.header;
    answer.kind = static_cast<std::uint8_t>(Kind::replicated);
    answer.node = static_cast<std::uint8_t>(frame.to.ip - Rig::node(0).ip);
    rig.put(Rig::node(answer.node), answer);
    if (&frame != &frames.back()) rig.settle();
  }
  const Sent reply = rig.await(Kind::write_done);
  if (reply.header.detail != 0) give_up("a leader refused a write");
  const MemoryTimes& memory = rig.core().memory_times();
  times.second_pass = split(rig.core().entered(Side::kNet).first, memory.first_job, memory.last_done, reply.last);
  return times;
}

struct Preset {
  const char* name;
  HbmTiming timing;
};

json row(const char* operation, const char* policy, std::size_t size, std::uint32_t followers, const Preset& preset,
         std::uint64_t cmac, Cycles rx, Cycles tx, Cycles memory, Cycles core) {
  return {{"operation", operation},
          {"policy", policy},
          {"size", size},
          {"followers", followers},
          {"memory", preset.name},
          {"cmac_ns", cmac},
          {"replication_rx_ns", rx * kCycleNs},
          {"replication_tx_ns", tx * kCycleNs},
          {"memory_ns", memory * kCycleNs},
          {"total_ns", cmac + core * kCycleNs}};
}

}  // namespace

json measure_latencies(bool quick) {
  json rows = json::array();
  const std::uint64_t key = Rig::keys(1).front();
  for (const Preset& preset : {Preset{"hardware", kHbmHardware}, Preset{"simulated", kHbmSimulated}}) {
    for (const std::size_t size : {std::size_t{64}, std::size_t{1024}}) {
      Rig alone({.memory = preset.timing});
      write_alone(alone, key, size, 1);
      read_once(alone, key, size);
      const Split read = read_once(alone, key, size);
      rows.push_back(row("read", "none", size, 0, preset, kReadCmacNs, read.rx, read.tx, read.memory, read.total()));
      for (const bool accept : {false, true}) {
        const char* const policy = accept ? "accept" : "store";
        Rig follower({.nodes = 2, .leader = 1, .accept = accept, .memory = preset.timing});
        replica_write(follower, key, size, 1);
        const Split replica = replica_write(follower, key, size, 2);
        rows.push_back(row("replica_write", policy, size, 0, preset, kWriteCmacNs, replica.rx, replica.tx,
                           replica.memory, replica.total()));
        for (const std::uint32_t followers : quick ? std::vector{1U, 7U} : std::vector{1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
          Rig leader({.nodes = followers + 1, .accept = accept, .memory = preset.timing});
          leader_write(leader, followers, key, size, 1);
          const LeaderWrite w = leader_write(leader, followers, key, size, 2);
          // Adds both passes and one follower between them, each with the thesis's 188 ns, as its Table 5.9 does.
          const Cycles added = w.second_pass.rx + w.second_pass.tx;
          rows.push_back(row("leader_write", policy, size, followers, preset, 3 * kWriteCmacNs, w.first_frame, added,
                             w.second_pass.memory + replica.memory,
                             w.first_pass + replica.total() + w.second_pass.total()));
        }
      }
    }
  }
  return rows;
}

}  // namespace wherry::kv::rtl
