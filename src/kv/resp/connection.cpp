// SPDX-License-Identifier: Apache-2.0
#include "kv/resp/connection.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "base/try.hpp"
#include "kv/resp/request_parser.hpp"

namespace wherry::kv::resp {

bool Connection::receive() {
  constexpr std::size_t kPiece = std::size_t{16} << 10;
  in_.erase(0, taken_);
  taken_ = 0;
  while (!full()) {
    const std::size_t before = in_.size();
    in_.resize(before + kPiece);
    const ssize_t count = ::recv(socket_.get(), in_.data() + before, kPiece, 0);
    in_.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count == static_cast<ssize_t>(kPiece)) continue;
    if (count < 0 && errno == EINTR) continue;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
  }
  return true;
}

bool Connection::transmit() {
  while (has_output()) {
    const ssize_t count = ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_ += static_cast<std::size_t>(count);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

Result<bool> Connection::next(std::vector<std::string_view>& words) {
  for (;;) {
    WHERRY_ASSIGN(const std::size_t bytes, parse_request(std::string_view(in_).substr(taken_), words));
    if (bytes == 0) return false;
    taken_ += bytes;
    if (!words.empty()) return true;
  }
}

void Connection::begin(Plan::Join join, std::size_t edits) {
  join_ = join;
  awaited_ = edits;
  answers_.assign(edits, Answer());
}

bool Connection::done(std::uint32_t part, Answer answer) {
  answers_[part] = std::move(answer);
  if (--awaited_ != 0) return false;
  write(join(join_, std::move(answers_)), protocol, out_);
  answers_.clear();
  return true;
}

}  // namespace wherry::kv::resp
