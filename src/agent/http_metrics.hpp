// SPDX-License-Identifier: Apache-2.0
// GET /metrics, answered by threads of its own. The data thread publishes the numbers that only it may look at, when
// they are asked for and at most ten times a second: counters stay plain integers of one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry {

class HttpMetrics {
 public:
  struct Options {
    HostPort at;
    std::string token;  ///< that a request must carry ("Authorization: Bearer ..."); empty: anybody may read the page
    std::function<std::string()> more;  ///< the rest of the page; called on any thread
  };
  static Result<std::unique_ptr<HttpMetrics>> start(Options options);
  ~HttpMetrics();
  void stop();
  /// Somebody waits for newer numbers: publish() soon. Cheap.
  [[nodiscard]] bool wanted() const noexcept;
  void publish(std::string text);
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::uint16_t port() const noexcept;

 private:
  struct Impl;
  explicit HttpMetrics(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
