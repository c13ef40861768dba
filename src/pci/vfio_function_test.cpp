// SPDX-License-Identifier: Apache-2.0
// Tests a function behind VFIO with a model kernel that keeps VFIO's rules.
#include "pci/vfio_function.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>

#include "base/fd.hpp"
#include "pci/binding.hpp"
#include "pci/kernel_testing.hpp"

namespace wherry::pci {
namespace {

using namespace std::chrono_literals;
using testing_support::at;
using testing_support::DeviceModel;
using testing_support::FakeKernel;
using testing_support::Machine;

constexpr auto kCardName = "0000:04:00.0";
constexpr unsigned kDoorbells = 2;

struct Bench {
  Machine machine;
  std::unique_ptr<FakeKernel> kernel;
  std::map<std::uint64_t, std::uint32_t> registers, bells;
  int resets = 0;

  Bench() {
    machine.build();
    kernel = std::make_unique<FakeKernel>(machine.sysfs);
    DeviceModel card{.name = kCardName, .group = machine.card_group, .kernel_driver = ""};
    card.bars[0] = {.bytes = 0x1000,
                    .read = [this](std::uint64_t offset) { return registers[offset]; },
                    .write = [this](std::uint64_t offset, std::uint32_t value) { registers[offset] = value; }};
    card.bars[kDoorbells] = {.bytes = 0x1000,
                             .read = [this](std::uint64_t offset) { return bells[offset]; },
                             .write = [this](std::uint64_t offset, std::uint32_t value) { bells[offset] = value; }};
    card.config = testing_support::ConfigBytes(256).express(0, 0x2810).text();
    card.most_vectors = 8;
    card.on_reset = [this] { ++resets; };
    kernel->add(card);
    const Binding binding(*kernel, machine.sysfs.text());
    EXPECT_TRUE(binding.take(binding.describe(at(kCardName))));
  }
  Result<std::unique_ptr<VfioFunction>> open() {
    return VfioFunction::open(*kernel, at(kCardName), machine.card_group, kDoorbells);
  }
};

TEST(VfioFunction, AccessRegistersAndMaster_ExpectThemAtTheDevice) {
  Bench bench;
  auto function = bench.open();
  ASSERT_TRUE(function) << function.status().to_string();
  (*function)->write32(0, 0x10, 0xABCD);
  EXPECT_EQ(bench.registers[0x10], 0xABCDU);
  EXPECT_EQ((*function)->read32(0, 0x10), 0xABCDU);
  EXPECT_EQ((*function)->read32(0, 0x1000), 0xFFFF'FFFFU);  // outside
  EXPECT_TRUE((*function)->set_bus_master(true).ok());
  EXPECT_TRUE(bench.kernel->device(kCardName).bus_master);
  EXPECT_TRUE((*function)->reset().ok());
  EXPECT_EQ(bench.resets, 1);
  function->reset();
  EXPECT_FALSE(bench.kernel->device(kCardName).bus_master);
  EXPECT_EQ(bench.kernel->open_files(), 0U);
}

TEST(VfioFunction, WriteALineWhereTheBarCannotBeMapped_ExpectItByCalls) {
  Bench bench;
  bench.kernel->maps_bars = false;
  auto function = bench.open();
  ASSERT_TRUE(function) << function.status().to_string();
  std::array<std::byte, 64> line;
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<std::byte>(i);
  (*function)->write_line(kDoorbells, 0x40, line);
  EXPECT_EQ(bench.bells.size(), 16U);
  EXPECT_EQ(bench.bells[0x60], 0x23222120U);
}

TEST(VfioFunction, WriteALineIntoAMappedBar_ExpectTheBytesThere) {
  Bench bench;
  auto function = bench.open();
  ASSERT_TRUE(function) << function.status().to_string();
  ASSERT_EQ(bench.kernel->mapped_regions(), 1U);
  std::array<std::byte, 64> line;
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<std::byte>(i + 1);
  (*function)->write_line(kDoorbells, 0x80, line);
  (*function)->write_line(kDoorbells, 0xA0, std::span(line).first(4));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::span<std::byte> bar = bench.kernel->region_of(kCardName, kDoorbells);
  ASSERT_EQ(bar.size(), 0x1000U);
  EXPECT_EQ(std::memcmp(bar.data() + 0x80, line.data(), 32), 0);
  EXPECT_EQ(std::memcmp(bar.data() + 0xA0, line.data(), 4), 0);
  EXPECT_EQ(std::memcmp(bar.data() + 0xA4, line.data() + 36, 28), 0);
  EXPECT_TRUE(bench.bells.empty());
}

TEST(VfioFunction, AllocateMemory_ExpectItMappedBeyondFourGiB) {
  Bench bench;
  auto function = bench.open();
  ASSERT_TRUE(function) << function.status().to_string();
  const auto first = (*function)->allocate(100), second = (*function)->allocate(8192);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes.size(), 4096U);
  EXPECT_GE(first->iova, std::uint64_t{4} << 30);
  EXPECT_NE(first->iova, second->iova);
  ASSERT_TRUE(bench.kernel->mappings().contains(second->iova));
  EXPECT_EQ(bench.kernel->mappings().at(second->iova).memory, second->bytes.data());
}

TEST(VfioFunction, SetVectors_ExpectThemAndAWaitThatEnds) {
  Bench bench;
  auto function = bench.open();
  ASSERT_TRUE(function) << function.status().to_string();
  const Fd event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  ASSERT_TRUE((*function)->set_vectors(std::array{event.get(), event.get()}).ok());
  EXPECT_EQ(bench.kernel->device(kCardName).vectors, (std::vector{event.get(), event.get()}));
  EXPECT_FALSE((*function)->wait(event.get(), 1ms));
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(bench.kernel->device(kCardName).vectors[1], &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_TRUE((*function)->wait(event.get(), 1s));
  EXPECT_TRUE((*function)->set_vectors({}).ok());
  EXPECT_TRUE(bench.kernel->device(kCardName).vectors.empty());
  const std::vector<int> many(9, event.get());
  EXPECT_EQ((*function)->set_vectors(many).code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace wherry::pci
