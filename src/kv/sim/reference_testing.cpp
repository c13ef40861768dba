// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/reference_testing.hpp"

#include <algorithm>

namespace wherry::kv::sim {
namespace {

constexpr Cycles kFirstTimeout = 2500;  // 10 us
constexpr Cycles kDeadline = 50000;     // 200 us: short enough that some requests end as unknown
constexpr std::uint32_t kFlawChance = 50'000;

Endpoint endpoint_of(std::uint32_t index) {
  return {.mac = 0x020000000000U + index, .ip = 0x0a000000U + index, .port = static_cast<std::uint16_t>(kUdpPort)};
}

Kv reply_to(const Kv& request, Status status, std::uint32_t version) {
  Kv reply = request;
  reply.kind = static_cast<std::uint8_t>(request.kind | kReplyBit);
  reply.detail = static_cast<std::uint8_t>(status);
  reply.version = version;
  return reply;
}

Kind kind_of(Verb verb) {
  static constexpr std::array kKinds{Kind::read, Kind::write, Kind::write_if, Kind::remove, Kind::remove_if};
  return kKinds[static_cast<std::size_t>(verb)];
}

Outcome outcome_of(Status status) {
  switch (status) {
    case Status::ok:
      return Outcome::kOk;
    case Status::no_such_key:
      return Outcome::kNoSuchKey;
    case Status::version_mismatch:
      return Outcome::kVersionMismatch;
    case Status::table_full:
      return Outcome::kTableFull;
    default:
      return Outcome::kRefused;
  }
}

}  // namespace

void ReferenceServer::on_message(Cycles, const Endpoint& from, const Message& message) {
  const Kv& header = message.header;
  if (header.kind == static_cast<std::uint8_t>(Kind::read)) return read(from, header);
  Record& record = lanes_[header.client];
  if (flaw_ != Flaw::kDuplicateEffect) {
    if (header.request < record.request) return;
    if (header.request == record.request) return port_.send(from, {record.reply, {}});
  }
  record = {.request = header.request, .reply = execute(message)};
  port_.send(from, {record.reply, {}});
}

void ReferenceServer::read(const Endpoint& from, const Kv& header) {
  const bool stale = flaw_ == Flaw::kStaleReads && random_.chance(kFlawChance);
  const Location& location = stale ? before_[header.key] : table_[header.key];
  if (location.present)
    port_.send(from, {reply_to(header, Status::ok, location.version), location.value});
  else
    port_.send(from, {reply_to(header, Status::no_such_key, 0), {}});
}

Kv ReferenceServer::execute(const Message& message) {
  const Kv& header = message.header;
  const auto kind = static_cast<Kind>(header.kind);
  Location& location = table_[header.key];
  const std::uint32_t found = location.present ? location.version : 0;
  const bool removes = kind == Kind::remove || kind == Kind::remove_if;
  if ((kind == Kind::write_if || kind == Kind::remove_if) && header.version != found)
    return reply_to(header, Status::version_mismatch, found);
  if (removes && !location.present) return reply_to(header, Status::no_such_key, 0);
  const std::uint32_t version = location.version + 1;
  if (flaw_ == Flaw::kLostUpdates && random_.chance(kFlawChance)) return reply_to(header, Status::ok, version);
  before_[header.key] = location;
  location = {.present = !removes, .version = version, .value = Bytes(message.value.begin(), message.value.end())};
  return reply_to(header, Status::ok, version);
}

void ReferenceClient::submit(std::uint64_t ticket, const Request& request) {
  ticket_ = ticket;
  value_.assign(request.value.begin(), request.value.end());
  header_ = {.kind = static_cast<std::uint8_t>(kind_of(request.verb)),
             .epoch = 1,
             .client = lane_,
             .request = header_.request + 1,
             .version = request.expected,
             .key = request.key};
  waiting_ = true;
  deadline_ = network_.now() + kDeadline;
  timeout_ = kFirstTimeout;
  transmit();
}

void ReferenceClient::transmit() {
  port_.send(server_, {header_, value_});
  port_.wake_at(std::min(network_.now() + timeout_, deadline_), header_.request);
  timeout_ *= 2;
}

void ReferenceClient::on_message(Cycles now, const Endpoint&, const Message& message) {
  const Kv& reply = message.header;
  if (!waiting_ || reply.request != header_.request || reply.kind != (header_.kind | kReplyBit)) return;
  waiting_ = false;
  const auto status = status_of(reply);
  sink_.complete(now, ticket_, {.outcome = outcome_of(status), .version = reply.version, .value = message.value});
}

void ReferenceClient::on_wake(Cycles now, std::uint64_t tag) {
  if (!waiting_ || tag != header_.request) return;
  if (now < deadline_) return transmit();
  waiting_ = false;
  sink_.complete(now, ticket_, {});
}

ReferenceCluster::ReferenceCluster(Flaw flaw, std::uint64_t seed, const WorkloadOptions& options, std::uint32_t clients)
    : network_(seed), server_(network_, endpoint_of(0), flaw, seed + 1), workload_(network_, seed + 2, options) {
  network_.set_links({.loss = 20'000, .duplicate = 20'000, .late = 20'000, .lateness = 5000});
  for (std::uint32_t i = 0; i < clients; ++i) {
    clients_.push_back(std::make_unique<ReferenceClient>(network_, endpoint_of(i + 1), endpoint_of(0),
                                                         static_cast<std::uint16_t>(i), workload_));
    workload_.add_client(*clients_.back());
  }
}

const History& ReferenceCluster::run() {
  // Sometimes the server pauses for longer than requests may take, or a client is cut off.
  Cycles at = 0;
  for (int fault = 0; fault < 6; ++fault) {
    at += 10'000 + network_.random().below(80'000);
    const Cycles until = at + 10'000 + network_.random().below(100'000);
    if (network_.random().below(2) == 0) {
      network_.call_at(at, [this](Cycles) { network_.pause(server_.port()); });
      network_.call_at(until, [this](Cycles) { network_.resume(server_.port()); });
    } else {
      const Port port = clients_[network_.random().below(static_cast<std::uint32_t>(clients_.size()))]->port();
      network_.call_at(at, [this, port](Cycles) { network_.split({port}); });
      network_.call_at(until, [this](Cycles) { network_.heal(); });
    }
    at = until;
  }
  workload_.start();
  while (!workload_.done() && network_.step()) {
  }
  return workload_.history();
}

}  // namespace wherry::kv::sim
