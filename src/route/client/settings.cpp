// SPDX-License-Identifier: Apache-2.0
#include "route/client/settings.hpp"

#include <fmt/core.h>

#include "base/profile.hpp"
#include "base/settings.hpp"
#include "base/try.hpp"
#include "route/client/environment.hpp"
#include "route/explain.hpp"

namespace wherry::route {
namespace {

Status out_of_range(RingShape shape) {
  return {StatusCode::kInvalidArgument,
          fmt::format("{} buffers of {} bytes: want a power of two from 2 to {}, and a multiple of 64 from 256 to {}",
                      shape.buffers, shape.buffer_bytes, RingShape::kMaxBuffers, RingShape::kMaxBufferBytes)};
}

/// The profile's value of `key`, or `otherwise` if the profile has none.
Result<std::uint32_t> advised(const Profile& profile, const char* key, std::uint32_t otherwise) {
  const auto advice = profile.settings.find(key);
  if (advice == profile.settings.end()) return otherwise;
  return number_of(key, advice->second.value, 0, ~std::uint32_t{0});
}

Result<ResolvedShape> shape_of(const Profile& profile, const std::string& file) {
  ResolvedShape found{.from = ShapeFrom::kProfile, .why = file};
  const RingShape usual;
  WHERRY_ASSIGN(found.shape.buffer_bytes, advised(profile, "route.buffer_bytes", usual.buffer_bytes));
  WHERRY_ASSIGN(found.shape.buffers, advised(profile, "route.buffers", usual.buffers));
  if (!found.shape.valid()) return out_of_range(found.shape);
  return found;
}

/// The shape from the profile that WHERRY_PROFILE names, or from the default file.
Result<ResolvedShape> shape_from_profile() {
  const auto named = variable("WHERRY_PROFILE");
  if (named && *named == "off") return ResolvedShape{};
  const std::string file = named.value_or(default_profile_file());
  if (file.empty()) return ResolvedShape{};
  const auto profile = load_profile(file);
  auto found = profile ? shape_of(*profile, file) : Result<ResolvedShape>(profile.status());
  if (found) return found;
  if (named) return explain("WHERRY_PROFILE", std::move(found));
  if (found.status().code() == StatusCode::kNotFound) return ResolvedShape{};
  return ResolvedShape{.why = fmt::format("no profile is used: {}", found.status().message())};
}

}  // namespace

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

Result<ResolvedShape> resolve_shape(const Options& options, bool may_read_profile) {
  const bool said = options.buffer_bytes || options.buffers || variable("WHERRY_ROUTE_BUFFER_BYTES") ||
                    variable("WHERRY_ROUTE_BUFFERS");
  if (!said) return may_read_profile ? shape_from_profile() : ResolvedShape{};
  RingShape shape;
  WHERRY_ASSIGN(const auto bytes, number_variable("WHERRY_ROUTE_BUFFER_BYTES", shape.buffer_bytes));
  WHERRY_ASSIGN(const auto buffers, number_variable("WHERRY_ROUTE_BUFFERS", shape.buffers));
  shape.buffer_bytes = options.buffer_bytes.value_or(bytes);
  shape.buffers = options.buffers.value_or(buffers);
  if (!shape.valid()) return out_of_range(shape);
  return ResolvedShape{.shape = shape, .from = ShapeFrom::kPerson};
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
