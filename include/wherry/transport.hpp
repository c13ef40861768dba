// SPDX-License-Identifier: Apache-2.0
// How bytes go between an application and its agent.
#pragma once

#include <cstdint>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry {

enum class Transport : std::uint8_t {
  kAuto,  ///< whatever UCX finds best
  kShm,   ///< shared memory and CMA: agent on the same machine
  kTcp,   ///< a stream, on the agent's machine through a Unix socket; the client's progress thread answers gets
  kRdma,  ///< InfiniBand or RoCE verbs (a system UCX; the wheel has none)
};
WHERRY_API std::string_view to_string(Transport transport) noexcept;
WHERRY_API Result<Transport> parse_transport(std::string_view name);

}  // namespace wherry
