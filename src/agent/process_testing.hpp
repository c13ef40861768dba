// SPDX-License-Identifier: Apache-2.0
// For tests: wherryd as a process, and the content of its metrics page.
#pragma once

#include <sys/socket.h>

#include <sstream>

#include "agent/testing.hpp"
#include "base/socket.hpp"
#include "base/testing.hpp"

namespace wherry::testing_support {

/// wherryd with its own session file, and without Flight unless `more` contains arguments for it.
class AgentProcess {
 public:
  /// `before` runs in the new process before wherryd does.
  explicit AgentProcess(const std::vector<std::string>& more = {}, void (*before)() = nullptr)
      : file_(directory_.file("agent.json")) {
    std::vector<std::string> arguments{"--session-file", file_,   "--budget", "512MiB",
                                       "--log-level",    "error", "--flight", "off"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    child_ = std::make_unique<Child>(WHERRYD_PROGRAM, arguments, before);
    EXPECT_TRUE(eventually([&] { return child_->ended() || read_session_file(file_).ok(); }));
    EXPECT_FALSE(child_->ended()) << "wherryd has refused to start";
  }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] Child& child() { return *child_; }
  [[nodiscard]] SessionOptions options() const {
    SessionOptions o;
    o.agent = file_;
    return o;
  }
  [[nodiscard]] std::string flight() const { return read_session_file(file_)->flight; }
  [[nodiscard]] std::string token() const { return read_session_file(file_)->token; }
  [[nodiscard]] std::string metrics() const { return page("Authorization: Bearer " + token() + "\r\n"); }
  /// Sends GET /metrics with these header lines. Returns the status line, headers and page.
  [[nodiscard]] std::string page(const std::string& headers) const {
    auto file = read_session_file(file_);
    if (!file) return {};
    const std::string at = file->metrics.substr(7, file->metrics.find("/metrics") - 7);
    auto socket = connect_tcp(*parse_host_port(at), Deadline(kPatience));
    if (!socket) return {};
    const std::string request = "GET /metrics HTTP/1.0\r\n" + headers + "\r\n";
    if (::send(socket->get(), request.data(), request.size(), 0) < 0) return {};
    std::string text;
    char chunk[4096];
    const Deadline deadline(kPatience);
    while (!deadline.passed()) {
      const ssize_t n = ::recv(socket->get(), chunk, sizeof chunk, MSG_DONTWAIT);
      if (n == 0) break;
      if (n > 0)
        text.append(chunk, static_cast<std::size_t>(n));
      else
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return text;
  }
  /// The value of a metric without labels. -1: there is no metric of that name.
  [[nodiscard]] double metric(const std::string& name) const {
    std::istringstream lines(metrics());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
    }
    return -1;
  }

 private:
  TemporaryDirectory directory_ = *TemporaryDirectory::create("test");
  std::string file_;
  std::unique_ptr<Child> child_;
};

/// Checks that the agent still works.
inline void expect_alive(const SessionOptions& options, const char* stream_name = "alive") {
  auto session = Session::open(options);
  ASSERT_TRUE(session) << session.status().message();
  auto stream = Stream::open(*session, {.name = stream_name}, {field<double>("x")});
  ASSERT_TRUE(stream) << stream.status().message();
  const std::vector<double> x(1000, 1.0);
  const Status s = stream->post({Column(x)})->wait(kPatience);
  EXPECT_TRUE(s) << s.message();
}

}  // namespace wherry::testing_support
