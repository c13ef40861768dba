// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/workload.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace wherry::kv::sim {

std::vector<std::uint64_t> keys_of_one_bucket(std::size_t count, unsigned bits, std::uint64_t from) {
  std::vector<std::uint64_t> keys;
  const std::uint32_t bucket = bucket_of(hash_of(from), bits);
  for (std::uint64_t key = from; keys.size() < count; ++key)
    if (bucket_of(hash_of(key), bits) == bucket) keys.push_back(key);
  return keys;
}

Workload::Workload(Network& network, std::uint64_t seed, const WorkloadOptions& options)
    : network_(network),
      random_(seed),
      options_(options),
      keys_(keys_of_one_bucket(options.bucket_keys, options.bucket_bits, random_.next())) {
  while (keys_.size() < options.bucket_keys + options.near_keys) {
    const std::uint32_t hash = hash_of(keys_[random_.below(options.bucket_keys)]);
    const std::uint32_t index = random_.below(candidates(options.bucket_bits));
    std::uint64_t key = random_.next();
    while (bucket_of(hash_of(key), options.bucket_bits) != bucket_at_index(hash, index, options.bucket_bits)) ++key;
    keys_.push_back(key);
  }
  while (keys_.size() < options.bucket_keys + options.near_keys + options.other_keys) keys_.push_back(random_.next());
}

void Workload::add_client(KvPort& port) { clients_.push_back({.port = &port, .versions = {}}); }

void Workload::start() {
  for (std::uint32_t client = 0; client < clients_.size(); ++client)
    for (std::uint32_t i = 0; i < options_.outstanding; ++i) think(client);
}

void Workload::think(std::uint32_t client) {
  const Cycles until = network_.now() + random_.below(static_cast<std::uint32_t>(options_.think + 1));
  network_.call_at(until, [this, client](Cycles now) { next(now, client); });
}

Verb Workload::choose() {
  std::uint32_t left = random_.below(std::accumulate(options_.weights.begin(), options_.weights.end(), 0U));
  std::uint8_t verb = 0;
  while (left >= options_.weights[verb]) left -= options_.weights[verb++];
  return static_cast<Verb>(verb);
}

ByteView Workload::make_value(std::uint32_t client, std::uint32_t number) {
  // Most values are long enough to be unique. The shortest, the longest and sizes around a beat are frequent.
  static constexpr std::array<std::uint32_t, 8> kSpecial{0, 8, 63, 64, 65, 128, 1023, 1024};
  const std::uint32_t size =
      random_.below(2) == 0 ? kSpecial[random_.below(kSpecial.size())] : 8 + random_.below(kMaxValueBytes - 7);
  const std::uint64_t own = std::uint64_t{client} << 32 | number;
  Random content(own);
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = at == 0 ? own : content.next();
    std::memcpy(value_.data() + at, &word, std::min<std::size_t>(8, size - at));
  }
  return ByteView(value_).first(size);
}

void Workload::next(Cycles now, std::uint32_t client) {
  Client& who = clients_[client];
  if (who.begun == options_.operations) return;
  const std::uint32_t number = who.begun++;
  Request request{.verb = choose(), .key = keys_[random_.below(static_cast<std::uint32_t>(keys_.size()))]};
  if (request.verb == Verb::kPut || request.verb == Verb::kPutIf) request.value = make_value(client, number);
  if (request.verb == Verb::kPutIf || request.verb == Verb::kRemoveIf) {
    // The version that the client saw last, which others have often changed; sometimes another version.
    request.expected = who.versions[request.key];
    if (random_.below(8) == 0) request.expected = random_.below(4);
  }
  const std::uint64_t ticket = history_.begin(client, request, now);
  tickets_.push_back({client, request.verb, request.key});
  who.port->submit(ticket, request);
}

void Workload::complete(Cycles now, std::uint64_t ticket, const Answer& answer) {
  history_.end(ticket, answer, now);
  ++answered_;
  const auto [client, verb, key] = tickets_[ticket];
  const bool removed = verb == Verb::kRemove || verb == Verb::kRemoveIf;
  if (answer.outcome == Outcome::kOk || answer.outcome == Outcome::kVersionMismatch)
    clients_[client].versions[key] = removed && answer.outcome == Outcome::kOk ? 0 : answer.version;
  if (answer.outcome == Outcome::kNoSuchKey) clients_[client].versions[key] = 0;
  think(client);
}

}  // namespace wherry::kv::sim
