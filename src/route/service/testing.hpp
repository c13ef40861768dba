// SPDX-License-Identifier: Apache-2.0
// For tests of the agent's half of route: a rank's session that has no client process.
#pragma once

#include <cstdlib>
#include <string>

#include "session/service.hpp"
#include "wherry/route_message.hpp"

namespace wherry::route::testing {

/// A client with an identity but without a worker, so messages to it are dropped.
class SilentPeer final : public session::Client {
 public:
  explicit SilentPeer(Rank rank) : id_(rank + 1), name_("rank " + std::to_string(rank)) {}
  [[nodiscard]] std::uint64_t id() const noexcept override { return id_; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::uint32_t pid() const noexcept override { return 1; }
  [[nodiscard]] fabric::Endpoint& endpoint() noexcept override { return endpoint_; }
  [[nodiscard]] fabric::Worker& worker() noexcept override { std::abort(); }
  [[nodiscard]] const fabric::Region& arena_region() const noexcept override { return region_; }
  [[nodiscard]] fabric::ProcessReader* reader() noexcept override { return nullptr; }
  void complete(std::uint64_t, StatusCode, const session::CompletionRecord&) noexcept override {}
  [[nodiscard]] std::uint32_t max_tickets() const noexcept override { return 1; }
  void fail(Status) noexcept override {}
  bool reconnect() override { return false; }
  [[nodiscard]] std::uint32_t epoch() const noexcept override { return 0; }

 private:
  std::uint64_t id_;
  std::string name_;
  fabric::Endpoint endpoint_;
  fabric::Region region_;
};

}  // namespace wherry::route::testing
