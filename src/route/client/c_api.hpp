// SPDX-License-Identifier: Apache-2.0
// The common part of the files of route's C interface: thin functions on Runtime that also check what C cannot express.
#pragma once

#include <cstdint>
#include <string>

#include "base/c_abi.hpp"
#include "route/client/runtime_access.hpp"
#include "wherry/route.h"
#include "wherry/route.hpp"

struct wherry_route {
  wherry::route::Runtime runtime;
  std::string description;
  std::uint32_t in_handler = 0;  ///< handlers nest when they send large messages to their own rank
};

namespace wherry::route::c_abi {

using wherry::c_abi::guarded;
using wherry::c_abi::invalid;
using wherry::c_abi::is_null;

/// Calls `body(route)`; an error inside a handler.
template <typename Body>
int outside(wherry_route* route, wherry_error* error, Body&& body) noexcept {
  return guarded(error, [&]() -> Status {
    if (route == nullptr) return is_null("route");
    if (route->in_handler != 0)
      return {StatusCode::kFailedPrecondition, "a handler may only send: call this when it has returned"};
    return body(*route);
  });
}

}  // namespace wherry::route::c_abi
