// SPDX-License-Identifier: Apache-2.0
#include "move/service/local_connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/guarded.hpp"
#include "base/secret.hpp"
#include "move/service/stream_json.hpp"

namespace wherry::move {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr std::chrono::milliseconds kForever{-1};
constexpr auto kGreetingTime = 5s;
constexpr std::size_t kJsonBytes = std::size_t{64} << 10;  ///< more than a request and its answer take
constexpr auto kSendTime = 10s;  ///< a reader that does not take its replies for this long is given up
constexpr auto kSlice = 100ms;   ///< how long a waiting reader's end, or the service's, may stay unnoticed

}  // namespace

void LocalConnection::serve() {
  if (!greet()) return;
  while (const std::optional<std::string> line = read_line(kForever)) {
    require_memory(kJsonBytes);
    const Result<LocalRequest> request = parse_request(*line);
    if (!(request ? answer(*request) : send_error(request.status().message()))) return;
  }
}

LocalConnection::Event LocalConnection::wait_for(short events, std::chrono::milliseconds timeout) const {
  std::array<pollfd, 2> fds = {pollfd{socket_.get(), events, 0}, pollfd{stop_fd_, POLLIN, 0}};
  int count = 0;
  do {
    count = ::poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
  } while (count < 0 && errno == EINTR);
  if (count < 0 || fds[1].revents != 0) return Event::kOver;
  return count == 0 ? Event::kTimeout : Event::kReady;
}

/// The next line without its newline; nullopt if the connection ends or no line arrives in time. Logs a line that is
/// too long.
std::optional<std::string> LocalConnection::read_line(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (std::size_t scanned = 0;;) {
    if (const std::size_t end = in_.find('\n', scanned); end <= kMaxLocalLine) {  // npos is larger
      std::string line = in_.substr(0, end);
      in_.erase(0, end + 1);
      return line;
    }
    if (in_.size() > kMaxLocalLine) {
      send_error("request: longer than 64 KiB");
      return std::nullopt;
    }
    scanned = in_.size();
    auto left = kForever;
    if (timeout != kForever) {
      left = std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()));
    }
    if (wait_for(POLLIN, left) != Event::kReady) return std::nullopt;
    std::array<char, 4096> chunk;
    const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return std::nullopt;
    if (got > 0) in_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

bool LocalConnection::send(const std::string& line, int with_fd) {
  const std::string text = line + "\n";
  std::size_t sent = 0;
  const auto deadline = std::chrono::steady_clock::now() + kSendTime;
  while (sent < text.size()) {
    iovec part{const_cast<char*>(text.data()) + sent, text.size() - sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (with_fd >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &with_fd, sizeof with_fd);
    }
    const ssize_t done = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) {
      sent += static_cast<std::size_t>(done);
      with_fd = -1;  // it went with the first bytes
    } else if (done < 0 && errno == EAGAIN) {
      if (std::chrono::steady_clock::now() > deadline || wait_for(POLLOUT, kSendTime) != Event::kReady) return false;
    } else if (done == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

/// Only the text is a Json value: the destructor of an nlohmann object allocates, and may end the process.
bool LocalConnection::send_error(const std::string& what) {
  return send(R"({"ok":false,"error":)" + Json(what).dump() + "}");
}

bool LocalConnection::greet() {
  const std::optional<std::string> line = read_line(kGreetingTime);
  if (!line) return false;
  require_memory(kJsonBytes);
  const Result<LocalRequest> request = parse_request(*line);
  std::string wrong;
  if (!request) {
    wrong = request.status().message();
  } else if (request->op != LocalRequest::Op::kHello || !equal_secrets(request->token, token_)) {
    wrong = "wrong token: the first request must carry the one in the agent's session file";
  } else if (request->version != kLocalVersion) {
    wrong = "this agent speaks version " + std::to_string(kLocalVersion) + " of the local protocol, not " +
            std::to_string(request->version) + ": install the same wherry on both sides";
  } else if (const Status admitted = admit_(); !admitted) {
    wrong = admitted.message();
  }
  if (!wrong.empty()) {
    send_error(wrong);
    return false;
  }
  return send(Json{{"ok", true}, {"arena_bytes", arena_.capacity()}}.dump(), arena_.read_only_fd());
}

std::vector<StreamStatus> LocalConnection::list(const std::string& only) const {
  if (only.empty()) return catalogue_.list();
  auto one = catalogue_.find(only);
  return one ? std::vector{*std::move(one)} : std::vector<StreamStatus>();
}

bool LocalConnection::answer(const LocalRequest& request) {
  switch (request.op) {
    case LocalRequest::Op::kHello:
      return send_error("request: the token has been given already");
    case LocalRequest::Op::kList:
      return send(R"({"ok":true,"streams":)" + streams_json(list(request.stream)) + "}");
    case LocalRequest::Op::kNext:
      return answer_next(request);
    case LocalRequest::Op::kRelease:
      break;
  }
  auto held = leases_.extract(request.lease);
  if (held.empty()) return send_error("no lease " + std::to_string(request.lease) + " on this connection");
  Lent& lent = held.mapped();
  if (lent.part)
    catalogue_.mark_read(*lent.step, *lent.part);
  else
    catalogue_.mark_read(*lent.step);
  lent.step.reset();
  return send(R"({"ok":true})");
}

bool LocalConnection::answer_next(const LocalRequest& request) {
  using What = Catalogue::Next::What;
  if (leases_.size() >= kMaxLeases) {
    return send_error("this connection holds " + std::to_string(kMaxLeases) + " frames: release some first");
  }
  const auto deadline = std::chrono::steady_clock::now() + request.timeout;
  Catalogue::Next next{};
  next.generation = request.generation;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    next = catalogue_.next(request.stream, request.sequence, std::clamp<std::chrono::milliseconds>(left, 0ms, kSlice),
                           next.generation, borrower_);
    if (next.what != What::kTimeout || left <= kSlice) break;
    if (wait_for(POLLRDHUP, 0ms) != Event::kTimeout) return false;
  }
  switch (next.what) {
    case What::kEnd:
      return send(Json{{"ok", true}, {"what", "end"}, {"skipped", next.skipped}}.dump());
    case What::kTimeout:
      return send(R"({"ok":true,"what":"timeout"})");
    case What::kNoStream:
      return send(R"({"ok":true,"what":"no_stream"})");
    case What::kHeldTooMuch:
      return send(Json({{"ok", false}, {"code", "resource_exhausted"}, {"error", next.why.message()}}).dump());
    case What::kFrame:
      break;
  }
  const Frame& step = *next.frame;
  if (request.part && *request.part >= step.frames()) {
    return send_error("stream \"" + request.stream + "\" has " + std::to_string(step.frames()) + " parts: no part " +
                      std::to_string(*request.part));
  }
  Json reply = {
      {"ok", true},      {"what", "frame"},         {"lease", ++last_lease_},       {"sequence", step.sequence},
      {"tag", step.tag}, {"skipped", next.skipped}, {"generation", next.generation}};
  const auto about = [](const Frame& frame) {
    return Json{{"rows", frame.rows},
                {"offset", frame.extent.offset()},
                {"bytes", frame.ipc().size()},
                {"transfer_ns", frame.transfer_ns},
                {"source_bytes", frame.source_bytes}};
  };
  if (request.part || step.stream->parts == 0) {
    reply.update(about(step.frame(request.part.value_or(0))));
  } else {
    Json& parts = reply["parts"] = Json::array();
    for (std::size_t i = 0; i < step.frames(); ++i) parts.push_back(about(step.frame(i)));
  }
  std::optional<std::uint32_t> part;
  if (request.part) part = static_cast<std::uint32_t>(*request.part);
  leases_.emplace(last_lease_, Lent{std::move(next.frame), part});
  return send(reply.dump());
}

}  // namespace wherry::move
