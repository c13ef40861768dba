// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary text as a cluster file. An accepted file must give a valid static configuration.
#include <cstdlib>

#include "kv/control/cluster_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  const auto file = kv::parse_cluster_file(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!file) {
    if (file.status().message().find("fuzz") == std::string::npos) std::abort();
    return 0;
  }
  if (!kv::check(kv::static_configuration(*file))) std::abort();
  return 0;
}
