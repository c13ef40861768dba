// SPDX-License-Identifier: Apache-2.0
#include "probe/device/settings.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/temporary_directory.hpp"
#include "probe/device/device_paths.hpp"

namespace wherry::probe {
namespace {

DeviceSettings with(const std::map<std::string, std::string>& variables) {
  return settings_from([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Target, Parse_EachForm_ExpectItsParts) {
  const auto bar = parse_target("0000:04:00.0/2:0x1000+64KiB");
  ASSERT_TRUE(bar);
  EXPECT_EQ(bar->name, "0000:04:00.0/2");
  EXPECT_EQ(bar->base, 0x1000U);
  EXPECT_EQ(bar->bytes, 65536U);
  const auto queue = parse_target("qdma01000-MM-0:0+0x40");
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->name, "qdma01000-MM-0");
  EXPECT_EQ(queue->bytes, 64U);
}

TEST(Target, Parse_Malformed_ExpectInvalidArgumentWithTheText) {
  for (const char* const text :
       {"", "xdma0", "xdma0:0", "xdma0:+64", "xdma0:0+", "xdma0:0+0", ":0+64", "xdma0:zero+64", "xdma0:0+64XiB",
        "xdma0:0x+64", "xdma0:0xg+64", "xdma0:0xffffffffffffffff+64", "xdma0:0x7fffffffffffffff+1", "0000:04:00.0/2"}) {
    const auto target = parse_target(text);
    EXPECT_EQ(target.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(target.status().message().find(std::string("'") + text + "'"), std::string::npos)
        << target.status().message();
  }
}

TEST(DeviceSettings, From_WrongVariable_ExpectThePathsThatUseItAreAbsentAndSayWhy) {
  const auto directory = TemporaryDirectory::create("probe");
  ASSERT_TRUE(directory);
  for (const auto& [variable, prefix] : {std::pair{"WHERRY_PROBE_BAR", "mmio.bar"},
                                         {"WHERRY_PROBE_IVSHMEM", "mmio.ivshmem"},
                                         {"WHERRY_PROBE_CUDA", "cuda."},
                                         {"WHERRY_PROBE_QDMA", "qdma."},
                                         {"WHERRY_PROBE_XDMA", "xdma.h2c0"},
                                         {"WHERRY_PROBE_XDMA_USER", "xdma.user"}}) {
    DeviceSettings settings = with({{variable, "nonsense"}});
    EXPECT_EQ(settings.refused.size(), 1U);
    settings.sysfs = settings.dev = directory->path();
    for (const char* const node : {"xdma0_h2c_0", "xdma0_user"}) std::ofstream(directory->path() / node) << "";
    unsigned found = 0;
    for (const auto& path : device_paths(settings)) {
      if (!path->info().id.starts_with(prefix)) continue;
      EXPECT_EQ(path->info().absent.find(std::string(variable) + ": "), 0U) << path->info().absent;
      ++found;
    }
    EXPECT_GT(found, 0U) << prefix;
  }
}

TEST(DevicePaths, Make_MachineWithoutDevices_ExpectEachIsAbsentWithAReason) {
  const auto directory = TemporaryDirectory::create("probe");
  ASSERT_TRUE(directory);
  DeviceSettings settings;
  settings.sysfs = settings.dev = directory->path();
  settings.cuda_library = settings.verbs_library = "libwherry-is-not-there.so";
  std::set<std::string> ids;
  for (const auto& path : device_paths(settings)) {
    const PathInfo& info = path->info();
    EXPECT_TRUE(ids.insert(info.id).second) << info.id;
    EXPECT_GT(info.absent.size(), 20U) << info.id;
    EXPECT_FALSE(info.group.empty() || info.from.empty() || info.to.empty()) << info.id;
    EXPECT_EQ(info.provenance, Provenance::kMeasured);
    EXPECT_EQ(path->accepts({}).code(), StatusCode::kUnavailable);
    EXPECT_NE(path->open({}).status().message().find(info.absent), std::string::npos);
  }
  for (const char* const id : {"pci.config", "mmio.bar.read", "mmio.bar.write", "mmio.bar.wc", "mmio.ivshmem.read",
                               "edu.h2c", "xdma.h2c0", "xdma.c2h3", "xdma.user.read", "qdma.mm.h2c"})
    EXPECT_TRUE(ids.contains(id)) << id;
}

}  // namespace
}  // namespace wherry::probe
