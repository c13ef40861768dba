// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "wherry/transport.hpp"

namespace wherry {

std::string_view to_string(Transport transport) noexcept {
  switch (transport) {
    case Transport::kAuto:
      return "auto";
    case Transport::kShm:
      return "shm";
    case Transport::kTcp:
      return "tcp";
    case Transport::kRdma:
      return "rdma";
  }
  return "unknown";
}

Result<Transport> parse_transport(std::string_view name) {
  for (const auto t : {Transport::kAuto, Transport::kShm, Transport::kTcp, Transport::kRdma}) {
    if (name == to_string(t)) return t;
  }
  return Status(StatusCode::kUnsupported, fmt::format("transport '{}' is none of auto, shm, tcp, rdma", name));
}

}  // namespace wherry
