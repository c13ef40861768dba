// SPDX-License-Identifier: Apache-2.0
// GET /metrics, answered by a thread of its own with text that the data thread renders when it is asked to: counters
// stay plain integers of one thread.
#pragma once

#include <memory>
#include <string>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry {

class HttpMetrics {
 public:
  static Result<std::unique_ptr<HttpMetrics>> start(const HostPort& at);
  ~HttpMetrics();
  void stop();
  /// Somebody waits for a page: publish() one soon. Cheap.
  [[nodiscard]] bool wanted() const noexcept;
  void publish(std::string text);
  [[nodiscard]] std::string url() const;

 private:
  struct Impl;
  explicit HttpMetrics(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
