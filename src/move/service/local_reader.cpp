// SPDX-License-Identifier: Apache-2.0
#include "move/service/local_reader.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/socket.hpp"
#include "move/service/local_connection.hpp"

namespace wherry::move {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

/// A socket file outlives an agent that crashed: it goes if nobody answers there.
Status clear_path(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return ok_status();
  if (!S_ISSOCK(info.st_mode)) return {StatusCode::kAlreadyExists, path + " is there already and is no socket"};
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_of(path);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno != ECONNREFUSED) {
    return {StatusCode::kAlreadyExists, "another agent listens on " + path};
  }
  ::unlink(path.c_str());
  return ok_status();
}

}  // namespace

struct LocalReaderService::Impl {
  Impl(Catalogue& c, std::shared_ptr<Arena> a, std::string p, std::string t)
      : catalogue(c), arena(std::move(a)), path(std::move(p)), token(std::move(t)) {}

  struct Served {
    std::atomic<bool> over{false};
    std::thread thread;
  };

  void accept_loop();
  void accept_one(Fd socket);
  void reap(bool all);

  Catalogue& catalogue;
  const std::shared_ptr<Arena> arena;
  const std::string path;
  const std::string token;
  Fd listener, stop_event;
  std::thread acceptor;
  mutable std::mutex mutex;  ///< of `served`
  std::list<Served> served;
};

void LocalReaderService::Impl::accept_loop() {
  name_thread("wherry-local");
  for (;;) {
    std::array<pollfd, 2> fds = {pollfd{stop_event.get(), POLLIN, 0}, pollfd{listener.get(), POLLIN, 0}};
    (void)::poll(fds.data(), fds.size(), -1);
    if (fds[0].revents != 0) return;
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    reap(false);
    if (socket) {
      accept_one(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      (void)::poll(fds.data(), 1, 100);  // the connection stays queued: do not spin on it
    }
  }
}

void LocalReaderService::Impl::accept_one(Fd socket) {
  const std::lock_guard lock(mutex);
  if (served.size() >= kMaxLocalReaders) {
    constexpr std::string_view kFull = "{\"error\":\"the agent serves 64 local readers already\",\"ok\":false}\n";
    (void)::send(socket.get(), kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return;
  }
  Served& one = served.emplace_back();
  try {
    one.thread = std::thread([&one, connection = std::make_unique<LocalConnection>(
                                        catalogue, *arena, token, std::move(socket), stop_event.get())]() mutable {
      name_thread("wherry-reader");
      try {
        connection->serve();
      } catch (const std::exception& error) {
        spdlog::error("a local reader's connection ended: {}", error.what());
      }
      connection.reset();  // the frames go before anybody may believe that they have gone
      one.over = true;
    });
  } catch (const std::exception& error) {
    served.pop_back();
    spdlog::error("a local reader was turned away: {}", error.what());
  }
}

void LocalReaderService::Impl::reap(bool all) {
  std::list<Served> gone;
  {
    const std::lock_guard lock(mutex);
    for (auto it = served.begin(); it != served.end();) {
      const auto next = std::next(it);
      if (all || it->over) gone.splice(gone.end(), served, it);
      it = next;
    }
  }
  for (Served& one : gone) one.thread.join();
}

LocalReaderService::LocalReaderService(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
LocalReaderService::~LocalReaderService() { stop(); }

Result<std::unique_ptr<LocalReaderService>> LocalReaderService::start(Catalogue& catalogue,
                                                                      std::shared_ptr<Arena> arena,
                                                                      const std::string& socket_path,
                                                                      const std::string& token) {
  if (token.empty()) return Status(StatusCode::kInvalidArgument, "local readers: the token must not be empty");
  if (socket_path.empty() || socket_path.size() >= sizeof sockaddr_un{}.sun_path) {
    return Status(StatusCode::kInvalidArgument,
                  "local readers: a socket's path has 1 to 107 bytes, this one " + std::to_string(socket_path.size()));
  }
  if (Status status = clear_path(socket_path); !status) return status;
  auto impl = std::make_unique<Impl>(catalogue, std::move(arena), socket_path, token);
  const auto failed = [&](const char* what) {
    return Status(StatusCode::kUnavailable,
                  "local readers on " + socket_path + ": " + what + ": " + std::strerror(errno));
  };
  impl->stop_event = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  impl->listener = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!impl->stop_event || !impl->listener) return failed("socket");
  // Linux gives the file that bind() makes the mode of the socket, so that it is 0600 from the start.
  const sockaddr_un address = address_of(socket_path);
  if (::fchmod(impl->listener.get(), 0600) != 0) return failed("fchmod");
  if (::bind(impl->listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed("bind");
  if (::chmod(socket_path.c_str(), 0600) != 0 || ::listen(impl->listener.get(), 64) != 0) {
    const Status status = failed("listen");
    ::unlink(socket_path.c_str());
    return status;
  }
  impl->acceptor = std::thread([raw = impl.get()] { raw->accept_loop(); });
  return std::unique_ptr<LocalReaderService>(new LocalReaderService(std::move(impl)));
}

void LocalReaderService::stop() {
  if (!impl_->acceptor.joinable()) return;
  const std::uint64_t one = 1;
  (void)!::write(impl_->stop_event.get(), &one, sizeof one);
  impl_->acceptor.join();
  impl_->listener.reset();
  ::unlink(impl_->path.c_str());
  impl_->reap(true);
}

std::size_t LocalReaderService::connections() const {
  const std::lock_guard lock(impl_->mutex);
  return static_cast<std::size_t>(
      std::count_if(impl_->served.begin(), impl_->served.end(), [](const Impl::Served& one) { return !one.over; }));
}

}  // namespace wherry::move
