// SPDX-License-Identifier: Apache-2.0
// How bytes go between an application and its agent.
#pragma once

#include <cstdint>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry {

/// How the agent reaches the application's memory.
enum class Transport : std::uint8_t {
  kAuto,  ///< whatever UCX finds best
  kShm,   ///< shared memory and CMA: agent on the same machine
  kTcp,   ///< a stream, on the agent's machine through a Unix socket; the client's progress thread answers gets
  kRdma,  ///< InfiniBand or RoCE verbs (a system UCX; the wheel has none)
};
/// "auto", "shm", "tcp" or "rdma"; static text.
WHERRY_API std::string_view to_string(Transport transport) noexcept;
/// The transport of that name. kUnsupported for another one.
WHERRY_API Result<Transport> parse_transport(std::string_view name);

}  // namespace wherry
