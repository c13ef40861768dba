// SPDX-License-Identifier: Apache-2.0
// route.h: a rank joins and leaves its job, and returns facts about itself.
#include "route/client/c_api.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"

using wherry::Status;
using wherry::c_abi::give_defaults;
using wherry::route::Runtime;
using namespace wherry::route::c_abi;  // NOLINT(google-build-using-namespace)

namespace {

static_assert(WHERRY_PLACEMENT_DPU == static_cast<int>(wherry::route::Placement::kDpu));

// The size of each struct in its first version. Do not change them when a field is added.
constexpr std::size_t kOptionsFirst = 48;
constexpr std::size_t kStatisticsFirst = 112;
static_assert(sizeof(wherry_route_options) == 48 && sizeof(wherry_route_statistics) == 120);

wherry_route_options defaults() noexcept {
  const wherry::route::Options d;
  wherry_route_options o{};
  o.backlog_bytes = d.backlog_bytes;
  o.flush_after_ns = d.flush_after.count();
  o.start_timeout_ns = std::chrono::nanoseconds(d.start_timeout).count();
  o.placement = WHERRY_PLACEMENT_DEFAULT;
  return o;
}

wherry::Result<wherry::route::Options> options_from(const wherry_route_options* given) {
  wherry_route_options o = defaults();
  WHERRY_TRY(wherry::c_abi::take_options(given, kOptionsFirst, "wherry_route_options", o));
  if (o.placement < WHERRY_PLACEMENT_DEFAULT || o.placement > WHERRY_PLACEMENT_DPU)
    return invalid(fmt::format("placement is {}: want one of wherry_placement", o.placement));
  if (o.reserved != 0) return invalid(fmt::format("reserved is {}: want 0", o.reserved));
  wherry::route::Options options;
  if (o.placement != WHERRY_PLACEMENT_DEFAULT) options.placement = static_cast<wherry::route::Placement>(o.placement);
  if (o.buffer_bytes != 0) options.buffer_bytes = o.buffer_bytes;
  if (o.buffers != 0) options.buffers = o.buffers;
  options.backlog_bytes = o.backlog_bytes;
  options.flush_after = std::chrono::nanoseconds(std::max<std::int64_t>(o.flush_after_ns, 0));
  options.start_timeout = std::chrono::milliseconds(std::max<std::int64_t>(o.start_timeout_ns, 0) / 1'000'000);
  return options;
}

}  // namespace

int wherry_route_options_init(wherry_route_options* options, size_t size) {
  return give_defaults(options, size, kOptionsFirst, defaults());
}

int wherry_route_start(const wherry_route_options* options, wherry_route** route, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (route == nullptr) return is_null("route");
    WHERRY_ASSIGN(auto full, options_from(options));
    WHERRY_ASSIGN(auto runtime, Runtime::start(full));
    std::string description = runtime.describe();
    *route = new wherry_route{std::move(runtime), std::move(description)};
    return {};
  });
}

int wherry_route_close(wherry_route* route, wherry_error* error) {
  if (route == nullptr) return WHERRY_OK;
  return outside(route, error, [](wherry_route& r) {
    delete &r;
    return Status();
  });
}

uint32_t wherry_route_rank(const wherry_route* route) { return route == nullptr ? 0 : route->runtime.rank(); }
uint32_t wherry_route_ranks(const wherry_route* route) { return route == nullptr ? 0 : route->runtime.ranks(); }
uint32_t wherry_route_node(const wherry_route* route) { return route == nullptr ? 0 : route->runtime.node(); }
uint32_t wherry_route_nodes(const wherry_route* route) { return route == nullptr ? 0 : route->runtime.nodes(); }
const char* wherry_route_describe(const wherry_route* route) {
  return route == nullptr ? "" : route->description.c_str();
}

int wherry_route_get_statistics(const wherry_route* route, wherry_route_statistics* statistics, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (route == nullptr) return is_null("route");
    if (statistics == nullptr) return is_null("statistics");
    const std::size_t size = statistics->size;
    const wherry::route::Statistics s = route->runtime.statistics();
    const wherry_route_statistics to{0,
                                     s.sent,
                                     s.handled,
                                     s.forwarded_bytes,
                                     s.bytes_out,
                                     s.bytes_in,
                                     s.transfers,
                                     s.flush_full,
                                     s.flush_idle,
                                     s.flush_timeout,
                                     s.flush_explicit,
                                     s.would_block,
                                     s.backlog_bytes,
                                     s.backlog_high,
                                     s.blocked_ns};
    if (give_defaults(statistics, size, kStatisticsFirst, to) != WHERRY_OK)
      return invalid(fmt::format("statistics->size is {}: set it to sizeof(wherry_route_statistics)", size));
    return {};
  });
}

int wherry_route_status(const wherry_route* route, wherry_error* error) {
  return guarded(error, [&]() -> Status { return route == nullptr ? is_null("route") : route->runtime.status(); });
}
