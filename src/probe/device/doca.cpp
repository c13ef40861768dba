// SPDX-License-Identifier: Apache-2.0
#include "probe/device/doca.hpp"

#include <dlfcn.h>

#include "probe/device/absent.hpp"

namespace wherry::probe {

std::vector<std::unique_ptr<Path>> doca_paths() {
  void* const library = dlopen("libdoca_dma.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) dlclose(library);
  const std::string why =
      library != nullptr
          ? "libdoca_dma.so.2 is here, but this path is not written: its binary interface stands in the headers of "
            "NVIDIA's DOCA SDK only, "
            "which this project does not have. verbs.read.device and verbs.write.device measure the same memory by RDMA"
          : "needs a BlueField DPU and NVIDIA's DOCA SDK (libdoca_dma.so.2), and code against its headers, which are "
            "in the SDK only. "
            "verbs.*.device measures the same memory by RDMA";
  std::vector<std::unique_ptr<Path>> paths;
  for (const Initiator initiator : {Initiator::kHost, Initiator::kDevice})
    for (const bool to_card : {true, false}) {
      PathInfo info{
          .id = to_card ? "doca.dma.h2c" : "doca.dma.c2h", .group = "doca", .initiator = initiator, .absent = {}};
      if (initiator == Initiator::kDevice) info.id += ".device";
      info.from = to_card ? "host memory" : "memory of a DPU";
      info.to = to_card ? "memory of a DPU" : "host memory";
      paths.push_back(absent(std::move(info), why));
    }
  return paths;
}

}  // namespace wherry::probe
