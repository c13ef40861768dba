// SPDX-License-Identifier: Apache-2.0
// The application's side of BenchService.
#pragma once

#include <vector>

#include "fabric/fabric.hpp"
#include "messages.hpp"
#include "wherry/session.hpp"

namespace wherry::bench {

/// Blocking calls over the control connection; one thread. Throws std::runtime_error.
class Remote {
 public:
  explicit Remote(Session& session) noexcept : session_(session) {}

  /// Makes memory known to BenchService; its id. `region` may go after detach().
  std::uint32_t attach(const fabric::Region& region);
  void detach(std::uint32_t id);
  /// Nanoseconds of each repetition, on the agent's clock.
  std::vector<double> run(const WorkRequest& request);
  /// Frees BenchService's buffers.
  void release();

 private:
  Bytes call(std::string_view method, ByteView payload);
  Session& session_;
  std::uint32_t next_id_ = 1;
};

}  // namespace wherry::bench
