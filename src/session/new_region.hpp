// SPDX-License-Identifier: Apache-2.0
// A region of the client's memory that the agent does not know yet. Services send it in their messages.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace wherry::session {

struct NewRegion {
  std::uint32_t id = 0;  ///< the client's; it never names another region of the session
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  ByteView key;  ///< as fabric::Region::pack_key made it
};

}  // namespace wherry::session
