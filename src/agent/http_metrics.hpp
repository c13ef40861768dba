// SPDX-License-Identifier: Apache-2.0
// Serves GET /metrics, and a page for browsers that shows it, on separate threads. On request, the data thread
// publishes its numbers, at most ten times a second. So counters stay plain integers of one thread.
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
    /// A request must carry this token ("Authorization: Bearer ...", or as the password of user "wherry"). If it is
    /// empty, everyone may read the page.
    std::string token;
    std::function<std::string()> more;  ///< the rest of the page; called on any thread
  };
  static Result<std::unique_ptr<HttpMetrics>> start(Options options);
  ~HttpMetrics();
  void stop();
  /// Whether a client waits for newer numbers; if so, call publish() soon. Cheap.
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
