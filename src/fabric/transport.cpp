// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <string>

#include "wherry/session.hpp"

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

std::string_view to_string(Verdict verdict) noexcept {
  return verdict == Verdict::kOneSided ? "one_sided" : "emulated";
}

std::string SessionInfo::to_string() const {
  return fmt::format("agent {} (pid {}), {}, heap {}, allocated {}{}", agent_version, agent_pid, transports,
                     wherry::to_string(heap), wherry::to_string(allocated), mapped ? ", mapped" : "");
}

}  // namespace wherry
