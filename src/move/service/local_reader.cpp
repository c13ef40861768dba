// SPDX-License-Identifier: Apache-2.0
#include "move/service/local_reader.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
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
#include "base/unix_socket.hpp"
#include "move/service/local_connection.hpp"

namespace wherry::move {
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
  auto listener = listen_unix(socket_path);
  if (!listener) return Status(listener.status().code(), "local readers: " + listener.status().message());
  auto impl = std::make_unique<Impl>(catalogue, std::move(arena), socket_path, token);
  impl->listener = *std::move(listener);
  impl->stop_event = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!impl->stop_event) {
    ::unlink(socket_path.c_str());
    return Status(StatusCode::kUnavailable, std::string("local readers: eventfd: ") + std::strerror(errno));
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
