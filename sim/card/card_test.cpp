// SPDX-License-Identifier: Apache-2.0
// The driver and the Verilated engine, with simulated PCIe between them.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "sim/card/rig.hpp"

namespace wherry::sim::card {
namespace {

using namespace std::chrono_literals;
namespace driver = wherry::dma;
using driver::Direction;

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> data(bytes);
  SplitMix64 random(seed);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

TEST(SimCard, WriteOneTransfer_ExpectItsBytesOnTheCard) {
  Rig rig({});
  auto engine = driver::Engine::open(rig.device);
  ASSERT_TRUE(engine) << engine.status().to_string();
  EXPECT_EQ((*engine)->channels(), 4U);
  const auto memory = rig.device.allocate(8192).value();
  const std::vector<std::byte> data = pattern(5000, 1);
  std::memcpy(memory.bytes.data() + 3, data.data(), data.size());
  driver::Ring& ring = (*engine)->ring(Direction::kToCard, 0);
  ASSERT_TRUE(ring.post({.host = memory.iova + 3, .card = 0x1001, .bytes = 5000, .cookie = 77}).ok());
  ring.ring_bell();
  ASSERT_TRUE(ring.wait(1ms));
  driver::Done done[4];
  ASSERT_EQ(ring.poll(done), 1U);
  EXPECT_EQ(done[0].cookie, 77U);
  EXPECT_EQ(done[0].error, driver::Error::kNone);
  std::vector<std::byte> found(5000);
  rig.card.content().dump(0x1001, {reinterpret_cast<std::uint8_t*>(found.data()), found.size()});
  EXPECT_EQ(found, data);
  EXPECT_EQ(rig.card.violation(), "");
}

}  // namespace
}  // namespace wherry::sim::card
