// SPDX-License-Identifier: Apache-2.0
#include "sim/bench_rig.hpp"

#include <fmt/core.h>

#include <bitset>
#include <cstdlib>

#include "kv/control/configuration.hpp"
#include "kv/generated/registers.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr Cycles kPatience = 1'000'000;

Configuration configuration_of(const RigOptions& options) {
  Configuration c{.epoch = Rig::kEpoch,
                  .members = static_cast<NodeMask>((1U << options.nodes) - 1),
                  .bucket_bits = Rig::kBucketBits};
  c.serving = c.members;
  c.leaders.fill(static_cast<std::uint8_t>(options.leader));
  for (std::uint32_t i = 0; i < options.nodes; ++i) c.peers[i] = Rig::node(i);
  return c;
}

}  // namespace

void give_up(const std::string& why) {
  fmt::print(stderr, "kv_rtl_bench: {}\n", why);
  std::exit(EXIT_FAILURE);
}

std::vector<std::byte> value_of(std::size_t bytes) {
  std::vector<std::byte> value(bytes);
  for (std::size_t i = 0; i < bytes; ++i) value[i] = static_cast<std::byte>(i * 7 + 1);
  return value;
}

Endpoint Rig::node(std::uint32_t number) {
  return {.mac = 0x020000000000U + number, .ip = 0x0a000000U + number, .port = static_cast<std::uint16_t>(kUdpPort)};
}
Endpoint Rig::client() { return {.mac = 0x020000000064U, .ip = 0x0a000064U, .port = 40000}; }

Rig::Rig(const RigOptions& options)
    : core_({.memory = options.memory,
             .net = {.gaps = options.gaps ? 200'000U : 0,
                     .stalls = options.gaps ? 300'000U : 0,
                     .line_rate = options.line_rate}}),
      driver_({.cluster = "bench",
               .bucket_bits = kBucketBits,
               .retry_cycles = 10'000'000,
               .accept = options.accept,
               .sources = options.sources,
               .busy_interval = 1000},
              core_, *this, 0) {
  driver_.enter_static(configuration_of(options), 0);
  const bool leads = options.leader == 0;
  for (Cycles end = core_.now() + kPatience; core_.now() < end;) {
    core_.step(2000);
    collect([](const Sent&) {});
    driver_.on_time(core_.now());
    const std::uint32_t state = core_.read(registers::kStateOffset);
    if (registers::kStateServing.get(state) != 0 && (!leads || registers::kStateOpened.get(state) != 0)) {
      settle();
      return;
    }
  }
  give_up(fmt::format("the core does not serve: state {:#x}, epoch {}", core_.read(registers::kStateOffset),
                      core_.read(registers::kEpochOffset)));
}

void Rig::put(const Endpoint& from, const Kv& header, ByteView value, Cycles not_before) {
  std::array<std::byte, kHeaderBytes + kMaxValueBytes> frame;
  const std::size_t size = build(frame, from, node(0), {header, value}, UdpChecksum::kNone);
  core_.put(Side::kNet, ByteView(frame).first(size), not_before);
}

void Rig::collect(const std::function<void(const Sent&)>& take) {
  while (const auto frame = core_.take(Side::kNet)) {
    if (frame->bytes.size() < kHeaderBytes) give_up("the core sent a frame that is no kv frame");
    const ByteView bytes = frame->bytes;
    const Sent sent{.to = destination_of(bytes),
                    .header = Kv::unpack(bytes.subspan<kKvOffset, Kv::kBytes>()),
                    .bytes = frame->bytes.size(),
                    .value = {frame->bytes.begin() + kHeaderBytes, frame->bytes.end()},
                    .first = frame->first,
                    .last = frame->last};
    if (sent.header.kind != static_cast<std::uint8_t>(Kind::enter)) {
      take(sent);
      continue;
    }
    const std::uint32_t member = sent.to.ip - node(0).ip;
    put(node(member),
        {.kind = static_cast<std::uint8_t>(Kind::entered), .node = static_cast<std::uint8_t>(member), .epoch = kEpoch});
  }
}

Sent Rig::await(Kind kind) {
  Sent found;
  bool there = false;
  for (Cycles end = core_.now() + kPatience; !there && core_.now() < end;) {
    core_.step();
    collect([&](const Sent& sent) {
      if (there || sent.header.kind != static_cast<std::uint8_t>(kind)) return;
      found = sent;
      there = true;
    });
  }
  if (!there) give_up(fmt::format("the core does not send {}", name_of(kind)));
  return found;
}

void Rig::settle() {
  for (Cycles end = core_.now() + kPatience; !core_.idle() && core_.now() < end;) {
    core_.step(16);
    collect([](const Sent&) {});
  }
}

std::vector<std::uint64_t> Rig::keys(std::size_t count) {
  std::vector<std::uint64_t> keys;
  std::bitset<std::size_t{1} << kBucketBits> used;
  for (std::uint64_t key = 1; keys.size() < count; ++key) {
    const std::uint32_t bucket = bucket_of(hash_of(key), kBucketBits);
    if (used[bucket]) continue;
    used[bucket] = true;
    keys.push_back(key);
  }
  return keys;
}

}  // namespace wherry::kv::rtl
