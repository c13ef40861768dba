// SPDX-License-Identifier: Apache-2.0
#include "agent/http_metrics.hpp"

#include <fmt/core.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/cpu.hpp"
#include "fabric/control.hpp"

namespace wherry {

namespace {
constexpr std::chrono::milliseconds kBetweenPages{100};  // the data thread has other things to do
constexpr std::size_t kThreads = 4;                      // a silent connection keeps one busy
constexpr time_t kPatienceS = 2;                         // with a client that sends or reads slowly
}  // namespace

struct HttpMetrics::Impl {
  httplib::Server server;
  std::thread thread;
  Options options;
  std::mutex mutex;
  std::condition_variable published;
  std::string text;
  std::uint64_t page = 0;
  std::chrono::steady_clock::time_point published_at;
  bool stopped = false;
  std::atomic<bool> wanted{false};

  bool may_read(const httplib::Request& request) const {
    return options.token.empty() ||
           fabric::equal_secrets(request.get_header_value("Authorization"), "Bearer " + options.token);
  }
  /// Numbers that are newer than the request.
  void answer(httplib::Response& response) {
    std::unique_lock lock(mutex);
    published.wait_until(lock, published_at + kBetweenPages, [&] { return stopped; });
    const std::uint64_t before = page;
    wanted.store(true, std::memory_order_release);
    if (!published.wait_for(lock, std::chrono::seconds(5), [&] { return page != before || stopped; }) || stopped) {
      response.status = 503;
      response.set_content("the data thread is busy\n", "text/plain");
      return;
    }
    std::string whole = text;
    lock.unlock();
    whole += options.more();
    response.set_content(whole, "text/plain; version=0.0.4");
  }
};

HttpMetrics::HttpMetrics(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpMetrics::~HttpMetrics() { stop(); }

Result<std::unique_ptr<HttpMetrics>> HttpMetrics::start(Options options) {
  auto impl = std::make_unique<Impl>();
  Impl& h = *impl;
  h.options = std::move(options);
  HostPort& at = h.options.at;
  h.server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  h.server.set_payload_max_length(1024);
  h.server.set_keep_alive_max_count(1);
  h.server.set_read_timeout(kPatienceS);
  h.server.set_write_timeout(kPatienceS);
  h.server.Get("/metrics", [&h](const httplib::Request& request, httplib::Response& response) {
    if (h.may_read(request)) return h.answer(response);
    response.status = 401;
    response.set_header("WWW-Authenticate", "Bearer");
    response.set_content("the agent's token is needed: Authorization: Bearer TOKEN (or set metrics.public)\n",
                         "text/plain");
  });
  if (at.port == 0) {
    const int port = h.server.bind_to_any_port(at.host.c_str());
    if (port < 0)
      return Status(StatusCode::kInvalidArgument, fmt::format("cannot serve metrics on {}", at.to_string()));
    at.port = static_cast<std::uint16_t>(port);
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
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
  }
  impl_->published.notify_all();
  impl_->server.stop();
  impl_->thread.join();
}

bool HttpMetrics::wanted() const noexcept { return impl_->wanted.load(std::memory_order_acquire); }

void HttpMetrics::publish(std::string text) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->text = std::move(text);
    ++impl_->page;
    impl_->published_at = std::chrono::steady_clock::now();
    impl_->wanted.store(false, std::memory_order_release);
  }
  impl_->published.notify_all();
}

std::uint16_t HttpMetrics::port() const noexcept { return impl_->options.at.port; }

std::string HttpMetrics::url() const { return fmt::format("http://{}/metrics", impl_->options.at.to_string()); }

}  // namespace wherry
