// SPDX-License-Identifier: Apache-2.0
#include "base/byte_stream.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/fork.hpp"
#include "base/socket.hpp"

namespace wherry {
namespace {

class PlainStream final : public ByteStream, private ForkWatch {
 public:
  explicit PlainStream(Fd socket) noexcept : socket_(std::move(socket)) {
    fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
    tune_socket(socket_.get());
    start_watching();
  }
  ~PlainStream() override { stop_watching(); }
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;
  Moved read(std::span<const iovec> to) noexcept override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(to.data());
    message.msg_iovlen = to.size();
    return outcome(::recvmsg(socket_.get(), &message, MSG_DONTWAIT));
  }
  Moved write(std::span<const iovec> from) noexcept override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(from.data());
    message.msg_iovlen = from.size();
    return outcome(::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  [[nodiscard]] int fd() const noexcept override { return socket_.get(); }
  [[nodiscard]] std::string kind() const override {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    return address.ss_family == AF_UNIX ? "unix" : "tcp";
  }
  [[nodiscard]] std::string why() const override {
    return error_ == 0 ? "the peer closed the connection" : std::strerror(error_);
  }

 private:
  /// Closes the child's copy of the socket, so that the other side notices when the parent ends.
  void in_child() noexcept override { detach_descriptor(socket_.get()); }
  Moved outcome(ssize_t n) noexcept {
    if (n > 0) return {Outcome::kMoved, static_cast<std::size_t>(n)};
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (n < 0 && errno == EFAULT) return {Outcome::kUnreadable};
    error_ = n < 0 ? errno : 0;
    return {Outcome::kClosed};
  }
  Fd socket_;
  int error_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> plain_stream(Fd socket) { return std::make_unique<PlainStream>(std::move(socket)); }

}  // namespace wherry
