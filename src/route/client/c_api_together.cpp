// SPDX-License-Identifier: Apache-2.0
// route.h: the collective calls.
#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"
#include "route/client/c_api.hpp"

using wherry::Status;
using wherry::StatusCode;
using wherry::route::Runtime;
using namespace wherry::route::c_abi;  // NOLINT(google-build-using-namespace)

namespace {

static_assert(WHERRY_MAX == static_cast<int>(Runtime::Combine::kMax));

/// Converts the return value of a call on `route` to a Status.
Status status_of(const wherry_route& route, StatusCode code) {
  if (code == StatusCode::kOk || code == StatusCode::kWouldBlock) return {code, {}};
  WHERRY_TRY(route.runtime.status());
  return {code, {}};
}

}  // namespace

int wherry_route_quiesce(wherry_route* route, int64_t timeout_ns, wherry_error* error) {
  return outside(route, error, [&](wherry_route& r) {
    const std::int64_t limit = timeout_ns == WHERRY_FOREVER ? -1 : std::max<std::int64_t>(timeout_ns, 0);
    return r.runtime.quiesce(std::chrono::nanoseconds(limit));
  });
}

int wherry_route_try_quiesce(wherry_route* route, wherry_error* error) {
  return outside(route, error, [](wherry_route& r) { return status_of(r, r.runtime.try_quiesce()); });
}

int wherry_route_reduce_u64(wherry_route* route, uint64_t value, int combine, uint64_t* result, wherry_error* error) {
  return outside(route, error, [&](wherry_route& r) -> Status {
    if (result == nullptr) return is_null("result");
    if (combine < WHERRY_SUM || combine > WHERRY_MAX)
      return invalid(fmt::format("combine is {}: want one of wherry_combine", combine));
    WHERRY_ASSIGN(auto reduced, r.runtime.reduce(value, static_cast<Runtime::Combine>(combine)));
    *result = reduced;
    return {};
  });
}
