// SPDX-License-Identifier: Apache-2.0
// The core as a node: what clients see of it.
#include <gtest/gtest.h>

#include "kv/node/node.hpp"
#include "sim/bench_rig.hpp"

namespace wherry::kv::rtl {
namespace {

Kv request_of(Kind kind, std::uint64_t key, std::uint16_t lane, std::uint32_t number) {
  return {.kind = static_cast<std::uint8_t>(kind), .epoch = Rig::kEpoch, .client = lane, .request = number, .key = key};
}

std::vector<std::byte> filled(std::size_t bytes, int with) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(with));
}

TEST(KvCoreNode, WriteRepeatedWhileAnotherIsStored_ExpectTheNewerValue) {
  const std::uint64_t key = Rig::keys(1).front();
  for (const bool gaps : {false, true}) {
    Rig rig({.gaps = gaps});
    std::uint32_t number = 0;
    for (Cycles offset = 0; offset < 200; ++offset) {
      ++number;
      rig.put(Rig::client(), request_of(Kind::write, key, 1, number), filled(1024, 1));
      rig.await(Kind::write_done);
      const Cycles now = rig.core().now();
      rig.put(Rig::client(), request_of(Kind::write, key, 2, number), filled(545, 2));
      rig.put(Rig::client(), request_of(Kind::write, key, 1, number), filled(1024, 1), now + offset);
      rig.settle();
      rig.put(Rig::client(), request_of(Kind::read, key, 0, 1));
      const Sent reply = rig.await(Kind::read_done);
      ASSERT_EQ(reply.bytes, kHeaderBytes + 545) << "offset " << offset;
      ASSERT_EQ(reply.value, filled(545, 2)) << "offset " << offset;
    }
  }
}

}  // namespace
}  // namespace wherry::kv::rtl
