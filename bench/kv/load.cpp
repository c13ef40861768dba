// SPDX-License-Identifier: Apache-2.0
#include "kv/load.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/try.hpp"
#include "kv/generated/frame.hpp"

namespace wherry::kv::bench {
namespace {

using std::chrono::nanoseconds;

/// Draws keys 1 to n: uniformly, or key k with a weight of 1 / k^exponent.
class Keys {
 public:
  explicit Keys(const LoadOptions& options) : count_(options.keys) {
    if (options.led_by >= 0) {
      // In mode `static` slot s is led by node s modulo the nodes.
      const auto nodes = static_cast<std::uint32_t>(options.client.nodes.size());
      for (std::uint64_t k = 1; k <= count_; ++k)
        if (slot_of(hash_of(k)) % nodes == static_cast<std::uint32_t>(options.led_by)) led_.push_back(k);
    }
    if (options.zipf <= 0) return;
    cumulated_.reserve(count_);
    double sum = 0;
    for (std::uint64_t k = 1; k <= count_; ++k)
      cumulated_.push_back(sum += std::pow(static_cast<double>(k), -options.zipf));
  }
  std::uint64_t draw(SplitMix64& random) const {
    if (!led_.empty()) return led_[random() % led_.size()];
    if (cumulated_.empty()) return 1 + random() % count_;
    const double at = std::uniform_real_distribution<double>(0, cumulated_.back())(random);
    const auto found = std::lower_bound(cumulated_.begin(), cumulated_.end(), at);
    return std::min<std::uint64_t>(1 + static_cast<std::uint64_t>(found - cumulated_.begin()), count_);
  }

 private:
  std::uint64_t count_;
  std::vector<double> cumulated_;
  std::vector<std::uint64_t> led_;
};

ClientOptions options_of(const LoadOptions& load, unsigned client) {
  ClientOptions options = load.client;
  if (load.client.first_lane)
    options.first_lane = static_cast<std::uint16_t>(*load.client.first_lane + client * load.depth);
  options.lanes = load.depth;
  options.operations = std::bit_ceil(std::max(load.depth, 2U));
  options.seed = load.seed + client + 1;
  return options;
}

/// One client with its operations in flight.
class Worker {
 public:
  Worker(Client client, const LoadOptions& options, const Keys& keys, unsigned number)
      : client_(std::move(client)), options_(options), keys_(keys), random_(options.seed * 1000003 + number) {
    value_.resize(options.value_bytes);
    for (std::byte& byte : value_) byte = static_cast<std::byte>(random_());
    flights_.resize(options.depth);
    free_.resize(options.depth);
    std::iota(free_.begin(), free_.end(), 0U);
    shares_ = std::accumulate(options.mix.begin(), options.mix.end(), 0U);
    if (options.mix[static_cast<std::size_t>(Verb::write_if)] != 0) versions_.resize(options.keys + 1);
  }

  void run(std::uint64_t count_from, std::uint64_t end) {
    count_from_ = count_from;
    while (now_ns() < end) {
      const std::uint64_t began = now_ns();  // they leave together
      while (!free_.empty() && post(began)) {
      }
      (void)client_.wait(std::chrono::milliseconds(10));
      take();
    }
    while (client_.in_flight() > 0) {  // those that began in time count
      (void)client_.wait(std::chrono::milliseconds(10));
      take();
    }
  }

  LoadResult result;

  [[nodiscard]] ClientStatistics statistics() const noexcept { return client_.statistics(); }

 private:
  struct Flight {
    std::uint64_t began = 0, key = 0;
    Verb verb = Verb::read;
  };

  bool post(std::uint64_t began) {
    Flight flight{.began = began, .key = keys_.draw(random_), .verb = draw_verb()};
    const std::uint32_t i = free_.back();
    StatusCode code = StatusCode::kOk;
    switch (flight.verb) {
      case Verb::read:
        code = client_.post_get(flight.key, i);
        break;
      case Verb::write:
        code = client_.post_put(flight.key, value_, i);
        break;
      case Verb::write_if:
        code = client_.post_put_if(flight.key, versions_[flight.key], value_, i);
        break;
    }
    if (code != StatusCode::kOk) return false;
    flights_[i] = flight;
    free_.pop_back();
    return true;
  }

  void take() {
    const std::size_t count = client_.poll(ended_);
    const std::uint64_t now = now_ns();
    for (std::size_t n = 0; n < count; ++n) {
      const Completion& c = ended_[n];
      const Flight& flight = flights_[c.tag];
      if (!versions_.empty() && (c.outcome == Outcome::kOk || c.outcome == Outcome::kVersionMismatch))
        versions_[flight.key] = c.version;
      if (flight.began >= count_from_) {
        VerbResult& verb = result.verbs[static_cast<std::size_t>(flight.verb)];
        ++verb.outcomes[static_cast<std::size_t>(c.outcome)];
        if (c.outcome == Outcome::kOk) verb.latencies.add(now - flight.began);
      }
      free_.push_back(static_cast<std::uint32_t>(c.tag));
    }
  }

  Verb draw_verb() {
    std::uint64_t at = random_() % shares_;
    for (std::size_t verb = 0; verb < kVerbs; ++verb) {
      if (at < options_.mix[verb]) return static_cast<Verb>(verb);
      at -= options_.mix[verb];
    }
    return Verb::read;
  }

  Client client_;
  const LoadOptions& options_;
  const Keys& keys_;
  SplitMix64 random_;
  std::vector<std::byte> value_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_, versions_;
  std::array<Completion, 256> ended_{};
  std::uint64_t shares_ = 0, count_from_ = 0;
};

}  // namespace

wherry::Status fill(const LoadOptions& options) {
  constexpr std::uint32_t kAtOnce = 64;
  ClientOptions with = options.client;
  with.lanes = std::min(options.clients * options.depth, kAtOnce);
  // A long deadline does no harm: nothing is measured yet, and on a busy machine a cluster may lose its leases.
  constexpr std::chrono::minutes kPatience(1);
  with.deadline = std::max<std::chrono::nanoseconds>(with.deadline, kPatience);
  WHERRY_ASSIGN(auto client, Client::connect(with));
  const std::vector<std::byte> value(options.value_bytes, std::byte{1});
  std::array<Completion, kAtOnce> ended;
  std::uint64_t next = 1;
  std::vector<std::uint64_t> again;  // writes that ended unanswered, as all in flight do when lanes are lost
  Deadline patience(kPatience);
  while (next <= options.keys || !again.empty() || client.in_flight() > 0) {
    while (!again.empty() && client.post_put(again.back(), value, again.back()) == StatusCode::kOk) again.pop_back();
    while (next <= options.keys && again.empty() && client.post_put(next, value, next) == StatusCode::kOk) ++next;
    (void)client.wait(std::chrono::milliseconds(10));
    const std::size_t count = client.poll(ended);
    if (count == 0 && client.in_flight() == 0 && patience.passed())
      return {StatusCode::kUnavailable, "no lane to write through for a minute"};
    for (std::size_t n = 0; n < count; ++n) {
      if (ended[n].outcome == Outcome::kOk) {
        patience = Deadline(kPatience);
        continue;
      }
      const bool unanswered = ended[n].outcome == Outcome::kUnknown || ended[n].outcome == Outcome::kNoAnswer;
      if (unanswered && !patience.passed()) {
        again.push_back(ended[n].tag);
        continue;
      }
      return {status_code(ended[n].outcome), fmt::format("writing key {} of {}: {}", ended[n].tag, options.keys,
                                                         Reply{.outcome = ended[n].outcome}.status().message())};
    }
  }
  return {};
}

Result<LoadResult> load(const LoadOptions& options) {
  const Keys keys(options);
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < options.clients; ++i) {
    WHERRY_ASSIGN(auto client, Client::connect(options_of(options, i)));
    workers.push_back(std::make_unique<Worker>(std::move(client), options, keys, i));
  }
  const std::uint64_t from = now_ns() + static_cast<std::uint64_t>(options.warm_up * 1e9);
  const std::uint64_t end = from + static_cast<std::uint64_t>(options.seconds * 1e9);
  std::vector<std::thread> threads;
  for (auto& worker : workers) threads.emplace_back([&worker, from, end] { worker->run(from, end); });
  for (std::thread& thread : threads) thread.join();
  LoadResult all{.seconds = options.seconds};
  for (const auto& worker : workers) {
    for (std::size_t verb = 0; verb < kVerbs; ++verb) {
      all.verbs[verb].latencies.merge(worker->result.verbs[verb].latencies);
      for (std::size_t i = 0; i < kOutcomes; ++i) all.verbs[verb].outcomes[i] += worker->result.verbs[verb].outcomes[i];
    }
    all.statistics += worker->statistics();
  }
  return all;
}

}  // namespace wherry::kv::bench
