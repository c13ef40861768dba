// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/store_client.hpp"

#include <utility>

namespace wherry::kv::sim {
namespace {

constexpr Cycles kEarliest = 1000;
constexpr std::uint32_t kEarly = 60'000;

Outcome outcome_of(kv::Outcome outcome) noexcept {
  switch (outcome) {
    case kv::Outcome::kOk:
      return Outcome::kOk;
    case kv::Outcome::kNoSuchKey:
      return Outcome::kNoSuchKey;
    case kv::Outcome::kVersionMismatch:
      return Outcome::kVersionMismatch;
    case kv::Outcome::kTableFull:
      return Outcome::kTableFull;
    case kv::Outcome::kUnknown:
    case kv::Outcome::kLaneTaken:
      return Outcome::kUnknown;
    default:
      return Outcome::kRefused;
  }
}

}  // namespace

StoreClient::StoreClient(Network& network, const Endpoint& at, const ClientCore::Options& options,
                         std::uint32_t impatience, KvSink& sink)
    : network_(network),
      port_(network, at, *this),
      options_(options),
      impatience_(impatience),
      random_(options.seed),
      sink_(sink) {
  core_.emplace(options_, port_, static_cast<Completions&>(*this));
}

void StoreClient::start() {
  core_->start(network_.now());
  arm();
}

void StoreClient::submit(std::uint64_t ticket, const Request& request) {
  static constexpr std::array kKinds{Kind::read, Kind::write, Kind::write_if, Kind::remove, Kind::remove_if};
  ClientCore::Request wanted{.kind = kKinds[static_cast<std::size_t>(request.verb)],
                             .key = request.key,
                             .version = request.expected,
                             .value = request.value,
                             .tag = ticket};
  if (random_.chance(impatience_)) wanted.deadline = network_.now() + kEarliest + random_.below(kEarly);
  open_.insert(ticket);
  // If it would block, nothing happened, and that is the answer. But a call must not complete before it returns.
  if (!core_->submit(wanted, network_.now())) answer_soon(ticket, Outcome::kRefused);
  arm();
}

void StoreClient::answer_soon(std::uint64_t ticket, Outcome outcome) {
  open_.erase(ticket);
  network_.call_at(network_.now() + 1,
                   [this, ticket, outcome](Cycles now) { sink_.complete(now, ticket, {.outcome = outcome}); });
}

void StoreClient::give_lanes(std::uint16_t first_lane) {
  core_->give_lanes(first_lane, network_.now());
  arm();
}

/// Operations in flight end in the client's own turn, not inside this call.
void StoreClient::lose_lanes() {
  core_->lose_lanes();
  arm();
}

void StoreClient::restart() {
  ++life_;
  before_ = statistics();
  network_.resume(port_.port());
  options_.seed = random_.next();
  core_.emplace(options_, port_, static_cast<Completions&>(*this));
  alarm_.forget();
  for (const std::uint64_t ticket : std::exchange(open_, {})) answer_soon(ticket, Outcome::kUnknown);
  start();
}

ClientStatistics StoreClient::statistics() const {
  ClientStatistics sum = core_->statistics();
  sum += before_;
  return sum;
}

void StoreClient::on_message(Cycles now, const Endpoint& from, const Message& message) {
  core_->on_message(from, message, now);
  arm();
}

void StoreClient::on_wake(Cycles now, std::uint64_t tag) {
  if (!alarm_.rings(tag)) return;
  core_->tick(now);
  arm();
}

void StoreClient::on_complete(const Completion& completion) {
  // A program that gets this answer ends and is restarted.
  if (completion.outcome == kv::Outcome::kLaneTaken && core_->taken_lanes() == options_.lanes)
    network_.call_at(network_.now() + kEarliest, [this, life = life_](Cycles) {
      if (life == life_) restart();
    });
  open_.erase(completion.tag);
  sink_.complete(network_.now(), completion.tag,
                 {.outcome = outcome_of(completion.outcome), .version = completion.version, .value = completion.value});
}

}  // namespace wherry::kv::sim
