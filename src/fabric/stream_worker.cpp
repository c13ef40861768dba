// SPDX-License-Identifier: Apache-2.0
#include "fabric/stream_worker.hpp"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"
#include "base/socket.hpp"
#include "base/try.hpp"
#include "fabric/doorway.hpp"
#include "fabric/stream_address.hpp"

namespace wherry::fabric {
namespace {

constexpr std::size_t kBudget = std::size_t{1} << 20;          // of one link in one round
constexpr std::uint64_t kCandidatePatienceNs = 3'000'000'000;  // for one address at first, then twice as long
constexpr unsigned kRounds = 4;                                // of all addresses, while some may yet answer
constexpr std::uint64_t kTellEveryNs = 10'000'000'000;         // refusals share lines in the log

/// Asks to be called when a socket becomes ready.
struct Watch : std::enable_shared_from_this<Watch> {
  Watch(asio::io_context& io, std::atomic<unsigned>& news_, int fd) : descriptor(io, fd), news(news_) {}
  ~Watch() { stop(); }
  /// Called before the stream closes its socket. A handler in progress may keep the watch alive for longer.
  void stop() {
    if (descriptor.is_open()) (void)descriptor.release();
  }
  void want(bool write) noexcept {
    std::atomic<bool>& armed = write ? writing : reading;
    if (armed.exchange(true)) return;
    const auto arm = [&] {
      descriptor.async_wait(
          write ? asio::posix::stream_descriptor::wait_write : asio::posix::stream_descriptor::wait_read,
          [self = shared_from_this(), &armed](const asio::error_code& error) {
            armed.store(false);
            if (error) return;
            self->ready.store(true);
            self->news.fetch_add(1);
          });
    };
    if (attempt(arm)) return;
    armed.store(false);  // no memory: the next round looks at the socket itself, and asks again
    ready.store(true);
    news.fetch_add(1);
  }
  asio::posix::stream_descriptor descriptor;
  std::atomic<unsigned>& news;
  std::atomic<bool> reading{false}, writing{false}, ready{true};
};

void keep_alive(int fd, std::chrono::seconds timeout) {
  const int one = 1;
  const int count = std::max(1, static_cast<int>(timeout.count()) - 1);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

}  // namespace

struct StreamWorker::Impl {
  /// A link and its socket. There is no socket while the link is being connected.
  struct Entry {
    std::shared_ptr<StreamLink> link;
    std::shared_ptr<Watch> watch;
    std::uint64_t peer = 0;  ///< the other worker, of a job's connections; 0: another kind
    bool ours = false;       ///< we made it, and only we send
    bool ended = false;      ///< said to its peer's other connection
    std::string who;
    void unwatch() {
      if (watch) watch->stop();
      watch.reset();
    }
  };
  struct Dial {
    std::shared_ptr<StreamLink> link;
    StreamAddress to;
    std::string who, said;
    std::size_t at = 0;  ///< of the candidates
    Fd socket;           ///< on its way
    std::unique_ptr<ByteStream> stream;
    std::optional<StreamHandshake> handshake;
    std::uint64_t since = 0;
    unsigned round = 0;
    bool may_answer = false;  ///< one of the candidates, which was busy in this round
  };

  explicit Impl(StreamWorker& w) : worker(w) {}
  ~Impl() {
    for (Entry& entry : entries) entry.unwatch();
    if (listening) listening->stop();
  }

  StreamWorker& worker;
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> guard{io.get_executor()};
  std::atomic<unsigned> news{0};
  StreamOptions options;
  StreamAddress self;
  Bytes address;
  Fd listener;
  std::unique_ptr<Doorway> doorway;
  std::shared_ptr<Watch> listening;  ///< of the doorway
  std::shared_ptr<const Tls> tls_server, tls_client;
  std::vector<Entry> entries;
  std::vector<Dial> dials;
  std::set<std::uint64_t> left;  ///< peers that said goodbye
  bool unfinished = false;
  std::uint64_t refused = 0, tell_at = 0;
  LogLimit full;

  std::shared_ptr<Watch> watch(int fd) {
    news.fetch_add(1);
    return fd < 0 ? nullptr : std::make_shared<Watch>(io, news, fd);
  }
  static void rearm(const StreamLink& link, Watch& watched) {
    if (!link.status()) return;
    watched.want(false);
    if (link.blocked()) watched.want(true);
  }
  void turn_away(const Status& why) {
    ++refused;
    if (now_ns() < tell_at) return;
    tell_at = now_ns() + kTellEveryNs;
    spdlog::debug("connections of a job: {} turned away so far, the last one because: {}", refused, why.message());
  }
  Status open_door();
  bool accept();
  bool dial();
  Result<bool> dial(Dial& one);
  bool serve(Entry& entry);
  void end(Entry& entry);
};

Status StreamWorker::Impl::open_door() {
  WHERRY_ASSIGN(
      doorway, Doorway::create({
                   .secret =
                       [this](Purpose purpose, std::uint64_t key) {
                         return purpose == Purpose::kPeer && key == self.id ? std::optional(self.secret) : std::nullopt;
                       },
                   .proven =
                       [this](Doorway::Proven proven) {
                         auto link = std::make_shared<StreamLink>(worker);
                         const int fd = proven.stream->fd();
                         link->attach(std::move(proven.stream));
                         entries.push_back({std::move(link), watch(fd), proven.from, false, false, {}});
                       },
                   .turned_away = [this](const Status& why) { turn_away(why); },
                   .cannot_accept =
                       [this](int error) {
                         if (std::uint64_t more = 0; full.admit(now_ns(), more))
                           warn_line(fmt::format(
                               "connections of a job wait: this process cannot accept any: {}; raise its limit "
                               "(ulimit -n, LimitNOFILE=)",
                               std::strerror(error)));
                       },
                   .accepted = [this](int fd) { keep_alive(fd, options.peer_timeout); },
               }));
  WHERRY_TRY(doorway->add(listener, tls_server));
  listening = watch(doorway->fd());
  return ok_status();
}

/// Any process may connect. It is disconnected if it does not complete the fixed-size handshake within a few seconds.
bool StreamWorker::Impl::accept() {
  if (!listening || !listening->ready.exchange(false)) return false;
  doorway->step();
  listening->want(false);
  return true;
}

/// True: connected. An error: this address does not work, at least for now.
Result<bool> StreamWorker::Impl::dial(Dial& one) {
  const HostPort& to = one.to.candidates[one.at];
  if (now_ns() - one.since > kCandidatePatienceNs << one.round)
    return Status(StatusCode::kDeadlineExceeded, "no answer");
  if (!one.stream) {
    if (!one.socket) {
      WHERRY_ASSIGN(one.socket, start_connect_tcp(to));
    }
    WHERRY_ASSIGN(auto there, try_finish_connect_tcp(one.socket, to));
    if (!there) return false;
    if (tls_client) {
      WHERRY_ASSIGN(one.stream, tls_client->connect(std::move(one.socket), to.host));
    } else {
      one.stream = plain_stream(std::move(one.socket));
    }
    one.handshake = StreamHandshake::client(Purpose::kPeer, one.to.id, one.to.secret, self.id);
  }
  return one.handshake->advance(*one.stream);
}

bool StreamWorker::Impl::dial() {
  bool worked = false;
  std::erase_if(dials, [&](Dial& one) {
    if (one.link.use_count() == 1 || !one.link->status()) return true;  // nobody wants it any more
    if (one.since == 0) one.since = now_ns();
    const auto done = guarded([&] { return dial(one); });
    if (done && !*done) return false;
    worked = true;
    if (!done) {
      attempt([&] {
        one.said += fmt::format("{}{}: {}", one.said.empty() ? "" : "; ", one.to.candidates[one.at].to_string(),
                                done.status().message());
      });
      // A busy process may not accept a connection, or may close it unhandled after a while: retry.
      one.may_answer |= done.status().code() == StatusCode::kDeadlineExceeded ||
                        (one.stream && done.status().code() == StatusCode::kUnavailable);
      one.socket.reset();
      one.stream.reset();
      one.since = 0;
      if (++one.at < one.to.candidates.size()) return false;
      if (std::exchange(one.may_answer, false) && ++one.round < kRounds) {
        one.at = 0;
        one.said.clear();
        return false;
      }
      if (!attempt([&] {
            one.link->lose({StatusCode::kUnavailable, fmt::format("{} cannot be reached: {}", one.who, one.said)});
          }))
        one.link->lose(no_memory());
      return true;
    }
    const int fd = one.stream->fd();
    one.link->attach(std::move(one.stream));
    if (!attempt([&] {
          entries.push_back({one.link, watch(fd), one.to.id, true, false,
                             fmt::format("{} ({})", one.who, one.to.candidates[one.at].to_string())});
        }))
      one.link->lose(no_memory());
    return true;
  });
  return worked;
}

/// A connection has ended. Connections of a job come in pairs. The peer is unreachable if its connection ends without a
/// goodbye, or if the peer's connection does not exist when ours ends.
void StreamWorker::Impl::end(Entry& entry) {
  if (entry.ended || entry.peer == 0) return;
  entry.ended = true;
  if (entry.link->other_left()) {
    left.insert(entry.peer);
    return;
  }
  const auto other =
      std::ranges::find_if(entries, [&](const Entry& one) { return one.peer == entry.peer && one.ours != entry.ours; });
  if (entry.ours && (other != entries.end() || left.contains(entry.peer))) return;
  Entry& made = entry.ours ? entry : other != entries.end() ? *other : entry;
  const std::string why = entry.link->status().message();
  made.link->lose({StatusCode::kUnavailable, fmt::format("{} cannot be reached any more: {}", made.who, why)});
}

bool StreamWorker::Impl::serve(Entry& entry) {
  if (!entry.watch || !entry.watch->ready.exchange(false)) return false;
  const std::shared_ptr<StreamLink> link = entry.link;  // handlers may make links: `entry` is void after the pump
  const std::shared_ptr<Watch> watched = entry.watch;
  const bool worked = link->pump(kBudget);
  if (link->unfinished()) {
    watched->ready.store(true);
    unfinished = true;
  }
  rearm(*link, *watched);
  return worked;
}

StreamWorker::StreamWorker(const RegisteredMemory& registered, Deliver deliver)
    : registered_(registered), deliver_(std::move(deliver)), impl_(std::make_unique<Impl>(*this)) {}
StreamWorker::~StreamWorker() = default;

Status StreamWorker::listen(const StreamOptions& options) {
  Impl& i = *impl_;
  i.options = options;
  WHERRY_ASSIGN(i.tls_server, Tls::server(options.tls));
  WHERRY_ASSIGN(i.tls_client, Tls::client(options.tls));
  WHERRY_ASSIGN(auto hosts, addresses_of(options.listen));
  WHERRY_ASSIGN(i.listener, listen_on(hosts));
  WHERRY_ASSIGN(auto port, local_port(i.listener));
  i.self.id = random_u64();
  i.self.secret = make_token() + make_token();
  for (std::string& host : hosts) i.self.candidates.push_back({std::move(host), port});
  i.address = encode(i.self);
  return i.open_door();
}

const Bytes& StreamWorker::address() const noexcept { return impl_->address; }

std::shared_ptr<StreamLink> StreamWorker::adopt(std::unique_ptr<ByteStream> stream) {
  auto link = std::make_shared<StreamLink>(*this);
  const int fd = stream->fd();
  link->attach(std::move(stream));
  impl_->entries.push_back({link, impl_->watch(fd), 0, true, false, {}});
  return link;
}

Result<std::shared_ptr<StreamLink>> StreamWorker::connect(ByteView address, std::string who) {
  WHERRY_ASSIGN(StreamAddress to, decode_stream_address(address));
  nearest_first(to.candidates);
  for (const Impl::Entry& entry : impl_->entries) {
    if (entry.ours && entry.peer == to.id) return entry.link;
  }
  for (const Impl::Dial& dial : impl_->dials) {
    if (dial.to.id == to.id) return dial.link;
  }
  auto link = std::make_shared<StreamLink>(*this);
  link->set_paired();
  impl_->dials.push_back({.link = link, .to = std::move(to), .who = std::move(who)});
  return link;
}

std::vector<std::string> StreamWorker::awaited() const {
  const Impl& i = *impl_;
  std::vector<std::string> who;
  for (const Impl::Dial& dial : i.dials) who.push_back(dial.who);
  for (const Impl::Entry& made : i.entries) {
    if (!made.ours || made.peer == 0 || i.left.contains(made.peer)) continue;
    const auto from_it = [&](const Impl::Entry& one) { return !one.ours && one.peer == made.peer; };
    if (std::ranges::none_of(i.entries, from_it)) who.push_back(made.who);
  }
  return who;
}

void StreamWorker::touch(StreamLink& link) {
  if (link.stream() == nullptr || !(link.blocked() || link.unfinished() || !link.status())) return;
  for (Impl::Entry& entry : impl_->entries) {
    if (entry.link.get() != &link) continue;
    entry.watch->ready.store(true);
    impl_->news.fetch_add(1);
    Impl::rearm(link, *entry.watch);
    return;
  }
}

void StreamWorker::drop(const std::shared_ptr<StreamLink>& link) {
  impl_->news.fetch_add(1);
  std::erase_if(impl_->entries, [&](Impl::Entry& entry) {
    if (entry.link != link) return false;
    if (entry.peer == 0) {  // its one endpoint goes, perhaps in the middle of a message from it
      link->close({StatusCode::kUnavailable, "closed"});  // needs no memory
    } else if (entry.link.use_count() > 2) {
      return false;
    }
    entry.unwatch();
    return true;
  });
}

unsigned StreamWorker::progress() {
  Impl& i = *impl_;
  if (i.entries.empty() && i.dials.empty() && !i.listening) return 0;
  if (!attempt([&] { (void)i.io.poll(); })) i.unfinished = true;
  bool worked = !i.dials.empty() && i.dial();
  if (i.doorway && i.doorway->busy()) i.doorway->tend(now_ns());
  // While a session's own thread waits, it must not depend on another thread that sleeps until its sockets are ready.
  if (offers_) {
    for (Impl::Entry& entry : i.entries) {
      if (entry.watch) entry.watch->ready.store(true);
    }
  } else if (i.news.load() == 0 && !i.unfinished) {
    return worked ? 1 : 0;
  }
  i.news.store(0);
  i.unfinished = false;
  worked |= i.accept();
  // Loop by index, because handlers may add links.
  for (std::size_t at = 0; at < i.entries.size(); ++at) worked |= i.serve(i.entries[at]);
  for (Impl::Entry& entry : i.entries) {
    if (!entry.link->status() && !attempt([&] { i.end(entry); })) entry.link->lose(no_memory());
  }
  // Only this worker owns a connection that a peer made. A connection that this side made is also owned by an endpoint,
  // until that is destroyed.
  std::erase_if(i.entries, [](Impl::Entry& entry) {
    if (entry.link->status() || entry.link.use_count() > 1) return false;
    entry.unwatch();
    return true;
  });
  return worked ? 1 : 0;
}

void StreamWorker::wait(std::chrono::milliseconds most) {
  if (impl_->io.stopped()) impl_->io.restart();
  (void)impl_->io.run_one_for(most);
}

void StreamWorker::wake() {
  asio::post(impl_->io, [] {});
}

bool StreamWorker::may_read(std::uint64_t address, std::uint64_t bytes) const {
  return offers_ && registered_.holds(address, bytes);
}

bool StreamWorker::may_write(std::uint64_t address, std::uint64_t bytes) const {
  return bytes <= puts_bytes_ && address >= puts_at_ && address - puts_at_ <= puts_bytes_ - bytes;
}

std::size_t StreamWorker::largest_message() const { return impl_->options.largest_message; }

}  // namespace wherry::fabric
