// SPDX-License-Identifier: Apache-2.0
#include "move/service/local_reader.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu.hpp"
#include "base/crowd.hpp"
#include "base/log.hpp"
#include "base/unix_socket.hpp"
#include "move/service/local_connection.hpp"

namespace wherry::move {
struct LocalReaderService::Impl {
  Impl(Catalogue& c, std::shared_ptr<Arena> a, std::string p, std::string t)
      : catalogue(c), arena(std::move(a)), path(std::move(p)), token(std::move(t)) {}

  struct Served {
    enum class State { kSilent, kProven, kEvicted, kOver } state = State::kSilent;  ///< under the mutex
    int socket = -1;                                                                ///< open until kOver
    Crowd::Source source;
    std::thread thread;
  };

  void accept_loop();
  void accept_one(Fd socket);
  void make_way();
  Status admit(Served& one);
  [[nodiscard]] std::size_t count(Served::State state) const;
  void reap(bool all);

  Catalogue& catalogue;
  const std::shared_ptr<Arena> arena;
  const std::string path;
  const std::string token;
  Fd listener, stop_event;
  std::thread acceptor;
  mutable std::mutex mutex;  ///< of `served`
  std::list<Served> served;
  Crowd crowd;  ///< of the acceptor
};

/// Call it under the lock.
std::size_t LocalReaderService::Impl::count(Served::State state) const {
  return static_cast<std::size_t>(std::ranges::count(served, state, &Served::state));
}

Status LocalReaderService::Impl::admit(Served& one) {
  const std::lock_guard lock(mutex);
  if (count(Served::State::kProven) >= kMaxLocalReaders) {
    return {StatusCode::kResourceExhausted, "the agent serves " + std::to_string(kMaxLocalReaders) +
                                                " local readers already: close one, or read through Arrow Flight"};
  }
  if (one.state == Served::State::kSilent) one.state = Served::State::kProven;
  return ok_status();
}

/// Called under the lock when too many connections have not shown the token: closes one of them.
void LocalReaderService::Impl::make_way() {
  std::vector<Served*> silent;
  for (Served& one : served) {
    if (one.state == Served::State::kSilent) silent.push_back(&one);
  }
  if (silent.size() < kMaxSilentReaders) return;
  Served& gone = **crowd.makes_way(silent.begin(), silent.end(),
                                   [](const Served* one) -> const Crowd::Source& { return one->source; });
  gone.state = Served::State::kEvicted;
  (void)::shutdown(gone.socket, SHUT_RDWR);  // its thread closes it
}

void LocalReaderService::Impl::accept_loop() {
  name_thread("wherry-local");
  for (;;) {
    std::array<pollfd, 2> fds = {pollfd{stop_event.get(), POLLIN, 0}, pollfd{listener.get(), POLLIN, 0}};
    (void)::poll(fds.data(), fds.size(), -1);
    if (fds[0].revents != 0) return;
    if (std::unique_lock lock(mutex); served.size() >= kMaxLocalReaders + 2 * kMaxSilentReaders) {
      lock.unlock();
      (void)::poll(fds.data(), 1, 10);  // the threads of those that were evicted have not ended yet
      reap(false);
      continue;
    }
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
  const std::size_t before = served.size();
  try {
    make_way();
    Served& one = served.emplace_back();
    one.socket = socket.get();
    one.source = crowd.enter(source_of(socket.get()));
    auto connection = std::make_unique<LocalConnection>(catalogue, *arena, token, std::move(socket), stop_event.get(),
                                                        [this, &one] { return admit(one); });
    one.thread = std::thread([this, &one, connection = std::move(connection)]() mutable {
      name_thread("wherry-reader");
      try {
        connection->serve();
      } catch (const std::exception& error) {
        spdlog::error("a local reader's connection ended: {}", error.what());
      }
      const std::lock_guard over(mutex);
      connection.reset();  // the frames go before anybody may believe that they have gone
      one.state = Served::State::kOver;
    });
  } catch (const std::exception& error) {
    if (served.size() != before) served.pop_back();
    spdlog::error("a local reader was turned away: {}", error.what());
  }
}

void LocalReaderService::Impl::reap(bool all) {
  std::list<Served> gone;
  {
    const std::lock_guard lock(mutex);
    for (auto it = served.begin(); it != served.end();) {
      const auto next = std::next(it);
      if (all || it->state == Served::State::kOver) gone.splice(gone.end(), served, it);
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
  return impl_->served.size() - impl_->count(Impl::Served::State::kOver);
}

}  // namespace wherry::move
