// SPDX-License-Identifier: Apache-2.0
// Sends arbitrary messages from nodes while operations are outstanding. The client must not crash, complete an
// operation that was not submitted, or complete one twice. The input is a program: submit, answer a sent message with
// one part changed, send raw bytes, let time pass.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "kv/client/core.hpp"
#include "kv/net/datagram.hpp"

namespace {

using namespace wherry;
using namespace wherry::kv;

struct World final : Output, Completions {
  void send(const Endpoint& to, const Message& message) override {
    if (message.value.size() > kMaxValueBytes) std::abort();
    last_to = to;
    sent[next++ % sent.size()] = message.header;
  }
  void on_complete(const Completion& completion) override {
    if (outstanding.erase(completion.tag) != 1) std::abort();
    if (completion.value.size() > kMaxValueBytes) std::abort();
  }
  std::map<std::uint64_t, bool> outstanding;
  std::array<Kv, 32> sent{};
  std::size_t next = 0;
  Endpoint last_to;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Reader in(std::as_bytes(std::span(data, size)));
  ClientCore::Options options;
  for (std::uint8_t n = 0; n < 3; ++n) options.nodes[2U * n] = {.ip = 1U + n, .port = 9};
  options.lanes = in.get<std::uint8_t>() % 4;
  options.operations = 8;
  options.deadline = 50 * kMillisecond;
  options.reads = static_cast<ReadFrom>(in.get<std::uint8_t>() % 3);
  World world;
  ClientCore core(options, world, world);
  Cycles now = 1;
  std::uint64_t tag = 0;
  core.start(now);
  while (in.ok() && in.remaining() > 0) {
    const auto what = in.get<std::uint8_t>();
    const auto node = static_cast<std::uint32_t>(1 + what / 8 % 4);  // one is nobody's
    const Endpoint from = what >= 128 ? world.last_to : Endpoint{.ip = node, .port = 9};
    switch (what % 4) {
      case 0: {
        ClientCore::Request request;
        request.kind = static_cast<Kind>(1 + what / 4 % 5);
        request.key = in.get<std::uint8_t>() % 8;
        request.version = in.get<std::uint8_t>();
        request.tag = ++tag;
        world.outstanding[tag] = true;
        if (!core.submit(request, now)) world.outstanding.erase(tag);
        break;
      }
      case 1: {  // an answer to one of the last requests, and what it says
        Kv header = world.sent[in.get<std::uint8_t>() % world.sent.size()];
        header.kind = static_cast<std::uint8_t>((header.kind + kReplyBit) & 31);
        header.detail = in.get<std::uint8_t>();
        header.node = in.get<std::uint8_t>() % 8;
        header.epoch = static_cast<std::uint16_t>(header.epoch + in.get<std::int8_t>());
        header.version = in.get<std::uint8_t>();
        if (what >= 192) header.key = in.get<std::uint32_t>();  // a lane's record
        core.on_message(from, {header, in.take(std::min<std::size_t>(what / 16, in.remaining()))}, now);
        break;
      }
      case 2: {
        const auto bytes = in.get<std::uint16_t>() % 1100;
        if (const auto message = unpack_datagram(in.take(std::min<std::size_t>(bytes, in.remaining()))))
          core.on_message(from, *message, now);
        break;
      }
      default:
        now += in.get<std::uint8_t>() * Cycles{5000};
        if (core.tick(now) <= now) std::abort();
    }
    if (core.in_flight() != world.outstanding.size()) std::abort();
  }
  core.tick(now + 100 * kMillisecond);
  if (!world.outstanding.empty() || core.in_flight() != 0) std::abort();  // each has ended, once
  return 0;
}
