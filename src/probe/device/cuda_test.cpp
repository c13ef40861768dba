// SPDX-License-Identifier: Apache-2.0
#include "probe/device/cuda.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "probe/device/cuda_kernel.hpp"
#include "probe/device/drive_testing.hpp"
#include "probe/device/fake_cuda.hpp"
#include "probe/device/pci_testing.hpp"
#include "probe/device/ptx_testing.hpp"

namespace wherry::probe {
namespace {
using testing_support::drive;
using testing_support::PciFiles;
using testing_support::PtxKernel;

/// The library that replaces libcuda.so.1, and the test's requests to it.
struct Fake {
  Fake() {
    handle = dlopen(WHERRY_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
  }
  template <typename Function>
  Function* get(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle, name));
  }
  void* handle;
};
const Fake& fake() {
  static const Fake one;
  return one;
}

struct Cuda : testing::Test {
  Cuda() {
    reset(1);
    settings.cuda_library = WHERRY_FAKE_CUDA;
    settings.sysfs = files.sysfs();
  }
  ~Cuda() override {
    EXPECT_EQ(held(), 0U) << "something was not given back";
    EXPECT_STREQ(misuse(), "");
  }
  std::vector<std::unique_ptr<Path>> paths() const { return cuda_paths(settings); }
  static Flow flow(const Path& path) {
    if (path.info().id == "cuda.mapped") return Flow::kBoth;
    return path.info().from.starts_with("GPU") && !path.info().to.starts_with("GPU") ? Flow::kC2H : Flow::kH2C;
  }
  static bool by_kernel(const Path& path) {
    return path.info().id.find("kernel") != std::string::npos || path.info().id == "cuda.mapped";
  }

  decltype(&wherry_fake_reset) reset = fake().get<void(int)>("wherry_fake_reset");
  decltype(&wherry_fake_flip) flip = fake().get<void(unsigned)>("wherry_fake_flip");
  decltype(&wherry_fake_fail) fail = fake().get<void(unsigned, int)>("wherry_fake_fail");
  decltype(&wherry_fake_held) held = fake().get<unsigned()>("wherry_fake_held");
  decltype(&wherry_fake_misuse) misuse = fake().get<const char*()>("wherry_fake_misuse");
  decltype(&wherry_fake_work) work = fake().get<std::uint64_t()>("wherry_fake_work");
  decltype(&wherry_fake_not_ready) not_ready = fake().get<std::uint64_t()>("wherry_fake_not_ready");
  decltype(&wherry_fake_sleeps) sleeps = fake().get<std::uint64_t()>("wherry_fake_sleeps");
  PciFiles files;
  DeviceSettings settings;
};

TEST_F(Cuda, Move_EveryPath_ExpectItsBytes) {
  const auto all = paths();
  EXPECT_EQ(all.size(), 8U);
  for (const auto& path : all) {
    ASSERT_EQ(path->info().absent, "");
    for (const std::size_t bytes : {1U, 16U, 100U, 5000U}) {
      const Shape shape{.bytes = bytes, .depth = 5, .channels = 3, .pattern = Pattern::kRandom, .flow = flow(*path)};
      const std::uint64_t before = work();
      const Status status = drive(*path, shape, {.transfers = 12, .seed = bytes});
      EXPECT_TRUE(status.ok()) << path->info().id << ": " << status.message();
      EXPECT_EQ(work() - before, 12 + 9) << "the transfers, and those for the GPU's own time";
    }
  }
  EXPECT_GT(not_ready(), 0U);
  EXPECT_EQ(sleeps(), 0U);
}

TEST_F(Cuda, Move_Alignment_ExpectCopiesTakeAnyAndKernelsMultiplesOf16) {
  for (const auto& path : paths())
    for (const unsigned align : {1U, 4U, 16U, 63U}) {
      const Shape shape{.bytes = 1000, .flow = flow(*path), .align = align};
      if (by_kernel(*path) && align % 16 != 0) {
        EXPECT_EQ(path->accepts(shape).code(), StatusCode::kUnsupported);
      } else {
        EXPECT_TRUE(drive(*path, shape).ok()) << path->info().id << align;
      }
    }
}

TEST_F(Cuda, Move_Blocking_ExpectItSleepsForEvents) {
  for (const auto& path : paths()) {
    const std::uint64_t before = sleeps();
    EXPECT_TRUE(
        drive(*path, {.bytes = 64, .depth = 2, .channels = 2, .flow = flow(*path), .notice = Notice::kBlocking}).ok());
    EXPECT_GT(sleeps(), before);
  }
}

TEST_F(Cuda, Move_OneByteFlipped_ExpectWrongData) {
  for (const auto& path : paths())
    for (const unsigned number : {1U, 4U}) {
      const Status status = drive(*path, {.bytes = 48, .depth = 2, .flow = flow(*path)},
                                  {.transfers = 5, .prepared = [&] { flip(number); }});
      EXPECT_EQ(status.code(), StatusCode::kInternal) << path->info().id;
      EXPECT_NE(status.message().find("wrong data: 1 bytes"), std::string::npos) << status.message();
    }
}

TEST_F(Cuda, Spoil_AnyByte_ExpectWrongData) {
  for (const auto& path : paths())
    EXPECT_TRUE(testing_support::notices_spoiling(*path, {.bytes = 64, .flow = flow(*path)})) << path->info().id;
}

TEST_F(Cuda, Open_EveryCallFailsOnce_ExpectAnErrorOrItsBytesAndEverythingGivenBack) {
  for (const char* const id : {"cuda.h2d", "cuda.mapped"}) {
    unsigned failed = 0;
    for (unsigned call = 1; call < 60; ++call) {
      for (const auto& path : paths()) {
        if (path->info().id != id) continue;
        fail(call, 2);
        const Status status = drive(*path, {.bytes = 48, .flow = flow(*path)}, {.transfers = 2});
        fail(0, 0);
        path->close();
        if (status.ok()) continue;  // a call of close(), which nobody can mend, or none
        ++failed;
        EXPECT_EQ(status.code(), StatusCode::kUnavailable);
        EXPECT_NE(status.message().find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << status.message();
        EXPECT_EQ(held(), 0U) << call << status.message();
      }
      reset(1);
    }
    EXPECT_GT(failed, 20U);
  }
}

TEST_F(Cuda, Open_LinkAndEvents_ExpectBoundAndTheGpusOwnTime) {
  for (const auto& path : paths()) {
    const auto bound = path->open({.bytes = 4096, .flow = flow(*path)});
    ASSERT_TRUE(bound) << bound.status().message();
    if (path->info().id == "cuda.d2d") {
      EXPECT_DOUBLE_EQ(bound->bytes_per_s, 512e9);  // 4096 bits x 2 x 1 GHz, read and written
    } else {
      EXPECT_NEAR(bound->bytes_per_s, 15.754e9, 1e6);
    }
    // The fake clock advances by 1 ms for each event, so 8 x 4096 bytes take 1 ms.
    EXPECT_NE(bound->why.find("events: 0.03 GB/s"), std::string::npos) << bound->why;
    path->close();
  }
}

TEST_F(Cuda, Accepts_ShapeThatItCannot_ExpectUnsupported) {
  const auto all = paths();
  const Path& h2d = *all.at(0);
  for (const Shape& shape : {Shape{.flow = Flow::kC2H}, Shape{.depth = 1, .channels = 2}, Shape{.depth = 300},
                             Shape{.notice = Notice::kInterrupt}, Shape{.cache = CacheState::kFlushed}})
    EXPECT_EQ(h2d.accepts(shape).code(), StatusCode::kUnsupported);
}

TEST_F(Cuda, Make_NoGpu_ExpectAbsentWithTheErrorsName) {
  reset(0);
  for (const auto& path : paths())
    EXPECT_NE(path->info().absent.find("CUDA_ERROR_NO_DEVICE"), std::string::npos) << path->info().absent;
  reset(1);
  settings.cuda_device = 1;
  for (const auto& path : paths())
    EXPECT_NE(path->info().absent.find("CUDA_ERROR_INVALID_DEVICE"), std::string::npos) << path->info().absent;
}

TEST_F(Cuda, Make_LibraryOfAnotherKind_ExpectAbsentWithTheFunction) {
  settings.cuda_library = "libdl.so.2";
  EXPECT_NE(paths().at(0)->info().absent.find("has no cuInit"), std::string::npos) << paths().at(0)->info().absent;
  settings.cuda_library = "libwherry-is-not-there.so";
  EXPECT_NE(paths().at(0)->info().absent.find("needs an NVIDIA GPU"), std::string::npos);
}

// --- the kernel alone
TEST(CopyKernel, Run_AnySizeAndGrid_ExpectExactlyItsBytes) {
  const PtxKernel kernel(kCopyKernel, "wherry_copy");
  ASSERT_EQ(kernel.error(), "");
  constexpr std::uint64_t kFrom = 0x1000, kTo = 0x9000;
  for (std::size_t bytes = 0; bytes < 70; ++bytes)
    for (const auto& [blocks, threads] : {std::pair{1U, 1U}, {1U, 3U}, {2U, 2U}, {1U, 64U}}) {
      std::vector<std::byte> from(bytes), to(128, std::byte{0xEE}), want = to;
      for (std::size_t i = 0; i < bytes; ++i) want[i] = from[i] = static_cast<std::byte>(i * 37 + 1);
      const auto memory = [&](std::uint64_t at, std::size_t count) -> std::byte* {
        if (at >= kFrom && at + count <= kFrom + bytes) return &from[at - kFrom];
        if (at >= kTo && at + count <= kTo + bytes) return &to[at - kTo];
        return nullptr;
      };
      ASSERT_EQ(kernel.run(blocks, threads, {kTo, kFrom, bytes}, memory), 0) << bytes;
      EXPECT_EQ(to, want) << bytes;
    }
}

TEST(CopyKernel, Run_Misaligned_ExpectItIsFoundOut) {
  const PtxKernel kernel(kCopyKernel, "wherry_copy");
  std::vector<std::byte> all(256);
  const auto memory = [&](std::uint64_t at, std::size_t) { return &all[at]; };
  EXPECT_EQ(kernel.run(1, 1, {64, 8, 32}, memory), 716);
  EXPECT_EQ(kernel.run(1, 1, {64, 16, 32}, memory), 0);
}

}  // namespace
}  // namespace wherry::probe
