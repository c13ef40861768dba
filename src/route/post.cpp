// SPDX-License-Identifier: Apache-2.0
#include "route/post.hpp"

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

Result<std::unique_ptr<Post>> Post::create(const Options& options) {
  auto post = std::unique_ptr<Post>(new Post);
  WHERRY_ASSIGN(post->shm_, fabric::Context::create(Transport::kShm));
  WHERRY_ASSIGN(post->shm_worker_, fabric::Worker::create(post->shm_));
  WHERRY_ASSIGN(auto inbox, post->shm_->allocate(options.inbox.bytes()));
  post->inbox_memory_ = std::move(inbox);
  post->inbox_ = post->inbox_memory_.data();
  Card& card = post->card_;
  card.host = host_identity();
  card.pid = static_cast<std::uint32_t>(getpid());
  card.inbox = options.inbox;
  card.key.base = reinterpret_cast<std::uint64_t>(post->inbox_);
  card.key.size = options.inbox.bytes();
  WHERRY_TRY(post->inbox_memory_.pack_key(card.key.key));
  card.shm_address = post->shm_worker_->address();
  card.secret = random_u64();

  if (options.network) {
    WHERRY_ASSIGN(post->net_, fabric::Context::create(options.transport));
    WHERRY_ASSIGN(post->net_worker_, fabric::Worker::create(post->net_));
    if (post->net_worker_->stream() != nullptr) {
      fabric::StreamOptions stream = options.stream;
      // A message holds a buffer of a ring; all rings of a job have one shape.
      stream.largest_message = sizeof(BridgeHead) + options.inbox.ring.buffer_bytes;
      WHERRY_TRY(post->net_worker_->listen(stream));
    }
    WHERRY_TRY(post->net_worker_->on_message(kBridgeMessage, on_bridge, post.get()));
    card.net_address = post->net_worker_->address();
  }

  post->router_ =
      std::make_unique<Router>(options.lanes, options.inbox.inputs, options.inbox.ring.buffer_bytes, options.mine);
  post->router_->set_bells(reinterpret_cast<std::uint64_t*>(post->inbox_));
  for (std::size_t i = 0; i < options.inbox.inputs; ++i)
    post->router_->inputs()[i].ring = RingReader(post->inbox_ + options.inbox.ring_at(i), options.inbox.ring);
  post->presence_ = Presence(post->inbox_ + options.inbox.presence_at());
  post->presences_.resize(options.lanes);
  post->out_.resize(options.lanes);
  post->in_.resize(options.inbox.inputs);
  return post;
}

void Post::say_goodbye() noexcept {
  if (std::exchange(said_goodbye_, true) || (net_ && net_->inherited())) return;
  // Who leaves says so: a connection that ends without is a process that died.
  const Deadline patience(std::chrono::seconds(1));
  // Links are shared by bridges, and nothing follows a farewell: all that is to be said comes before the first one.
  for (bool said = !health(); !said && !patience.passed();) {
    said = true;
    for (BridgeIn* in : bridges_in_) said &= in->say_left() || in->streams();
    if (!said) (void)net_worker_->progress();
  }
  for (bool gone = health().ok() ? bridges_out_.empty() && bridges_in_.empty() : true; !gone && !patience.passed();) {
    gone = true;
    for (BridgeOut* out : bridges_out_) gone &= out->say_bye();
    for (BridgeIn* in : bridges_in_) gone &= in->say_bye();
    if (!gone) (void)net_worker_->progress();
  }
}

Post::~Post() {
  say_goodbye();
  out_.clear();
  in_.clear();
  regions_.clear();
  endpoints_.clear();
}

Status Post::connect(std::size_t lane, const Card& next, std::uint32_t input, bool mapped, const std::string& who) {
  if (input >= next.inbox.inputs) return {StatusCode::kProtocol, "a next hop has no such input"};
  if (next.inbox.ring != card_.inbox.ring)
    return {StatusCode::kProtocol, "a next hop has buffers of another size: those of a job are alike"};
  if (out_[lane]) return {StatusCode::kFailedPrecondition, "this lane has its next hop already"};
  if (mapped) {
    WHERRY_ASSIGN(auto endpoint, fabric::Endpoint::connect(*shm_worker_, next.shm_address));
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
  if (!net_worker_ || next.net_address.empty()) {
    return {StatusCode::kUnsupported, "a next hop is on another machine, and one of the two has no network transport"};
  }
  WHERRY_ASSIGN(auto endpoint, fabric::Endpoint::connect(*net_worker_, next.net_address, who));
  out_[lane] = std::make_unique<BridgeOut>(next.inbox.ring, std::move(endpoint), next.secret, input, who);
  route::connect(router_->lanes()[lane], {1, next.inbox.ring}, out_[lane]->inbox(), 0);
  bridges_out_.push_back(out_[lane].get());
  transport_ = std::string(to_string(net_->transport()));
  return {};
}

Status Post::expect(std::uint32_t input, const Card& source, std::uint32_t lane, const std::string& who) {
  if (!net_worker_ || source.net_address.empty())
    return {StatusCode::kUnsupported, "messages are to come from another machine, but there is no network transport"};
  if (in_[input]) return {StatusCode::kFailedPrecondition, "this input has its source already"};
  WHERRY_ASSIGN(auto endpoint, fabric::Endpoint::connect(*net_worker_, source.net_address, who));
  in_[input] = std::make_unique<BridgeIn>(card_.inbox, inbox_, input, std::move(endpoint), source.secret, lane, who);
  bridges_in_.push_back(in_[input].get());
  return {};
}

Status Post::open(const Deadline& deadline) {
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

void Post::on_bridge(void* self, ByteView data) { static_cast<Post*>(self)->receive(data); }

void Post::receive(ByteView data) {
  BridgeHead head;
  if (data.size() < sizeof head) return;
  std::memcpy(&head, data.data(), sizeof head);
  if (head.secret != card_.secret) return;  // not for us: nobody's business
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
  if (status_) status_ = {StatusCode::kProtocol, "another process sent more, or other, than it may"};
}

bool Post::progress() noexcept {
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

bool Post::settled(std::chrono::nanoseconds patience) noexcept {
  if (settling_since_ == 0) settling_since_ = now_ns();
  for (BridgeOut* out : bridges_out_) {
    if (!out->settled()) return now_ns() - settling_since_ > static_cast<std::uint64_t>(patience.count());
  }
  return true;
}

std::string Post::unsettled() {
  std::vector<std::string> names;
  for (BridgeOut* out : bridges_out_) {
    if (!out->settled()) names.push_back(out->who());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Status Post::health() const {
  if (!status_) return status_;
  for (const BridgeIn* in : bridges_in_) {
    WHERRY_TRY(in->status());
  }
  for (const BridgeOut* out : bridges_out_) {
    WHERRY_TRY(out->status());
  }
  return {};
}

Breakdown Post::close_left() noexcept {
  Breakdown failure;
  for (std::size_t lane = 0; lane < presences_.size(); ++lane) {
    if (router_->lanes()[lane].closed) continue;
    if (out_[lane] && out_[lane]->left()) router_->close(router_->lanes()[lane]);
    if (!presences_[lane] || presences_[lane].here()) continue;
    Presence::Seen seen = presences_[lane].look();
    if (seen.state == Presence::State::kBroken && failure.ok()) failure = std::move(seen.breakdown);
    router_->close(router_->lanes()[lane]);
  }
  return failure;
}

std::string Post::transport() const { return transport_; }

}  // namespace wherry::route
