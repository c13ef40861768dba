// SPDX-License-Identifier: Apache-2.0
// How bytes travel between an application and its agent.
#pragma once

#include <cstdint>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry {

/// How the agent reaches the application's memory.
enum class Transport : std::uint8_t {
  kAuto,  ///< the best one according to UCX
  kShm,   ///< shared memory and CMA: the agent is on the same machine
  kTcp,   ///< a stream (a Unix socket on the agent's machine); the client's progress thread answers gets
  kRdma,  ///< InfiniBand or RoCE verbs (needs a system UCX; the wheel does not include them)
};
/// The transport's name: "auto", "shm", "tcp" or "rdma"; static text.
WHERRY_API std::string_view to_string(Transport transport) noexcept;
/// The transport with this name. kUnsupported for any other name.
WHERRY_API Result<Transport> parse_transport(std::string_view name);

}  // namespace wherry
