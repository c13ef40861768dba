// SPDX-License-Identifier: Apache-2.0
// Opens a session over a working transport, sends requests, and closes the session.
#include "session/connection.hpp"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <list>
#include <utility>

#include "base/cpu.hpp"
#include "base/descriptors.hpp"
#include "base/socket.hpp"
#include "base/try.hpp"
#include "base/unix_socket.hpp"
#include "fabric/stream_worker.hpp"

namespace wherry::session {

namespace {

constexpr std::size_t kDescriptors = 16;  // what a session opens, at least

/// The error of a failed handshake: the agent, the reason and the remedy.
Status no_session(const AgentAddress& at, const std::string& token, const Status& why) {
  const char* remedy = "";
  if (why.code() == StatusCode::kPermissionDenied && token.empty())
    remedy = "; no token was given: set SessionOptions::token, or name the agent's session file instead of its address";
  if (why.code() == StatusCode::kProtocol) remedy = "; is it an agent of Wherry that listens there?";
  if (why.code() == StatusCode::kDeadlineExceeded)
    remedy = "; it is stopped or very busy, or it has no file descriptors left for connections: see its log";
  return {why.code(), fmt::format("no session with the agent at {}: {}{}", at.to_string(), why.message(), remedy)};
}

/// The reason why the connection to an agent ended. An agent on another machine may still be alive.
std::string why_gone(int connection, int pid, const std::string& address) {
  int error = 0;
  socklen_t length = sizeof error;
  // TCP sets an error if the other machine did not answer for a while. If only the process ended, its kernel closes.
  if (::getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error == 0 || error == ECONNRESET ||
      error == EPIPE)
    return fmt::format("the agent (pid {}) is gone", pid);
  return fmt::format(
      "the agent at {} (pid {} there) cannot be reached any more: {}; it may live: look there, and at the network "
      "between",
      address, pid, std::strerror(error));
}

}  // namespace

/// Connects to the agent. Both sides prove that they know the secret.
Result<std::unique_ptr<ByteStream>> Connection::connect(const Ends& ends, fabric::Purpose purpose, std::uint64_t key,
                                                        const fabric::Secret& secret, const Deadline& deadline) {
  const AgentAddress& at = ends.at;
  std::unique_ptr<ByteStream> stream;
  Result<Fd> socket = Status(StatusCode::kInternal, "the agent has no address");
  if (!at.socket.empty()) socket = connect_unix(at.socket, deadline);
  if (!at.socket.empty() && socket) {
    stream = plain_stream(*std::move(socket));
  } else {
    // Several machines may share the session file's file system, but the socket works only on the agent's machine.
    if (at.tcp) socket = connect_tcp(*at.tcp, deadline);
    if (!socket) return socket.status();
    if (ends.tls) {
      WHERRY_ASSIGN(stream, ends.tls->connect(*std::move(socket), at.tcp->host));
    } else {
      stream = plain_stream(*std::move(socket));
    }
  }
  WHERRY_TRY(fabric::prove(*stream, purpose, key, secret, deadline));
  return stream;
}

// ---------------------------------------------------------------- opening

Result<std::unique_ptr<Connection>> Connection::open(const SessionOptions& options) {
  return open(options, [] { return std::unique_ptr<Connection>(new Connection); });
}

Result<std::unique_ptr<Connection>> Connection::open(const SessionOptions& options, Maker make) {
  if (options.max_tickets == 0 || options.max_tickets > 4096 ||
      (options.max_tickets & (options.max_tickets - 1)) != 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("max_tickets = {}: want a power of two from 1 to 4096", options.max_tickets));
  }
  WHERRY_TRY(check_descriptors("this process", kDescriptors));
  const Deadline deadline(options.connect_timeout);
  auto session = make();
  Ends ends;
  AgentAddress& at = ends.at;
  std::string& token = ends.token;
  WHERRY_TRY(session->find_agent(options, deadline, at, token));
  fabric::TlsFiles files = fabric::tls_from_environment();
  if (!options.tls.ca.empty()) files.ca = options.tls.ca;
  if (!options.tls.certificate.empty()) files.certificate = options.tls.certificate;
  if (!options.tls.key.empty()) files.key = options.tls.key;
  if (at.tcp && files.any()) {
    WHERRY_ASSIGN(ends.tls, fabric::Tls::client(files));
  }
  Status refused;  // why the transport that suits best cannot be had, when nobody asked for it by name
  for (Transport transport = options.transport;; transport = Transport::kTcp) {
    auto stream = connect(ends, fabric::Purpose::kControl, 0, token, deadline);
    if (!stream && stream.status().message().starts_with("no agent at ") && !session->info_.session_file.empty()) {
      return Status(stream.status().code(),
                    fmt::format("{}, where the session file {} says it is: if that agent is gone, remove the file",
                                stream.status().message(), session->info_.session_file));
    }
    if (!stream && stream.status().message().starts_with("no agent at ")) return stream.status();
    if (!stream) return no_session(at, token, stream.status());
    session->channel_ = FrameChannel(*std::move(stream));
    session->address_ = at.to_string();
    const Status s = session->handshake(options, transport, ends, deadline);
    if (s) {
      if (!refused) session->info_.transports += fmt::format(" (instead: {})", refused.message());
      return session;
    }
    if (!refused)
      return no_session(at, token, {s.code(), fmt::format("{}; then over tcp: {}", refused.message(), s.message())});
    const bool other = transport == Transport::kAuto && session->chosen_ != Transport::kAuto &&
                       session->chosen_ != Transport::kTcp && s.code() == StatusCode::kUnsupported;
    if (!other) return no_session(at, token, s);
    refused = s;
    auto again = make();
    again->embedded_ = std::move(session->embedded_);
    again->info_.session_file = session->info_.session_file;
    session = std::move(again);
  }
}

Status Connection::find_agent(const SessionOptions& options, const Deadline& deadline, AgentAddress& at,
                              std::string& token) {
  std::string where = options.agent;
  std::string why_embedded;
  if (where == "auto") {
    const char* named = std::getenv("WHERRY_AGENT");
    if (named != nullptr && *named != 0) {
      where = named;
    } else {
      where = default_session_file();
      const Status running = read_session_file(where).status();
      // Start an agent only if none runs, because readers look for data at the running agent.
      if (running.code() == StatusCode::kNotFound || running.code() == StatusCode::kUnavailable) {
        where = "embedded";
        why_embedded = running.message();
      } else if (!running.ok()) {
        return {running.code(),
                fmt::format("{} ($WHERRY_AGENT=embedded starts an agent of this program's own)", running.message())};
      }
    }
  }
  token = options.token;
  if (where == "embedded") {
    auto process = EmbeddedProcess::start(options.embedded, options.transport, deadline);
    if (!process) {
      if (why_embedded.empty()) return process.status();
      return {process.status().code(),
              fmt::format("{}; none could be started either: {}", why_embedded, process.status().message())};
    }
    embedded_ = *std::move(process);
    where = embedded_.session_file();
  } else if (where.find('/') == std::string::npos) {
    if (auto parsed = parse_host_port(where)) {
      at.tcp = *std::move(parsed);
      return ok_status();
    }
  }
  if (where.empty()) {
    return {StatusCode::kInvalidArgument,
            "agent = '': want auto, embedded, host:port, or the path of an agent's session file"};
  }
  auto file = read_session_file(where);
  if (!file) {
    if (file.status().code() != StatusCode::kNotFound || where.find('/') != std::string::npos) return file.status();
    return {
        StatusCode::kNotFound,
        fmt::format("no agent '{}': want auto, embedded, host:port, or the path of an agent's session file", where)};
  }
  info_.session_file = where;
  at.socket = file->control;
  if (!file->host.empty()) at.tcp = HostPort{file->host, file->port};
  if (token.empty()) token = file->token;
  return ok_status();
}

// ---------------------------------------------------------------- requests

Result<Bytes> Connection::request(std::string_view service, std::string_view method, ByteView payload) {
  WHERRY_ASSIGN(auto response, ask(service, method, payload));
  if (response.code != StatusCode::kOk) return Status(response.code, response.message);
  return std::move(response.payload);
}

Bytes Connection::next_request(std::string_view service, std::string_view method, ByteView payload) {
  Request request;
  request.id = next_request_++;
  request.service = service;
  request.method = method;
  request.payload.assign(payload.begin(), payload.end());
  return encode(request);
}

Result<Response> Connection::ask(std::string_view service, std::string_view method, ByteView payload) {
  if (!broken_.ok()) return broken_;
  const Deadline deadline(request_patience);
  const Bytes request = next_request(service, method, payload);
  const std::uint64_t id = last_request();
  const Status sent = channel_.send(static_cast<std::uint16_t>(ControlType::kRequest), request, deadline);
  Result<Response> answer = sent ? answer_to(id, deadline) : Result<Response>(sent);
  if (!answer && answer.status().code() == StatusCode::kUnavailable && agent_gone()) return broken_;
  return answer;
}

Result<std::uint64_t> Connection::tell(std::string_view service, std::string_view method, ByteView payload) {
  if (!broken_.ok()) return broken_;
  const Bytes request = next_request(service, method, payload);
  WHERRY_TRY(channel_.post(static_cast<std::uint16_t>(ControlType::kRequest), request));
  return last_request();
}

/// Waits for the answer. Answers arrive in the order of the requests, so answers to timed-out requests come first.
Result<Response> Connection::answer_to(std::uint64_t id, const Deadline& deadline) {
  for (;;) {
    WHERRY_ASSIGN(auto frame, channel_.receive(deadline));
    if (Status s = expect(frame, ControlType::kResponse); !s) {
      if (frame.type == static_cast<std::uint16_t>(ControlType::kFailure)) broken_ = s;
      return s;
    }
    auto response = decode_response(frame.payload);
    if (!response || response->id == id) return response;
    if (response->id > id) return Status(StatusCode::kProtocol, "the agent answered a request that was not made");
    on_late_answer(*response);
  }
}

void Connection::on_late_answer(const Response& late) {
  const auto one = std::ranges::find(*abandoned_, late.id, [](const auto& entry) { return entry.second.request; });
  if (one == abandoned_->end()) return;
  const LateAnswer then = std::move(one->second.then);
  abandoned_->erase(one);
  then(late);
}

void Connection::abandon(std::string name, std::uint64_t request, LateAnswer then) {
  (*abandoned_)[std::move(name)] = {request, std::move(then)};
}

bool Connection::recall(const std::string& name) { return abandoned_->erase(name) != 0; }

bool Connection::agent_is_local() const noexcept {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  return getpeername(channel_.fd(), reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
         address.ss_family == AF_UNIX;
}

bool Connection::agent_gone() {
  if (!broken_.ok()) return true;
  if (!channel_.peer_gone()) return false;
  broken_ = Status(StatusCode::kUnavailable, why_gone(channel_.fd(), info_.agent_pid, address_));
  // The agent may have sent the reason before it closed.
  for (;;) {
    auto frame = channel_.try_receive();
    if (!frame || !frame->has_value()) break;
    if ((*frame)->type == static_cast<std::uint16_t>(ControlType::kFailure)) {
      if (auto failure = decode_failure((*frame)->payload)) broken_ = Status(failure->code, failure->message);
    }
  }
  return true;
}

// ---------------------------------------------------------------- progress, and the end

void Connection::start_progress_thread() {
  threaded_ = true;
  progress_thread_ = std::thread([this] {
    name_thread("wherry-progress");
    fabric::StreamWorker* const stream = worker_->stream();
    while (!stop_.load(std::memory_order_relaxed)) {
      unsigned events = 0;
      {
        const std::lock_guard lock(fabric_mutex_);
        for (int i = 0; i < 16; ++i) events += worker_->progress();
        if (unsent_.load(std::memory_order_relaxed) != 0) note_unsent();
      }
      if (events != 0) {
        // Give the application a chance to take the lock; otherwise it would wait until no work is left.
        std::this_thread::yield();
      } else if (stream != nullptr) {
        stream->wait(std::chrono::milliseconds(100));
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  });
}

/// Hot paths check broken_, and lock only if threads compete. A forked child has no other threads.
void Connection::in_child() noexcept {
  inherited_ = true;
  std::swap(broken_, *in_child_);
  threaded_ = false;
  unsent_.store(0, std::memory_order_relaxed);
  detach_descriptor(channel_.fd());
  embedded_.in_child();
}

void Connection::close() noexcept {
  stop_watching();
  if (inherited_) {
    // The thread exists only in the parent, so the child can neither join nor detach this handle.
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): a child without memory may end
    static auto& left_behind = *new std::list<std::thread>;
    if (progress_thread_.joinable()) left_behind.push_back(std::move(progress_thread_));
    return;
  }
  stop_.store(true);
  if (worker_ && worker_->stream() != nullptr) worker_->stream()->wake();
  if (progress_thread_.joinable()) progress_thread_.join();
  // Sends that a dead agent did not accept report when the worker is destroyed; until then nudge() may run.
  const std::lock_guard lock(fabric_mutex_);
  unsent_.store(0, std::memory_order_release);
  endpoint_ = fabric::Endpoint();
  worker_.reset();
}

EmbeddedProcess Connection::leave(Status why) noexcept {
  close();
  threaded_ = false;
  unsent_.store(0, std::memory_order_release);
  channel_ = FrameChannel();
  if (broken_.ok()) broken_ = std::move(why);
  return std::move(embedded_);
}

Connection::~Connection() { close(); }

}  // namespace wherry::session
