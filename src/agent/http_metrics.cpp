// SPDX-License-Identifier: Apache-2.0
#include "agent/http_metrics.hpp"

#include <fmt/core.h>
#include <httplib.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/cpu.hpp"

namespace wherry {

struct HttpMetrics::Impl {
  httplib::Server server;
  std::thread thread;
  HostPort at;
  std::mutex mutex;
  std::condition_variable published;
  std::string text;
  std::uint64_t page = 0;
  std::atomic<bool> wanted{false};
};

HttpMetrics::HttpMetrics(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpMetrics::~HttpMetrics() { stop(); }

Result<std::unique_ptr<HttpMetrics>> HttpMetrics::start(const HostPort& at) {
  auto impl = std::make_unique<Impl>();
  Impl& h = *impl;
  h.at = at;
  h.server.new_task_queue = [] { return new httplib::ThreadPool(2); };
  h.server.set_payload_max_length(1024);
  h.server.Get("/metrics", [&h](const httplib::Request&, httplib::Response& response) {
    std::unique_lock lock(h.mutex);
    const std::uint64_t before = h.page;
    h.wanted.store(true, std::memory_order_release);
    if (!h.published.wait_for(lock, std::chrono::seconds(5), [&] { return h.page != before; })) {
      response.status = 503;
      response.set_content("the data thread is busy\n", "text/plain");
      return;
    }
    response.set_content(h.text, "text/plain; version=0.0.4");
  });
  if (at.port == 0) {
    const int port = h.server.bind_to_any_port(at.host.c_str());
    if (port < 0)
      return Status(StatusCode::kInvalidArgument, fmt::format("cannot serve metrics on {}", at.to_string()));
    h.at.port = static_cast<std::uint16_t>(port);
  } else if (!h.server.bind_to_port(at.host.c_str(), at.port)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot serve metrics on {}: is the port taken?", at.to_string()));
  }
  h.thread = std::thread([&h] {
    name_thread("wherry-metrics");
    h.server.listen_after_bind();
  });
  // httplib's stop() before its accept loop runs is forgotten: wait until it runs.
  while (!h.server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::unique_ptr<HttpMetrics>(new HttpMetrics(std::move(impl)));
}

void HttpMetrics::stop() {
  if (!impl_ || !impl_->thread.joinable()) return;
  publish("");
  impl_->server.stop();
  impl_->thread.join();
}

bool HttpMetrics::wanted() const noexcept { return impl_->wanted.load(std::memory_order_acquire); }

void HttpMetrics::publish(std::string text) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->text = std::move(text);
    ++impl_->page;
    impl_->wanted.store(false, std::memory_order_release);
  }
  impl_->published.notify_all();
}

std::string HttpMetrics::url() const { return fmt::format("http://{}/metrics", impl_->at.to_string()); }

}  // namespace wherry
