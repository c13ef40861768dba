// SPDX-License-Identifier: Apache-2.0
#include "route/hop.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/secret.hpp"
#include "base/try.hpp"

namespace wherry::route {

Result<std::unique_ptr<Hop>> Hop::create(const Options& options) {
  auto hop = std::unique_ptr<Hop>(new Hop);
  WHERRY_ASSIGN(hop->shm_, fabric::Context::create(Transport::kShm));
  WHERRY_ASSIGN(hop->shm_worker_, fabric::Worker::create(hop->shm_));
  WHERRY_ASSIGN(auto inbox, hop->shm_->allocate(options.inbox.bytes()));
  hop->inbox_memory_ = std::move(inbox);
  hop->inbox_ = hop->inbox_memory_.data();
  Address& address = hop->address_;
  address.host = host_identity();
  address.pid = static_cast<std::uint32_t>(getpid());
  address.inbox = options.inbox;
  address.key.base = reinterpret_cast<std::uint64_t>(hop->inbox_);
  address.key.size = options.inbox.bytes();
  WHERRY_TRY(hop->inbox_memory_.pack_key(address.key.key));
  address.shm_worker = hop->shm_worker_->address();
  address.secret = random_u64();

  if (options.network) {
    WHERRY_ASSIGN(hop->net_, fabric::Context::create(options.transport));
    WHERRY_ASSIGN(hop->net_worker_, fabric::Worker::create(hop->net_));
    if (hop->net_worker_->stream() != nullptr) {
      fabric::StreamOptions stream = options.stream;
      // A message holds one buffer of a ring. All rings of a job have the same shape.
      stream.largest_message = sizeof(BridgeHead) + options.inbox.ring.buffer_bytes;
      WHERRY_TRY(hop->net_worker_->listen(stream));
    }
    WHERRY_TRY(hop->net_worker_->on_message(kBridgeMessage, on_bridge, hop.get()));
    address.net_worker = hop->net_worker_->address();
  }

  hop->router_ =
      std::make_unique<Router>(options.lanes, options.inbox.inputs, options.inbox.ring.buffer_bytes, options.mine);
  hop->router_->read_from(options.inbox, hop->inbox_);
  hop->presence_ = Presence(hop->inbox_ + options.inbox.presence_at());
  hop->presences_.resize(options.lanes);
  hop->out_.resize(options.lanes);
  hop->in_.resize(options.inbox.inputs);
  return hop;
}

void Hop::leave() noexcept {
  if (std::exchange(left_, true) || (net_ && net_->inherited())) return;
  // If a connection ends without these messages, its process counts as dead.
  const Deadline patience(std::chrono::seconds(1));
  // Bridges share links, and no message can follow a link's last message, so send all other messages first.
  const auto until_sent = [&](auto try_send_all) {
    if (!health()) return;
    while (!try_send_all() && !patience.passed()) (void)net_worker_->progress();
  };
  until_sent([&] {
    bool sent = true;
    for (BridgeIn* in : bridges_in_) sent &= in->say_left() || in->streams();
    return sent;
  });
  until_sent([&] {
    bool sent = true;
    for (BridgeOut* out : bridges_out_) sent &= out->say_bye();
    for (BridgeIn* in : bridges_in_) sent &= in->say_bye();
    return sent;
  });
}

Hop::~Hop() {
  leave();
  out_.clear();
  in_.clear();
  regions_.clear();
  endpoints_.clear();
}

Status Hop::connect(std::size_t lane, const Address& next, std::uint32_t input, bool mapped, const std::string& who) {
  if (input >= next.inbox.inputs) return {StatusCode::kProtocol, "a next hop has no such input"};
  if (next.inbox.ring != address_.inbox.ring)
    return {StatusCode::kProtocol, "a next hop has other buffers: all ranks and agents of a job need the same"};
  if (out_[lane]) return {StatusCode::kFailedPrecondition, "this lane is connected already"};
  if (mapped) {
    WHERRY_ASSIGN(auto endpoint, fabric::Endpoint::connect(*shm_worker_, next.shm_worker));
    WHERRY_ASSIGN(auto region,
                  endpoint.unpack(next.key.key, next.key.base, next.key.size, static_cast<pid_t>(next.pid)));
    std::byte* const inbox = region.mapped(next.key.base);
    if (inbox == nullptr) {
      return {StatusCode::kUnsupported,
              "the memory of another process of this machine cannot be mapped: both must run as one user and see the "
              "same /dev/shm"};
    }
    route::connect(router_->lanes()[lane], next.inbox, inbox, input);
    presences_[lane] = Presence(inbox + next.inbox.presence_at());
    endpoints_.push_back(std::move(endpoint));
    regions_.push_back(std::move(region));
    if (transport_.empty()) transport_ = "shared memory";
    return {};
  }
  if (!net_worker_ || next.net_worker.empty()) {
    return {StatusCode::kUnsupported, "a next hop is on another machine, and one of the two has no network transport"};
  }
  WHERRY_ASSIGN(auto endpoint, fabric::Endpoint::connect(*net_worker_, next.net_worker, who));
  out_[lane] = std::make_unique<BridgeOut>(next.inbox.ring, std::move(endpoint), next.secret, input, who);
  route::connect(router_->lanes()[lane], {1, next.inbox.ring}, out_[lane]->inbox(), 0);
  bridges_out_.push_back(out_[lane].get());
  transport_ = std::string(to_string(net_->transport()));
  return {};
}

Status Hop::expect(std::uint32_t input, const Address& previous, std::uint32_t lane, const std::string& who) {
  if (!net_worker_ || previous.net_worker.empty())
    return {StatusCode::kUnsupported, "messages are to come from another machine, but there is no network transport"};
  if (in_[input]) return {StatusCode::kFailedPrecondition, "this input is connected already"};
  WHERRY_ASSIGN(auto endpoint, fabric::Endpoint::connect(*net_worker_, previous.net_worker, who));
  in_[input] =
      std::make_unique<BridgeIn>(address_.inbox, inbox_, input, std::move(endpoint), previous.secret, lane, who);
  bridges_in_.push_back(in_[input].get());
  return {};
}

Status Hop::open(const Deadline& deadline) {
  if (!net_worker_ || net_worker_->stream() == nullptr) return {};
  for (;;) {
    (void)progress();
    WHERRY_TRY(health());
    const std::vector<std::string> awaited = net_worker_->stream()->awaited();
    if (awaited.empty()) return {};
    if (deadline.passed()) {
      return {StatusCode::kDeadlineExceeded,
              fmt::format("not connected in time (Options::start_timeout): {}", fmt::join(awaited, ", "))};
    }
    net_worker_->stream()->wait(std::chrono::milliseconds(1));
  }
}

void Hop::on_bridge(void* self, ByteView data) { static_cast<Hop*>(self)->receive(data); }

void Hop::receive(ByteView data) {
  BridgeHead head;
  if (data.size() < sizeof head) return;
  std::memcpy(&head, data.data(), sizeof head);
  if (head.secret != address_.secret) return;  // from a stranger
  received_ = true;
  if (head.kind == BridgeHead::Kind::kCredits) {
    if (head.index < out_.size() && out_[head.index]) out_[head.index]->add_credits(head.credits);
    return;
  }
  if (head.kind == BridgeHead::Kind::kLeft) {
    if (head.index < out_.size() && out_[head.index]) out_[head.index]->reader_left();
    return;
  }
  if (head.index < in_.size() && in_[head.index] && in_[head.index]->receive(data.subspan(sizeof head))) return;
  if (status_)
    status_ = {StatusCode::kProtocol, "another process sent more than it may, or something other than messages"};
}

bool Hop::progress() noexcept {
  if (!net_worker_) return false;
  received_ = false;
  bool worked = net_worker_->progress() != 0;
  for (BridgeIn* in : bridges_in_) worked |= in->progress();
  for (BridgeOut* out : bridges_out_) {
    worked |= out->progress();
    if (const auto rank = out->undelivered()) [[unlikely]]
      router_->lose(*rank);
  }
  return worked || received_;
}

bool Hop::settled(std::chrono::nanoseconds patience) noexcept {
  if (settling_since_ == 0) settling_since_ = now_ns();
  for (BridgeOut* out : bridges_out_) {
    if (!out->settled()) return now_ns() - settling_since_ > static_cast<std::uint64_t>(patience.count());
  }
  return true;
}

std::string Hop::unsettled() {
  std::vector<std::string> names;
  for (BridgeOut* out : bridges_out_) {
    if (!out->settled()) names.push_back(out->who());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Status Hop::health() const {
  if (!status_) return status_;
  for (const BridgeIn* in : bridges_in_) {
    WHERRY_TRY(in->status());
  }
  for (const BridgeOut* out : bridges_out_) {
    WHERRY_TRY(out->status());
  }
  return {};
}

JobFailure Hop::close_left() noexcept {
  JobFailure failure;
  for (std::size_t lane = 0; lane < presences_.size(); ++lane) {
    if (router_->lanes()[lane].closed) continue;
    if (out_[lane] && out_[lane]->left()) router_->close(router_->lanes()[lane]);
    if (!presences_[lane] || presences_[lane].here()) continue;
    Presence::Seen seen = presences_[lane].look();
    if (seen.state == Presence::State::kFailed && failure.ok()) failure = std::move(seen.failure);
    router_->close(router_->lanes()[lane]);
  }
  return failure;
}

std::string Hop::transport() const { return transport_; }

}  // namespace wherry::route
