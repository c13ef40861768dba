// SPDX-License-Identifier: Apache-2.0
#include "fabric/doorway.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/try.hpp"

namespace wherry::fabric {
namespace {

constexpr rlim_t kMostUnproven = 1024;
constexpr rlim_t kPartOfDescriptors = 4;
constexpr std::size_t kUnprovenInAnyCase = 16;               // of one Doorway, whatever the others have
constexpr std::uint64_t kRestNs = 100'000'000;               // for which a door is shut when nothing can be accepted
constexpr std::uint64_t kArrivalPatienceNs = 5'000'000'000;  // from the connection to its proof
constexpr int kAcceptAtATime = 32;                           // then those that are there get their turn

std::atomic<std::size_t> unproven_in_process{0};

std::size_t most_unproven() {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return kMostUnproven;
  return std::min(descriptors.rlim_cur / kPartOfDescriptors, kMostUnproven);
}

bool watch(int epoll, int operation, int fd, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

Status cannot_watch() {
  return {StatusCode::kResourceExhausted, fmt::format("cannot wait for a connection: epoll: {}", std::strerror(errno))};
}

bool somebody_waits(int listener) {
  pollfd one{listener, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

}  // namespace

Result<std::unique_ptr<Doorway>> Doorway::create(Host host) {
  std::unique_ptr<Doorway> made(new Doorway(std::move(host)));
  made->open_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!made->open_) return Status(StatusCode::kResourceExhausted, fmt::format("epoll: {}", std::strerror(errno)));
  return made;
}

Doorway::~Doorway() { unproven_in_process.fetch_sub(arrivals_.size()); }

Status Doorway::add(const Fd& listener, std::shared_ptr<const Tls> tls) {
  Door door;
  door.events = Fd(::epoll_create1(EPOLL_CLOEXEC));
  door.listener = &listener;
  door.tls = std::move(tls);
  sockaddr address{};
  socklen_t size = sizeof address;
  door.local = ::getsockname(listener.get(), &address, &size) == 0 && address.sa_family == AF_UNIX;
  if (!watch(door.events.get(), EPOLL_CTL_ADD, listener.get(), EPOLLIN)) return cannot_watch();
  if (!watch(open_.get(), EPOLL_CTL_ADD, door.events.get(), EPOLLIN)) return cannot_watch();
  doors_.push_back(std::move(door));
  return ok_status();
}

/// Connections at this door wait until `until`; they are neither accepted nor read.
void Doorway::shut(Door& door, std::uint64_t until) noexcept {
  if (door.open) {
    if (!watch(open_.get(), EPOLL_CTL_MOD, door.events.get(), 0)) return;
    door.open = false;
    ++shut_;
  }
  door.opens_at = until;
}

void Doorway::tend(std::uint64_t now) noexcept {
  if (shut_ != 0) {
    for (Door& door : doors_) {
      if (door.open || now < door.opens_at) continue;
      if (!watch(open_.get(), EPOLL_CTL_MOD, door.events.get(), EPOLLIN)) continue;
      door.open = true;
      --shut_;
    }
  }
  while (!arrivals_.empty() && now >= arrivals_.front().since + kArrivalPatienceNs) {
    forget(arrivals_.begin());
    turn_away(StatusCode::kDeadlineExceeded, "the handshake was not finished in time");
  }
}

void Doorway::turn_away(StatusCode code, const char* why) noexcept {
  attempt([&] { host_.turned_away({code, why}); });
}

void Doorway::step() noexcept {
  std::array<epoll_event, 8> events{};
  const int n = ::epoll_wait(open_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < n; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    const auto door = std::ranges::find_if(doors_, [&](const Door& one) { return one.events.get() == fd; });
    if (door != doors_.end()) answer(*door);
  }
}

/// Returns false if the time for TLS handshakes is used up. Without TLS, a handshake costs a few microseconds for HMAC.
bool Doorway::charge(Door& door, std::uint64_t since) noexcept {
  if (!door.tls) return true;
  const std::uint64_t next = handshake_time_.charge(thread_cpu_ns() - since, now_ns());
  if (next != 0) shut(door, next);
  return next == 0;
}

void Doorway::answer(Door& door) noexcept {
  std::array<epoll_event, 32> events{};
  const int n = ::epoll_wait(door.events.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < n && door.open; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == door.listener->get()) {
      accept_some(door);
      continue;
    }
    const auto arrival = by_socket_.find(fd);
    if (arrival == by_socket_.end()) continue;
    const std::uint64_t since = door.tls ? thread_cpu_ns() : 0;
    advance(arrival->second);
    (void)charge(door, since);
  }
}

void Doorway::accept_some(Door& door) noexcept {
  const int from = door.listener->get();
  for (int i = 0; i < kAcceptAtATime; ++i) {
    const std::uint64_t since = door.tls ? thread_cpu_ns() : 0;
    Fd socket(::accept4(from, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      const int error = errno;
      if (error == EINTR || error == ECONNABORTED) continue;
      if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
      if (!somebody_waits(from)) return;  // accept4() asks for a descriptor first
      if ((error == EMFILE || error == ENFILE) && make_way("no file descriptors are left, and it has proven nothing"))
        continue;
      attempt([&] { host_.cannot_accept(error); });
      shut(door, now_ns() + kRestNs);  // the connection stays queued, and epoll would report it again at once
      return;
    }
    if (const Status s = guarded([&] { return enter(door, std::move(socket)); }); !s)
      attempt([&] { host_.turned_away(s); });
    if (!charge(door, since)) return;
  }
}

/// If it throws, the connection is closed and removed.
Status Doorway::enter(Door& door, Fd socket) {
  std::optional<PeerCredentials> credentials;
  if (door.local) {
    auto known = peer_credentials(socket.get());
    if (!known) return ok_status();
    credentials = *known;
  }
  std::unique_ptr<ByteStream> stream;
  if (door.tls) {
    WHERRY_ASSIGN(stream, door.tls->accept(std::move(socket)));
  } else {
    stream = plain_stream(std::move(socket));
  }
  const int fd = stream->fd();
  if (host_.accepted) host_.accepted(fd);
  Crowd::Source source = crowd_.enter(source_of(fd));
  if (arrivals_.size() >= kUnprovenInAnyCase && unproven_in_process.load() >= most_unproven())
    (void)make_way("too many that prove nothing");
  constexpr std::uint32_t kNews = EPOLLIN | EPOLLRDHUP;
  std::list<Arrival> one;
  one.push_back({&door, std::move(source), std::move(stream), credentials, StreamHandshake::server(host_.secret),
                 now_ns(), kNews});
  if (!watch(door.events.get(), EPOLL_CTL_ADD, fd, kNews)) return cannot_watch();
  by_socket_.insert_or_assign(fd, one.begin());
  arrivals_.splice(arrivals_.end(), one);  // from here on nothing throws
  unproven_in_process.fetch_add(1);
  return ok_status();
}

bool Doorway::make_way(const char* why) noexcept {
  if (arrivals_.empty()) return false;
  forget(crowd_.makes_way(arrivals_.begin(), arrivals_.end(),
                          [](const Arrival& one) -> const Crowd::Source& { return one.source; }));
  turn_away(StatusCode::kResourceExhausted, why);
  return true;
}

void Doorway::forget(Where arrival) noexcept {
  if (arrival->stream) {
    const int fd = arrival->stream->fd();
    ::epoll_ctl(arrival->door->events.get(), EPOLL_CTL_DEL, fd, nullptr);
    by_socket_.erase(fd);
  }
  arrivals_.erase(arrival);
  unproven_in_process.fetch_sub(1);
}

/// Continues the handshake of a connection, and handles its outcome when it ends.
void Doorway::advance(Where arrival) noexcept {
  const auto done = guarded([&] { return arrival->handshake.advance(*arrival->stream); });
  if (!done) {
    forget(arrival);
    attempt([&] { host_.turned_away(done.status()); });
    return;
  }
  const int fd = arrival->stream->fd();
  if (!*done) {
    const bool needs_room = !arrival->handshake.out().empty() || arrival->stream->read_needs_room();
    const std::uint32_t wanted = EPOLLRDHUP | EPOLLIN | (needs_room ? EPOLLOUT : 0U);
    if (wanted != arrival->watched && watch(arrival->door->events.get(), EPOLL_CTL_MOD, fd, wanted))
      arrival->watched = wanted;
    return;
  }
  ::epoll_ctl(arrival->door->events.get(), EPOLL_CTL_DEL, fd, nullptr);
  by_socket_.erase(fd);
  Proven proven{std::move(arrival->stream), arrival->credentials, arrival->handshake.purpose(),
                arrival->handshake.key(), arrival->handshake.from()};
  forget(arrival);
  if (const Status s = guarded([&] { return host_.proven(std::move(proven)), ok_status(); }); !s)
    attempt([&] { host_.turned_away(s); });
}

}  // namespace wherry::fabric
