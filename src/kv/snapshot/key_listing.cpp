// SPDX-License-Identifier: Apache-2.0
#include "kv/snapshot/key_listing.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/try.hpp"
#include "base/unix_socket.hpp"

namespace wherry::kv {
namespace {

constexpr int kTurnMs = 100;
constexpr std::chrono::milliseconds kPause{20};

/// Another user's process could leave out keys. The node's user must be this user, root, or the owner of the
/// directory's files.
wherry::Status check_owner(int socket, const std::string& path) {
  WHERRY_ASSIGN(const PeerCredentials who, peer_credentials(socket));
  if (who.uid == 0 || who.uid == ::geteuid() || ::geteuid() == 0) return {};
  return {StatusCode::kPermissionDenied, fmt::format("{}: user {} listens there", path, who.uid)};
}

wherry::Status receive(int socket, KeyStreamParser& parser, const std::string& path) {
  std::array<std::byte, 1 << 16> buffer{};
  const auto got = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) return parser.feed(ByteView(buffer).first(static_cast<std::size_t>(got)));
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return {};
  return {StatusCode::kUnavailable, fmt::format("{}: the node ended before it had told its keys", path)};
}

/// Reads from one connection until its end.
Result<KeyStreamParser> read_stream(const std::string& path, const Deadline& deadline, const Progress& progress) {
  WHERRY_ASSIGN(const Fd socket, connect_unix(path, deadline));
  WHERRY_TRY(check_owner(socket.get(), path));
  KeyStreamParser parser;
  using State = KeyStreamParser::State;
  while (parser.state() == State::greeting || parser.state() == State::listing) {
    const std::uint64_t all = std::uint64_t{1} << parser.greeting().bucket_bits;
    if (!progress("buckets", parser.buckets(), parser.state() == State::listing ? all : 0))
      return wherry::Status(StatusCode::kCancelled, "interrupted");
    pollfd ready{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kTurnMs) > 0) {
      WHERRY_TRY(receive(socket.get(), parser, path));
    } else if (parser.state() == State::greeting && deadline.passed()) {
      return wherry::Status(StatusCode::kUnavailable, fmt::format("{}: the node says nothing", path));
    }
  }
  return parser;
}

}  // namespace

Result<KeyListing> list_keys(const std::string& path, const Deadline& deadline, const Progress& progress) {
  std::string why;  // of the node's own answers
  for (;;) {
    auto parser = read_stream(path, deadline, progress);
    if (!parser && (why.empty() || parser.status().code() == StatusCode::kCancelled)) return parser.status();
    if (parser && parser->state() == KeyStreamParser::State::complete) {
      KeyListing listing{parser->greeting(), std::move(parser->keys())};
      std::ranges::sort(listing.keys);
      listing.keys.erase(std::ranges::unique(listing.keys).begin(), listing.keys.end());
      return listing;
    }
    // The node has no lease for a moment, or is just returning.
    if (parser) why = fmt::format("node {} does not serve: `wherry kv nodes` says why", parser->greeting().node);
    if (deadline.passed()) return wherry::Status(StatusCode::kFailedPrecondition, why);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace wherry::kv
