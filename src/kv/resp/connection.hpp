// SPDX-License-Identifier: Apache-2.0
// One client of the gateway: its input, its output, and its command in progress.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "kv/resp/command.hpp"

namespace wherry::kv::resp {

class Connection {
 public:
  Connection(Fd socket, std::uint64_t number, bool trusted)
      : socket_(std::move(socket)), number_(number), trusted_(trusted) {}

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  /// Takes received bytes, up to a limit. False: the peer has gone, or will send no more.
  bool receive();
  /// Sends as many bytes as the peer takes. False: the peer has gone.
  bool transmit();
  [[nodiscard]] bool has_output() const noexcept { return sent_ < out_.size(); }
  /// True if the peer has left so many bytes unread that it gets no more answers for now.
  [[nodiscard]] bool congested() const noexcept { return out_.size() - sent_ > kMostUnsent; }
  [[nodiscard]] bool full() const noexcept { return in_.size() - taken_ >= kMostUnread; }

  /// Gets the next request, if complete. kProtocol: as parse_request(). `words` are valid until the next receive().
  Result<bool> next(std::vector<std::string_view>& words);

  void answer(const Answer& answer) { write(answer, protocol, out_); }

  /// begin(): a command with `edits` edits begins. done(): takes the answer of one edit, and returns true for the last
  /// one, when the command has been answered.
  void begin(Plan::Join join, std::size_t edits);
  bool done(std::uint32_t part, Answer answer);
  [[nodiscard]] bool busy() const noexcept { return awaited_ != 0; }

  int protocol = 2;
  bool silent = false;        ///< the peer sends no more: what it has asked is answered
  bool ending = false;        ///< closed once its answers are sent
  std::uint32_t watched = 0;  ///< epoll's events
  std::string name;           ///< CLIENT SETNAME
  [[nodiscard]] bool trusted() const noexcept { return trusted_; }
  void trust() noexcept { trusted_ = true; }

 private:
  static constexpr std::size_t kMostUnsent = std::size_t{64} << 10;
  static constexpr std::size_t kMostUnread = std::size_t{512} << 10;

  Fd socket_;
  std::uint64_t number_;
  bool trusted_;
  std::string in_, out_;
  std::size_t taken_ = 0, sent_ = 0;
  Plan::Join join_ = Plan::Join::one;
  std::vector<Answer> answers_;
  std::size_t awaited_ = 0;
};

}  // namespace wherry::kv::resp
