// SPDX-License-Identifier: Apache-2.0
// route.h: handlers, sending and polling.
#include <fmt/core.h>

#include "base/try.hpp"
#include "route/client/c_api.hpp"

using wherry::Status;
using wherry::StatusCode;
using wherry::route::ByteView;
using namespace wherry::route::c_abi;  // NOLINT(google-build-using-namespace)

namespace {

namespace detail = wherry::route::detail;

Status check_send(const wherry_route& route, std::uint32_t to, std::uint32_t handler, const void* message,
                  std::size_t bytes) {
  if (to >= route.runtime.ranks()) return invalid(fmt::format("no rank {}: there are {}", to, route.runtime.ranks()));
  if (!detail::core_of(route.runtime).has_handler(handler))
    return invalid(fmt::format("no handler {}: use what wherry_route_on_bytes wrote", handler));
  if (message == nullptr && bytes != 0) return is_null("message");
  if (bytes > wherry::route::kMaxMessageBytes)
    return invalid(fmt::format("a message of {} bytes: at most {}", bytes, wherry::route::kMaxMessageBytes));
  return {};
}

template <typename Send>
int send(wherry_route* route, std::uint32_t to, std::uint32_t handler, const void* message, std::size_t bytes,
         wherry_error* error, Send&& how) noexcept {
  if (route != nullptr && to < route->runtime.ranks() && detail::core_of(route->runtime).has_handler(handler) &&
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
    using Info = detail::HandlerInfo;
    const auto info = detail::info_of<ByteView>(Info::Kind::kBytes, name, 0, function);
    using Entry = detail::BytesEntry<decltype(call)>;
    const std::uint32_t id = detail::core_of(r.runtime).add(std::make_unique<Entry>(call), info);
    WHERRY_TRY(r.runtime.status());
    *handler = id;
    return {};
  });
}

}  // namespace

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
