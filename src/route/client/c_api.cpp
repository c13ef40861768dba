// SPDX-License-Identifier: Apache-2.0
// The C ABI of route: thin functions on Runtime, which check what C cannot say.
#include <fmt/core.h>

#include <new>

#include "base/c_abi.hpp"
#include "base/try.hpp"
#include "route/client/runtime_core.hpp"
#include "wherry/route.h"
#include "wherry/route.hpp"

using wherry::Status;
using wherry::StatusCode;
using wherry::c_abi::give_defaults;
using wherry::c_abi::guarded;
using wherry::c_abi::invalid;
using wherry::c_abi::is_null;
using wherry::route::ByteView;
using wherry::route::Runtime;

struct wherry_route {
  Runtime runtime;
  std::string description;
  std::uint32_t in_handler = 0;  ///< handlers nest when they send large messages to themselves
};

namespace {

static_assert(WHERRY_PLACEMENT_DPU == static_cast<int>(wherry::route::Placement::kDpu));
static_assert(WHERRY_MAX == static_cast<int>(Runtime::Combine::kMax));

// As in the first version of each struct: when a field is appended, these stay.
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

/// The Status for what a call on `route` returned.
Status status_of(const wherry_route& route, StatusCode code) {
  if (code == StatusCode::kOk || code == StatusCode::kWouldBlock) return {code, {}};
  WHERRY_TRY(route.runtime.status());
  return {code, {}};
}

/// `body(route)`, outside of handlers.
template <typename Body>
int outside(wherry_route* route, wherry_error* error, Body&& body) noexcept {
  return guarded(error, [&]() -> Status {
    if (route == nullptr) return is_null("route");
    if (route->in_handler != 0)
      return {StatusCode::kFailedPrecondition, "a handler may only send: call this when it has returned"};
    return body(*route);
  });
}

Status check_send(const wherry_route& route, std::uint32_t to, std::uint32_t handler, const void* message,
                  std::size_t bytes) {
  if (to >= route.runtime.ranks()) return invalid(fmt::format("no rank {}: there are {}", to, route.runtime.ranks()));
  if (!route.runtime.core()->has_handler(handler))
    return invalid(fmt::format("no handler {}: use what wherry_route_on_bytes wrote", handler));
  if (message == nullptr && bytes != 0) return is_null("message");
  if (bytes > wherry::route::kMaxMessageBytes)
    return invalid(fmt::format("a message of {} bytes: at most {}", bytes, wherry::route::kMaxMessageBytes));
  return {};
}

template <typename Send>
int send(wherry_route* route, std::uint32_t to, std::uint32_t handler, const void* message, std::size_t bytes,
         wherry_error* error, Send&& how) noexcept {
  if (route != nullptr && to < route->runtime.ranks() && route->runtime.core()->has_handler(handler) &&
      (message != nullptr || bytes == 0)) [[likely]] {
    const StatusCode code = how(*route, ByteView(static_cast<const std::byte*>(message), bytes));
    if (code == StatusCode::kOk) [[likely]]
      return WHERRY_OK;
    if (code == StatusCode::kWouldBlock) return wherry::c_abi::write_error(code, {}, error);
    if (!route->runtime.status()) return guarded(error, [&] { return route->runtime.status(); });
    if (code == StatusCode::kFailedPrecondition) {
      return guarded(error, [&]() -> Status {
        return {code,
                "all ranks have completed the quiesce that is under way: call wherry_route_try_quiesce, which "
                "says WHERRY_OK, then send"};
      });
    }
  }
  return guarded(error, [&]() -> Status {
    if (route == nullptr) return is_null("route");
    return check_send(*route, to, handler, message, bytes);
  });
}

int register_bytes(wherry_route* route, std::string_view name, wherry_route_function function, void* user,
                   std::uint32_t* handler, wherry_error* error) noexcept {
  return outside(route, error, [&](wherry_route& r) -> Status {
    if (function == nullptr) return is_null("function");
    if (handler == nullptr) return is_null("handler");
    const auto call = [&r, function, user](ByteView message) {
      ++r.in_handler;
      function(user, message.data(), message.size());
      --r.in_handler;
    };
    using Info = wherry::route::detail::HandlerInfo;
    const auto info = wherry::route::detail::info_of<ByteView>(Info::Kind::kBytes, name, 0, function);
    using Entry = wherry::route::detail::BytesEntry<decltype(call)>;
    const std::uint32_t id = r.runtime.core()->add(std::make_unique<Entry>(call), info);
    WHERRY_TRY(r.runtime.status());
    *handler = id;
    return {};
  });
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

int wherry_route_on_bytes(wherry_route* route, wherry_route_function function, void* user, uint32_t* handler,
                          wherry_error* error) {
  return register_bytes(route, {}, function, user, handler, error);
}

int wherry_route_on_bytes_named(wherry_route* route, const char* name, wherry_route_function function, void* user,
                                uint32_t* handler, wherry_error* error) {
  if (name == nullptr || *name == 0) {
    return guarded(error, [&]() -> Status { return name == nullptr ? is_null("name") : invalid("name is empty"); });
  }
  return register_bytes(route, name, function, user, handler, error);
}

int wherry_route_send(wherry_route* route, uint32_t to, uint32_t handler, const void* message, size_t bytes,
                      wherry_error* error) {
  return send(route, to, handler, message, bytes, error, [&](wherry_route& r, ByteView view) {
    return r.runtime.send(to, wherry::route::Handler<ByteView>(handler), view);
  });
}

int wherry_route_try_send(wherry_route* route, uint32_t to, uint32_t handler, const void* message, size_t bytes,
                          wherry_error* error) {
  return send(route, to, handler, message, bytes, error, [&](wherry_route& r, ByteView view) {
    return r.runtime.try_send(to, wherry::route::Handler<ByteView>(handler), view);
  });
}

int wherry_route_poll(wherry_route* route, uint64_t* handled, wherry_error* error) {
  return outside(route, error, [&](wherry_route& r) -> Status {
    const std::uint64_t count = r.runtime.poll();
    WHERRY_TRY(r.runtime.status());
    if (handled != nullptr) *handled = count;
    return {};
  });
}

int wherry_route_flush(wherry_route* route, wherry_error* error) {
  return outside(route, error, [&](wherry_route& r) {
    r.runtime.flush();
    return r.runtime.status();
  });
}

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
