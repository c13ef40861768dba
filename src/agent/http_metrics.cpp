// SPDX-License-Identifier: Apache-2.0
#include "agent/http_metrics.hpp"

#include <fmt/core.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "agent/status_page.hpp"
#include "base/cpu.hpp"
#include "base/guarded.hpp"
#include "base/secret.hpp"
#include "base/socket.hpp"

namespace wherry {

namespace {
constexpr std::chrono::milliseconds kBetweenPages{100};  // the data thread has other things to do
constexpr std::size_t kThreads = 4;                      // a silent connection keeps one busy
constexpr int kPatienceMs = 2000;                        // with a client that sends or reads slowly

/// One client's connection.
class Connection final : public httplib::Stream {
 public:
  explicit Connection(int socket) noexcept : socket_(socket) {}
  [[nodiscard]] bool is_readable() const override { return have_ != at_ || ready(POLLIN); }
  [[nodiscard]] bool is_writable() const override { return ready(POLLOUT); }
  ssize_t read(char* to, std::size_t size) override {  // httplib asks for single characters
    if (at_ == have_) {
      if (!ready(POLLIN)) return -1;
      const ssize_t n = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (n <= 0) return n;
      at_ = 0;
      have_ = static_cast<std::size_t>(n);
    }
    const std::size_t some = std::min(size, have_ - at_);
    std::memcpy(to, buffer_.data() + at_, some);
    at_ += some;
    return static_cast<ssize_t>(some);
  }
  ssize_t write(const char* from, std::size_t size) override {
    return ready(POLLOUT) ? ::send(socket_, from, size, MSG_NOSIGNAL) : -1;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  [[nodiscard]] bool ready(short events) const {
    pollfd one{socket_, events, 0};
    return ::poll(&one, 1, kPatienceMs) == 1;
  }
  int socket_;
  std::array<char, 4096> buffer_;
  std::size_t at_ = 0, have_ = 0;
};

/// Catches exceptions and closes the socket. In httplib's server, an exception would end the process.
class Server final : public httplib::Server {
  bool process_and_close_socket(socket_t socket) override {
    const Fd closes(socket);
    return attempt([&] {
      Connection connection(socket);
      bool closed = false;
      (void)process_request(connection, true, closed, nullptr);
    });
  }
};

/// Like httplib::ThreadPool, but with a fixed queue. When the queue is full, connections wait in the kernel.
class Workers final : public httplib::TaskQueue {
 public:
  Workers() {
    try {
      for (std::size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { run(); });
    } catch (const std::exception&) {
      Workers::shutdown();
      throw;
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() override { Workers::shutdown(); }
  void enqueue(std::function<void()> work) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ < queue_.size(); });
    queue_[(first_ + count_++) % queue_.size()] = std::move(work);
    changed_.notify_all();
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  void run() {
    name_thread("wherry-metrics");
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return count_ != 0 || over_; });
      if (count_ == 0) return;
      const std::function<void()> work = std::exchange(queue_[first_], nullptr);
      first_ = (first_ + 1) % queue_.size();
      --count_;
      lock.unlock();
      changed_.notify_all();
      attempt(work);
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::function<void()>, 16> queue_;
  std::size_t first_ = 0, count_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;
};
}  // namespace

struct HttpMetrics::Impl {
  Server server;
  std::thread thread;
  Options options;
  std::string basic;  ///< what a browser sends for user "wherry" with the token as password (RFC 7617)
  std::mutex mutex;
  std::condition_variable published;
  std::string text;
  std::uint64_t page = 0;
  std::chrono::steady_clock::time_point published_at;
  bool stopped = false;
  std::atomic<bool> wanted{false}, ended{false};

  bool is_stopped() {
    const std::lock_guard lock(mutex);
    return stopped;
  }
  bool may_read(const httplib::Request& request) const {
    if (options.token.empty()) return true;
    const std::string shown = request.get_header_value("Authorization");
    return equal_secrets(shown, "Bearer " + options.token) || equal_secrets(shown, basic);
  }
  /// Answers with numbers that are newer than the request.
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
  h.basic = httplib::make_basic_authentication_header("wherry", h.options.token).second;
  HostPort& at = h.options.at;
  h.server.new_task_queue = [] { return new Workers; };
  h.server.set_payload_max_length(1024);
  h.server.Get("/metrics", [&h](const httplib::Request& request, httplib::Response& response) {
    if (h.may_read(request)) return h.answer(response);
    response.status = 401;
    response.set_header("WWW-Authenticate", "Bearer");
    response.set_content("the agent's token is needed: Authorization: Bearer TOKEN (or set metrics.public)\n",
                         "text/plain");
  });
  for (const PageFile& file : kStatusPage) {
    h.server.Get(file.path, [&h, &file](const httplib::Request& request, httplib::Response& response) {
      response.set_header("Content-Security-Policy",
                          "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
      response.set_header("X-Content-Type-Options", "nosniff");
      if (h.may_read(request)) return response.set_content(file.content, file.type);
      response.status = 401;
      response.set_header("WWW-Authenticate", "Basic realm=\"Wherry agent: user wherry, password its token\"");
      response.set_content("user wherry, password: the token of the agent's session file\n", "text/plain");
    });
  }
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
    // Try again after an exception. The socket keeps listening meanwhile.
    while (!h.is_stopped() && !attempt([&] { h.server.listen_after_bind(); }))
      std::this_thread::sleep_for(kBetweenPages);
    h.ended.store(true);
  });
  // httplib ignores a stop() that comes before its accept loop runs, so wait until the loop runs.
  while (!h.server.is_running() && !h.ended.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::unique_ptr<HttpMetrics>(new HttpMetrics(std::move(impl)));
}

void HttpMetrics::stop() {
  if (!impl_ || !impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
  }
  impl_->published.notify_all();
  for (bool told = false; !impl_->ended.load(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    if (!told && impl_->server.is_running()) impl_->server.stop(), told = true;
  }
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
