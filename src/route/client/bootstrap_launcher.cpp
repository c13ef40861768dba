// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fork.hpp"
#include "base/frame_channel.hpp"
#include "base/try.hpp"
#include "route/client/bootstrap_parts.hpp"
#include "route/client/bootstrap_protocol.hpp"
#include "route/client/environment.hpp"

namespace wherry::route {
namespace {

/// Reads a variable that `wherry run` must have set.
Result<std::string> required(const char* name) {
  if (auto text = variable(name)) return *std::move(text);
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("WHERRY_BOOTSTRAP is set, but {} is not: start the program by `wherry run`, or unset both", name));
}

Result<Fd> connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("WHERRY_BOOTSTRAP is a path of {} bytes; a unix socket's may have {}", path.size(),
                              sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return Status(StatusCode::kInternal, fmt::format("socket: {}", std::strerror(errno)));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("no launcher at {} (WHERRY_BOOTSTRAP): {}; it has ended, or the variable was not set by "
                              "`wherry run`",
                              path, std::strerror(errno)));
  }
  return socket;
}

class LauncherBootstrap final : public Bootstrap, private ForkWatch {
 public:
  LauncherBootstrap(Rank rank, Rank ranks, std::uint32_t node, FrameChannel channel)
      : rank_(rank), ranks_(ranks), node_(node), channel_(std::move(channel)) {
    start_watching();
  }

  [[nodiscard]] Rank rank() const noexcept override { return rank_; }
  [[nodiscard]] Rank ranks() const noexcept override { return ranks_; }
  [[nodiscard]] std::uint32_t node() const noexcept override { return node_; }
  [[nodiscard]] std::uint64_t job() const noexcept override { return job_; }

  ~LauncherBootstrap() override { stop_watching(); }

  Status join(const std::string& key, const Deadline& deadline) {
    WHERRY_TRY(send(LauncherFrame::kJoin, encode_join(key, rank_), deadline));
    WHERRY_ASSIGN(auto payload, expect(LauncherFrame::kWelcome, deadline));
    WHERRY_ASSIGN(job_, decode_welcome(payload));
    return {};
  }

  Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline& deadline) override {
    if (!failure_) return failure_;
    const std::uint32_t round = round_++;
    WHERRY_TRY(send(LauncherFrame::kContribute, encode_contribution(round, mine), deadline));
    std::vector<Bytes> all;
    while (all.size() < ranks_) {
      WHERRY_ASSIGN(auto payload, expect(LauncherFrame::kGathered, deadline));
      auto part = decode_gathered(payload);
      if (!part) return failure_ = part.status();
      if (part->round != round || part->first != all.size() || part->contributions.size() > ranks_ - all.size()) {
        return failure_ = Status(StatusCode::kProtocol,
                                 fmt::format("the launcher answered exchange {} with ranks {} to {} of exchange {}; "
                                             "rank {} of exchange {} was due",
                                             round, part->first, part->first + part->contributions.size() - 1,
                                             part->round, all.size(), round));
      }
      for (Bytes& bytes : part->contributions) all.push_back(std::move(bytes));
    }
    return all;
  }

  [[nodiscard]] Status health() noexcept override {
    if (!failure_) return failure_;
    auto frame = channel_.try_receive();
    if (!frame) return failure_ = gone(frame.status());
    if (frame->has_value()) return failure_ = unexpected(**frame);
    return {};
  }

  void report(const JobFailure& failure) noexcept override {
    if (!failure_) return;  // the launcher itself said so
    try {
      (void)channel_.post(static_cast<std::uint16_t>(LauncherFrame::kFailed), encode_failed(failure));
    } catch (const std::bad_alloc&) {  // the launcher will see this process end, and name it as the cause
    }
  }

 private:
  /// The launcher must detect the end of this rank even if the rank's children live on.
  void in_child() noexcept override { detach_descriptor(channel_.fd()); }

  Status send(LauncherFrame type, const Bytes& payload, const Deadline& deadline) {
    Status sent = channel_.send(static_cast<std::uint16_t>(type), payload, deadline);
    if (sent) return sent;
    // If the launcher ended the job, it sent the reason before it closed the connection.
    if (sent.code() == StatusCode::kUnavailable) {
      auto last = channel_.try_receive();
      if (last && last->has_value()) return failure_ = unexpected(**last);
    }
    return failure_ = gone(sent);
  }

  Result<Bytes> expect(LauncherFrame type, const Deadline& deadline) {
    auto frame = channel_.receive(deadline);
    if (!frame) {
      if (frame.status().code() == StatusCode::kDeadlineExceeded) {
        // Fail permanently: a late answer would look like the answer to the next exchange.
        return failure_ = Status(StatusCode::kDeadlineExceeded,
                                 fmt::format("rank {} waited in vain for the other {} ranks of the job: have all of "
                                             "them called Runtime::start()?",
                                             rank_, ranks_ - 1));
      }
      return failure_ = gone(frame.status());
    }
    if (frame->type != static_cast<std::uint16_t>(type)) return failure_ = unexpected(*frame);
    return std::move(frame->payload);
  }

  static Status unexpected(const ControlFrame& frame) {
    if (frame.type == static_cast<std::uint16_t>(LauncherFrame::kAbort))
      return {StatusCode::kUnavailable, decode_abort(frame.payload)};
    return {StatusCode::kProtocol, fmt::format("the launcher sent an unexpected frame of type {}", frame.type)};
  }

  static Status gone(const Status& why) {
    if (why.code() != StatusCode::kUnavailable) return why;
    return {StatusCode::kUnavailable, "the launcher is gone: `wherry run` was killed, or has refused this process"};
  }

  const Rank rank_, ranks_;
  const std::uint32_t node_;
  FrameChannel channel_;
  std::uint64_t job_ = 0;
  std::uint32_t round_ = 0;
  Status failure_;  ///< the first one: nothing is sent or received after it
};

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_launcher(const std::string& socket_path, const Deadline& deadline) {
  const auto number = [](const char* name, std::uint32_t min, std::uint32_t max) -> Result<std::uint32_t> {
    WHERRY_ASSIGN(const std::string text, required(name));
    return number_of(name, text, min, max);
  };
  WHERRY_ASSIGN(const auto ranks, number("WHERRY_RANKS", 1, kMaxRanks));
  WHERRY_ASSIGN(const auto rank, number("WHERRY_RANK", 0, ranks - 1));
  WHERRY_ASSIGN(const auto node, number("WHERRY_NODE", 0, ranks - 1));
  WHERRY_ASSIGN(const auto key, required("WHERRY_JOB_KEY"));
  if (key.size() > 256 || key.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return Status(StatusCode::kInvalidArgument,
                  "WHERRY_JOB_KEY is not a job's key (up to 256 hexadecimal digits): `wherry run` sets it");
  }
  WHERRY_ASSIGN(auto socket, connect_unix(socket_path));
  auto bootstrap = std::make_unique<LauncherBootstrap>(rank, ranks, node, FrameChannel(std::move(socket)));
  WHERRY_TRY(bootstrap->join(key, deadline));
  return std::unique_ptr<Bootstrap>(std::move(bootstrap));
}

}  // namespace wherry::route
