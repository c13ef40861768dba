// SPDX-License-Identifier: Apache-2.0
#include "route/client/settings.hpp"

#include <fmt/core.h>

#include "base/try.hpp"
#include "route/client/environment.hpp"
#include "route/explain.hpp"

namespace wherry::route {

Status check(const Options& options) {
  if (options.backlog_bytes < kMaxMessageBytes) {
    return {StatusCode::kInvalidArgument,
            fmt::format("Options::backlog_bytes is {}: want at least {}, so that the largest message fits",
                        options.backlog_bytes, kMaxMessageBytes)};
  }
  if (options.placement && *options.placement > Placement::kDpu) {
    return {StatusCode::kInvalidArgument,
            fmt::format("Options::placement is {}: want one of Placement", static_cast<unsigned>(*options.placement))};
  }
  return {};
}

Result<RingShape> resolve_shape(const Options& options) {
  RingShape shape;
  WHERRY_ASSIGN(const auto bytes, number_variable("WHERRY_ROUTE_BUFFER_BYTES", shape.buffer_bytes));
  WHERRY_ASSIGN(const auto buffers, number_variable("WHERRY_ROUTE_BUFFERS", shape.buffers));
  shape.buffer_bytes = options.buffer_bytes.value_or(bytes);
  shape.buffers = options.buffers.value_or(buffers);
  if (!shape.valid()) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("{} buffers of {} bytes: want a power of two from 2 to {}, and a multiple of 64 from 256 to "
                    "{}",
                    shape.buffers, shape.buffer_bytes, RingShape::kMaxBuffers, RingShape::kMaxBufferBytes));
  }
  return shape;
}

Result<Placement> resolve_placement(const Options& options) {
  if (options.placement) return *options.placement;
  const auto name = variable("WHERRY_PLACEMENT");
  if (!name) return Placement::kInline;
  return explain("WHERRY_PLACEMENT", parse_placement(*name));
}

Result<fabric::StreamOptions> network_options() {
  constexpr std::uint32_t kMinTimeout = 3, kMaxTimeout = 3600;  // seconds
  fabric::StreamOptions options;
  options.listen = variable("WHERRY_ROUTE_LISTEN").value_or("");
  options.tls = fabric::tls_from_environment();
  const auto usual = static_cast<std::uint32_t>(options.peer_timeout.count());
  WHERRY_ASSIGN(const auto seconds, number_variable("WHERRY_PEER_TIMEOUT_S", usual, kMinTimeout, kMaxTimeout));
  options.peer_timeout = std::chrono::seconds(seconds);
  return options;
}

}  // namespace wherry::route
