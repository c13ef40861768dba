// SPDX-License-Identifier: Apache-2.0
// Private to local_reader.cpp: one reader's connection, served by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.hpp"
#include "fabric/arena.hpp"
#include "move/service/catalogue.hpp"
#include "move/service/local_request.hpp"
#include "wherry/status.hpp"

namespace wherry::move {

inline constexpr std::size_t kMaxLeases = 1024;  ///< frames that one connection may hold at once

class LocalConnection {
 public:
  /// `stop_fd` becomes and remains readable when the server ends. `admit` is called after the reader has shown the
  /// token. If `admit` fails, the reader gets the error and the connection ends.
  LocalConnection(Catalogue& catalogue, const Arena& arena, const std::string& token, Fd socket, int stop_fd,
                  std::function<Status()> admit)
      : catalogue_(catalogue),
        arena_(arena),
        token_(token),
        socket_(std::move(socket)),
        stop_fd_(stop_fd),
        admit_(std::move(admit)) {}

  /// Returns when the connection has ended and its frames are released.
  void serve();

 private:
  enum class Event { kReady, kTimeout, kOver };
  Event wait_for(short events, std::chrono::milliseconds timeout) const;
  std::optional<std::string> read_line(std::chrono::milliseconds timeout);
  bool send(const std::string& line, int with_fd = -1);
  bool send_error(const std::string& what);
  bool greet();
  bool answer(const LocalRequest& request);
  std::vector<StreamStatus> list(const std::string& only) const;
  bool answer_next(const LocalRequest& request);

  Catalogue& catalogue_;
  const Arena& arena_;
  const std::string& token_;
  Fd socket_;
  const int stop_fd_;
  const std::function<Status()> admit_;
  std::string in_;
  const std::shared_ptr<Loans::Borrower> borrower_ = std::make_shared<Loans::Borrower>();
  struct Lent {
    FramePtr step;
    std::optional<std::uint32_t> part;  ///< that is read; none: the whole step
  };
  std::map<std::uint64_t, Lent> leases_;
  std::uint64_t last_lease_ = 0;
};

}  // namespace wherry::move
