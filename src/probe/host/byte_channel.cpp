// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.hpp"
#include "base/try.hpp"
#include "probe/host/child.hpp"
#include "probe/host/paths.hpp"

namespace wherry::probe {
namespace {

enum class Kind : std::uint8_t { kPipe, kSplice, kUnix, kTcp };

constexpr unsigned kMostDepth = 64;  // their requests fit into every channel's buffer
constexpr int kPipeBytes = 1 << 20;

Status no(const char* what) {
  return {StatusCode::kResourceExhausted, fmt::format("{}: {}", what, std::strerror(errno))};
}

/// The two ends of a channel, for both directions.
struct Ends {
  Fd here_in, here_out, there_in, there_out;
};

Result<Ends> pipes() {
  std::array<int, 2> to{}, back{};
  if (pipe2(to.data(), O_CLOEXEC) != 0) return no("no pipe");
  Ends ends;
  ends.there_in = Fd(to[0]), ends.here_out = Fd(to[1]);
  if (pipe2(back.data(), O_CLOEXEC) != 0) return no("no pipe");
  ends.here_in = Fd(back[0]), ends.there_out = Fd(back[1]);
  (void)fcntl(back[1], F_SETPIPE_SZ, kPipeBytes);  // more than a user may have: the pipe stays as it is
  return ends;
}

Result<Ends> both_ways(Fd here, Fd there) {
  Ends ends;
  ends.here_out = Fd(fcntl(here.get(), F_DUPFD_CLOEXEC, 0));
  ends.there_out = Fd(fcntl(there.get(), F_DUPFD_CLOEXEC, 0));
  ends.here_in = std::move(here), ends.there_in = std::move(there);
  if (!ends.here_out || !ends.there_out) return no("no descriptor");
  return ends;
}

Result<Ends> unix_sockets() {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return no("no Unix socket");
  return both_ways(Fd(pair[0]), Fd(pair[1]));
}

Result<Ends> tcp_sockets() {
  const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!listener || bind(listener.get(), any, size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), any, &size) != 0)
    return no("no TCP socket on 127.0.0.1");
  Fd here(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!here || ::connect(here.get(), any, size) != 0) return no("no TCP connection over 127.0.0.1");
  sockaddr_in mine{}, caller{};
  socklen_t mine_size = sizeof mine, caller_size = sizeof caller;
  Fd there(accept4(listener.get(), reinterpret_cast<sockaddr*>(&caller), &caller_size, SOCK_CLOEXEC));
  if (!there || getsockname(here.get(), reinterpret_cast<sockaddr*>(&mine), &mine_size) != 0)
    return no("no TCP connection over 127.0.0.1");
  if (mine.sin_port != caller.sin_port)
    return Status(StatusCode::kUnavailable, "another program has connected to the port of this measurement");
  const int on = 1;
  for (const Fd* fd : {&here, &there}) setsockopt(fd->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return both_ways(std::move(here), std::move(there));
}

/// The child writes the requested bytes, and this side reads them. A transfer consists of the request and its bytes.
class ByteChannel final : public ChildPath {
 public:
  ByteChannel(Kind kind, const char* id, const char* to)
      : ChildPath({.id = id, .group = "ipc", .from = "memory of another process", .to = to}), kind_(kind) {
    keep_private(false, true);
  }
  ~ByteChannel() override { ByteChannel::close(); }

  [[nodiscard]] Status accepts(const Shape& shape) const override {
    if (shape.bytes > 0 && shape.depth >= 1 && shape.depth <= kMostDepth && shape.channels == 1 &&
        shape.notice != Notice::kInterrupt && shape.cache == CacheState::kWarm &&
        shape.pattern == Pattern::kSequential && shape.align <= 4096 && shape.flow == Flow::kC2H)
      return ok_status();
    return {StatusCode::kUnsupported,
            fmt::format("a channel of bytes is C2H and sequential, at most {} deep, polled or blocking", kMostDepth)};
  }
  [[nodiscard]] bool try_post(unsigned slot) override {
    if (!ask({.op = Request::kTransfer, .slot = slot})) return false;
    note_posted(slot);
    queue_[(first_ + under_way_++) % kMostDepth] = slot;
    return true;
  }
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    if (under_way_ == 0) return 0U;
    const unsigned slot = queue_[first_];
    while (got_ < layout().bytes) {
      const ssize_t count = ::read(ends_.here_in.get(), destination(slot) + got_, layout().bytes - got_);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0U;
      if (count <= 0)
        return Status(StatusCode::kUnavailable,
                      fmt::format("the other side has gone: {}", count == 0 ? "end of data" : std::strerror(errno)));
      got_ += static_cast<std::size_t>(count);
    }
    got_ = 0;
    first_ = (first_ + 1) % kMostDepth;
    --under_way_;
    done[0] = slot;
    return 1U;
  }

 private:
  Status connect(const Shape& shape) override {
    switch (kind_) {
      case Kind::kPipe:
      case Kind::kSplice: {
        WHERRY_ASSIGN(ends_, pipes());
        break;
      }
      case Kind::kUnix: {
        WHERRY_ASSIGN(ends_, unix_sockets());
        break;
      }
      case Kind::kTcp: {
        WHERRY_ASSIGN(ends_, tcp_sockets());
        break;
      }
    }
    polled_ = shape.notice == Notice::kPolled;
    for (const Fd* fd : {&ends_.here_in, &ends_.there_in, &ends_.there_out})
      if (polled_) (void)fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    first_ = under_way_ = 0;
    got_ = 0;
    return ok_status();
  }
  void serve() override {
    Request request;
    for (;;) {
      if (!all(reinterpret_cast<std::byte*>(&request), sizeof request,
               [&](std::byte* at, std::size_t bytes) { return ::read(ends_.there_in.get(), at, bytes); }))
        return;
      if (request.op != Request::kTransfer)
        answer(request);
      else if (!all(source(request.slot), layout().bytes,
                    [&](std::byte* at, std::size_t bytes) { return send(at, bytes); }))
        return;
    }
  }
  [[nodiscard]] ssize_t send(std::byte* at, std::size_t bytes) const noexcept {
    if (kind_ != Kind::kSplice) return ::write(ends_.there_out.get(), at, bytes);
    const iovec piece{at, bytes};
    return vmsplice(ends_.there_out.get(), &piece, 1, 0);
  }
  /// Repeats a call until all bytes have passed. Returns false if the other side has ended.
  template <typename Some>
  bool all(std::byte* at, std::size_t bytes, Some some) noexcept {
    std::uint64_t idle = 0;
    while (bytes > 0) {
      const ssize_t count = some(at, bytes);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (count < 0) {
        spin(idle);
        continue;
      }
      at += count;
      bytes -= static_cast<std::size_t>(count);
    }
    return true;
  }
  bool ask(const Request& request) noexcept override {
    return ::write(ends_.here_out.get(), &request, sizeof request) == sizeof request;
  }
  void disconnect() noexcept override { ends_ = {}; }

  Kind kind_;
  bool polled_ = true;
  Ends ends_;
  std::array<unsigned, kMostDepth> queue_{};
  unsigned first_ = 0, under_way_ = 0;
  std::size_t got_ = 0;
};

}  // namespace

std::unique_ptr<Path> make_pipe() { return std::make_unique<ByteChannel>(Kind::kPipe, "ipc.pipe", "host memory"); }
std::unique_ptr<Path> make_splice() {
  return std::make_unique<ByteChannel>(Kind::kSplice, "ipc.splice", "host memory");
}
std::unique_ptr<Path> make_unix() { return std::make_unique<ByteChannel>(Kind::kUnix, "ipc.unix", "host memory"); }
std::unique_ptr<Path> make_tcp() { return std::make_unique<ByteChannel>(Kind::kTcp, "ipc.tcp", "host memory"); }

}  // namespace wherry::probe
