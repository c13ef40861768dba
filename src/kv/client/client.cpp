// SPDX-License-Identifier: Apache-2.0
// The public client: a ClientCore on a ClientPort (a UDP socket or AF_XDP), with the clock of this machine. If a keeper
// grants the lanes, the client also has the connection to that keeper.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "base/cpu.hpp"
#include "base/fork.hpp"
#include "base/try.hpp"
#include "kv/client/client_port.hpp"
#include "kv/client/lane_session.hpp"
#include "kv/client/options.hpp"
#include "kv/clock.hpp"
#include "kv/net/address.hpp"
#include "kv/wait.hpp"

namespace wherry::kv {
namespace {

using std::chrono::nanoseconds;

Cycles now_cycles() noexcept { return lease_clock(); }

}  // namespace

struct Client::Impl final : Completions, private ForkWatch {
  struct Posted {
    std::uint64_t tag = 0;
    Outcome outcome = Outcome::kNoAnswer;
    std::uint32_t version = 0, length = 0;
    bool done = false;
  };

  Impl(const ClientCore::Options& options, Waiting how, std::unique_ptr<ClientPort> on)
      : port(std::move(on)),
        core(options, port->output(), *this),
        waiting(how),
        operations(options.operations),
        blocking(2 * options.operations),
        posts(blocking + 1),
        values(std::make_unique<std::byte[]>((blocking + 1) * std::size_t{kMaxValueBytes})),
        done(options.operations) {
    for (std::uint32_t i = blocking; i > 0; --i) free.push_back(i - 1);
    polled.reserve(options.operations);
    start_watching();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() override {
    stop_watching();
    if (inherited) return;
    // A write still in flight may arrive later. Then do not close the session, so that the keeper lets the lanes rest.
    if (session && core.in_flight() == 0) session->close();
  }

  /// Updates the client's lanes according to the keeper's messages.
  void look_after_lanes(Cycles now) {
    session->turn(now);
    if (!session->held(now)) {
      disputing = false;
      if (core.has_lanes()) core.lose_lanes();
      return;
    }
    if (core.has_lanes() && grant != session->grant()) core.lose_lanes();
    if (!core.has_lanes()) core.give_lanes(session->first_lane(), now);
    grant = session->grant();
    if (!core.disputes()) return;
    if (!disputing) session->ask(now);
    disputing = !session->confirmed();
    if (!disputing) core.protest(now);
  }

  /// In a child of fork(), no operation is in flight, because the parent's operations belong to the parent. If the
  /// parent ends, the keeper notices it.
  void in_child() noexcept override {
    inherited = true;
    if (session) detach_descriptor(session->fd());
  }

  /// In the core, an operation's tag is its index in `posts`. The entry in `posts` outlives the core's operation: it
  /// stays until it is polled.
  void on_complete(const Completion& completion) override {
    const auto i = static_cast<std::uint32_t>(completion.tag);
    Posted& posted = posts[i];
    posted.outcome = completion.outcome;
    posted.version = completion.version;
    posted.length = static_cast<std::uint32_t>(completion.value.size());
    if (posted.length != 0) std::memcpy(value_of(i), completion.value.data(), posted.length);
    posted.done = true;
    if (i != blocking) done[(done_head + done_count++) % done.size()] = i;
  }

  [[nodiscard]] std::size_t in_flight() const noexcept {
    return inherited ? 0 : blocking - free.size() - polled.size();
  }
  std::byte* value_of(std::uint32_t i) noexcept { return values.get() + std::size_t{i} * kMaxValueBytes; }

  /// Receives and sends as much as possible. Returns the time at which it started.
  Cycles progress() {
    constexpr int kBatches = 8;          // then others get their turn
    constexpr std::size_t kNoMore = 16;  // fewer than a system call takes
    port->flush();                       // what was posted leaves before anything else is done
    const Cycles now = now_cycles();
    for (int i = 0; i < kBatches; ++i) {
      if (port->receive(core, now) < kNoMore) break;
    }
    if (core.next_wake() <= now) core.tick(now);
    if (session && (now >= session->next_time() || core.disputes())) look_after_lanes(now);
    port->look_after(now);
    port->flush();
    return now;
  }

  /// Makes progress until `over()` is true or the time `end`. Returns whether `over()` became true.
  template <typename Over>
  bool progress_until(Cycles end, const Over& over) {
    Spinner spinner(waiting == Waiting::kYield);
    spinner.done();  // what was to be asked, progress() sends
    for (;;) {
      const Cycles now = progress();
      if (over()) return true;
      if (now >= end) return false;
      if (waiting != Waiting::kBlock) {
        spinner.pause(now * kCycleNs);
      } else if (const Cycles wake = std::min(end, next_wake()); wake > now) {
        sleep(wake - now);
      }
    }
  }

  /// The session's wake time counts only while an operation is in flight or waits for lanes.
  [[nodiscard]] Cycles next_wake() const noexcept {
    const bool waits = session && (core.in_flight() > 0 || !core.has_lanes());
    return waits ? std::min(core.next_wake(), session->next_time()) : core.next_wake();
  }

  /// Sleeps until a message arrives, or for `time`.
  void sleep(Cycles time) const noexcept {
    std::array p{pollfd{port->fd(), POLLIN, 0}, session ? session->awaited() : pollfd{-1, POLLIN, 0}};
    wait_for(p, time);
    if (p[1].revents != 0) session->hurry();
  }

  StatusCode post(ClientCore::Request request, nanoseconds deadline) {
    if (inherited) return StatusCode::kFailedPrecondition;
    if (in_flight() >= operations) return StatusCode::kWouldBlock;
    const std::uint32_t i = free.back();
    posts[i] = {.tag = request.tag};
    const Cycles now = now_cycles();
    if (session && now >= session->next_time()) look_after_lanes(now);
    request.tag = i;
    request.deadline = deadline > nanoseconds(0) ? now + to_cycles(deadline) : 0;
    free.pop_back();
    if (core.submit(request, now)) return StatusCode::kOk;
    free.push_back(i);
    return StatusCode::kWouldBlock;
  }

  Reply run(ClientCore::Request request, nanoseconds deadline) {
    if (inherited) return {Outcome::kForked, 0, {}};
    Posted& posted = posts[blocking];
    posted = {};
    request.tag = blocking;
    const Cycles now = now_cycles();
    request.deadline = now + (deadline > nanoseconds(0) ? to_cycles(deadline) : default_deadline);
    if (session && now >= session->next_time()) look_after_lanes(now);
    if (!progress_until(request.deadline, [&] { return core.submit(request, now_cycles()); })) return {};
    port->flush();
    progress_until(kNever, [&] { return posted.done; });
    Reply answer{posted.outcome, posted.version, {}};
    answer.value.assign(value_of(blocking), value_of(blocking) + posted.length);
    return answer;
  }

  std::size_t poll(std::span<Completion> out) {
    if (inherited) return 0;
    free.insert(free.end(), polled.begin(), polled.end());
    polled.clear();
    if (done_count == 0)
      progress();
    else
      port->flush();
    const std::size_t count = std::min(out.size(), done_count);
    for (std::size_t n = 0; n < count; ++n) {
      const std::uint32_t i = done[done_head];
      done_head = (done_head + 1) % done.size();
      --done_count;
      polled.push_back(i);
      const Posted& posted = posts[i];
      out[n] = {posted.tag, posted.outcome, posted.version, {value_of(i), posted.length}};
    }
    return count;
  }

  bool wait(nanoseconds timeout) {
    if (inherited) return false;
    port->flush();  // before anything else is done
    const Cycles now = now_cycles();
    const Cycles time = to_cycles(timeout);
    return progress_until(time < kNever - now ? now + time : kNever, [&] { return done_count > 0; });
  }

  void flush() {
    if (!inherited) port->flush();
  }

  std::unique_ptr<ClientPort> port;
  ClientCore core;
  std::unique_ptr<LaneSession> session;  ///< null: lanes are static, or none are wanted
  std::uint64_t grant = 0;               ///< of the core's lanes
  bool disputing = false;                ///< the keeper was asked which client owns the lanes
  Waiting waiting;
  bool inherited = false;  ///< this process is a fork of the one that connected
  Cycles default_deadline = 0;
  /// `operations` is the limit for posted ones: in flight, finished, or polled with a value that may still be read.
  /// `blocking` is the index of the blocking calls' operation.
  std::uint32_t operations, blocking;
  std::vector<Posted> posts;
  std::unique_ptr<std::byte[]> values;
  std::vector<std::uint32_t> free, polled;
  std::vector<std::uint32_t> done;  ///< a ring
  std::size_t done_head = 0, done_count = 0;
};

namespace {

wherry::Status no_lanes(const ClientPlan& plan, const LaneSession& session) {
  std::string names;
  for (const HostPort& keeper : plan.keepers) names += (names.empty() ? "" : ", ") + keeper.to_string();
  const StatusCode code = session.exhausted() ? StatusCode::kResourceExhausted
                          : session.refused() ? StatusCode::kInvalidArgument
                                              : StatusCode::kUnavailable;
  const std::string why = session.refusal().empty() ? "it did not answer in time" : session.refusal();
  return {code, fmt::format("no lanes from the keeper at {}: {}", names, why)};
}

/// Gets lanes from the keeper, and the nodes' addresses if the options do not give them.
Result<std::unique_ptr<LaneSession>> open_session(ClientPlan& plan, Cycles end) {
  std::random_device random;  // not the seed: two clients may have the same
  const std::uint64_t number = std::uint64_t{random()} << 32 | random() | 1;
  auto session = std::make_unique<LaneSession>(plan.keepers, plan.cluster, plan.core.lanes, number);
  for (;;) {
    const Cycles now = now_cycles();
    session->turn(now);
    if (session->held(now)) break;
    if (session->refused() || now >= end) return no_lanes(plan, *session);
    std::array p{session->awaited()};
    wait_for(p, std::min(end, std::max(session->next_time(), now + 1)) - now);
    if (p[0].revents != 0) session->hurry();
  }
  WHERRY_TRY(take_nodes(plan, session->nodes()));
  return session;
}

}  // namespace

Result<Client> Client::connect(const ClientOptions& options) {
  const Cycles end = now_cycles() + to_cycles(options.connect_timeout);
  WHERRY_ASSIGN(auto plan, plan_client(options));
  std::unique_ptr<LaneSession> session;
  if (plan.core.granted) {
    WHERRY_ASSIGN(session, open_session(plan, end));
  }
  WHERRY_ASSIGN(auto port,
                options.xdp.empty() ? open_udp_client_port() : open_xdp_client_port(options.xdp, plan.core.nodes));
  auto impl = std::make_unique<Impl>(plan.core, options.waiting, std::move(port));
  impl->default_deadline = plan.core.deadline;
  impl->session = std::move(session);
  if (impl->session)
    impl->look_after_lanes(now_cycles());
  else
    impl->core.start(now_cycles());
  impl->progress_until(end, [&] { return impl->core.ready() || impl->core.all_lanes_bad(); });
  if (impl->core.all_lanes_bad()) {
    return invalid_option(fmt::format("lanes {} to {}: the nodes keep no records for lanes so high",
                                      impl->core.first_lane(), impl->core.first_lane() + options.lanes - 1));
  }
  if (!impl->core.ready()) {
    std::string names;
    for (const Endpoint& node : plan.core.nodes)
      if (node.port != 0) names += (names.empty() ? "" : ", ") + to_string(node);
    return wherry::Status(StatusCode::kUnavailable, fmt::format("no serving node answered at {}", names));
  }
  return Client(std::move(impl));
}

Client::Client(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Client::Client(Client&& other) noexcept = default;
Client& Client::operator=(Client&& other) noexcept = default;
Client::~Client() = default;

Reply Client::get(std::uint64_t key, nanoseconds deadline) { return impl_->run({.key = key}, deadline); }
Reply Client::put(std::uint64_t key, std::span<const std::byte> value, nanoseconds deadline) {
  return impl_->run({.kind = Kind::write, .key = key, .value = value}, deadline);
}
Reply Client::put_if(std::uint64_t key, std::uint32_t version, std::span<const std::byte> value, nanoseconds deadline) {
  return impl_->run({.kind = Kind::write_if, .key = key, .version = version, .value = value}, deadline);
}
Reply Client::remove(std::uint64_t key, nanoseconds deadline) {
  return impl_->run({.kind = Kind::remove, .key = key}, deadline);
}
Reply Client::remove_if(std::uint64_t key, std::uint32_t version, nanoseconds deadline) {
  return impl_->run({.kind = Kind::remove_if, .key = key, .version = version}, deadline);
}

StatusCode Client::post_get(std::uint64_t key, std::uint64_t tag, nanoseconds deadline) {
  return impl_->post({.key = key, .tag = tag}, deadline);
}
StatusCode Client::post_put(std::uint64_t key, std::span<const std::byte> value, std::uint64_t tag,
                            nanoseconds deadline) {
  return impl_->post({.kind = Kind::write, .key = key, .value = value, .tag = tag}, deadline);
}
StatusCode Client::post_put_if(std::uint64_t key, std::uint32_t version, std::span<const std::byte> value,
                               std::uint64_t tag, nanoseconds deadline) {
  return impl_->post({.kind = Kind::write_if, .key = key, .version = version, .value = value, .tag = tag}, deadline);
}
StatusCode Client::post_remove(std::uint64_t key, std::uint64_t tag, nanoseconds deadline) {
  return impl_->post({.kind = Kind::remove, .key = key, .tag = tag}, deadline);
}
StatusCode Client::post_remove_if(std::uint64_t key, std::uint32_t version, std::uint64_t tag, nanoseconds deadline) {
  return impl_->post({.kind = Kind::remove_if, .key = key, .version = version, .tag = tag}, deadline);
}

std::size_t Client::poll(std::span<Completion> out) { return impl_->poll(out); }
bool Client::wait(nanoseconds timeout) { return impl_->wait(timeout); }
int Client::descriptor() const noexcept { return impl_->inherited ? -1 : impl_->port->fd(); }
nanoseconds Client::due() const noexcept {
  if (impl_->inherited) return nanoseconds::max();
  const Cycles now = now_cycles(), next = impl_->next_wake();
  constexpr Cycles kLongest = 3600'000 * kMillisecond;
  return nanoseconds(next <= now ? 0 : std::min(next - now, kLongest) * kCycleNs);
}
bool Client::forked() const noexcept { return impl_->inherited; }
void Client::flush() { impl_->flush(); }
std::size_t Client::in_flight() const noexcept { return impl_->in_flight(); }
ClientStatistics Client::statistics() const noexcept { return impl_->core.statistics(); }

}  // namespace wherry::kv
