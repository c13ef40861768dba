// SPDX-License-Identifier: Apache-2.0
// For tests: nodes and a network between them, in virtual time. Frames may be lost, repeated or delayed at random, or
// dropped by a test's rule. The seed determines everything.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "kv/node/any_node_testing.hpp"
#include "kv/node/table_testing.hpp"

namespace wherry::kv::testing {

struct Frame {
  Endpoint from;
  Endpoint to;
  Kv header;
  std::vector<std::byte> value;

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(header.kind); }
  [[nodiscard]] Status status() const { return status_of(header); }
};

struct Weather {
  double loss = 0;
  double repeat = 0;
  Cycles shortest = 500;
  Cycles longest = 500;
  double late = 0;  ///< share of frames that take up to twenty times as long
};

/// The configuration that the keeper publishes.
struct Plan {
  std::uint32_t epoch = 0;
  std::uint8_t members = 0;
  std::uint8_t serving = 0;
  std::array<std::uint8_t, kSlots> leaders{};

  void lead_all(unsigned node) { leaders.fill(static_cast<std::uint8_t>(node)); }
};

inline Endpoint node_at(unsigned node) { return {.ip = 0x0a000001 + node, .port = kUdpPort}; }
inline Endpoint client_at(unsigned client) { return {.ip = 0x0b000001 + client, .port = 4000}; }

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* at = reinterpret_cast<const std::byte*>(text.data());
  return {at, at + text.size()};
}

class Cluster {
 public:
  static constexpr unsigned kBucketBits = 8;  ///< so a key has one bucket, unless a test says otherwise
  static constexpr Cycles kRetry = 10'000;

  Cluster(unsigned nodes, NodeOptions options, Weather weather = {}, std::uint64_t seed = 1,
          unsigned bucket_bits = kBucketBits, NodeFaults faults = {})
      : bucket_bits_(bucket_bits),
        options_(options),
        faults_(faults),
        weather_(weather),
        random_(seed),
        ports_(nodes),
        nodes_(nodes),
        due_(nodes, kNever) {
    for (unsigned i = 0; i < nodes; ++i) {
      ports_[i].cluster = this;
      ports_[i].self = node_at(i);
      restart(i);
    }
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Starts node `i` again: empty, and in no epoch.
  void restart(unsigned i) {
    nodes_[i] = make_node(options_, ports_[i], faults_);
    AnyNode& n = *nodes_[i];
    n.set_now(now);
    n.write(registers::kBucketBitsOffset, bucket_bits_);
    n.write(registers::kRetryCyclesOffset, kRetry);
    n.write(registers::kControlOffset, registers::kControlEnable.mask() | registers::kControlClearTable.mask());
    due_[i] = kNever;
  }
  void kill(unsigned i) { nodes_[i].reset(); }
  [[nodiscard]] bool alive(unsigned i) const { return nodes_[i] != nullptr; }
  [[nodiscard]] AnyNode& node(unsigned i) { return *nodes_[i]; }
  [[nodiscard]] unsigned size() const { return static_cast<unsigned>(nodes_.size()); }

  void enter(unsigned i, const Plan& plan) {
    AnyNode& n = *nodes_[i];
    n.set_now(now);
    n.write(registers::kNodeOffset, i);
    n.write(registers::kMembersOffset,
            registers::kMembersAll.set(0, plan.members) | registers::kMembersServing.set(0, plan.serving));
    for (unsigned word = 0; word < registers::kLeaderCount; ++word) {
      std::uint32_t value = 0;
      for (unsigned k = 0; k < 8; ++k) value |= std::uint32_t{plan.leaders[8 * word + k]} << 4 * k;
      n.write(registers::leader_offset(word), value);
    }
    for (unsigned p = 0; p < size(); ++p) {
      n.write(registers::peer_ip_offset(p), node_at(p).ip);
      n.write(registers::peer_port_offset(p), node_at(p).port);
    }
    n.write(registers::kEpochOffset, plan.epoch);
    due_[i] = n.tick(now);
  }
  void lease(unsigned i, Cycles end) {
    nodes_[i]->set_now(now);
    nodes_[i]->write(registers::lease_offset(0), static_cast<std::uint32_t>(end));
    nodes_[i]->write(registers::lease_offset(1), static_cast<std::uint32_t>(end >> 32));
  }
  /// All live nodes enter the epoch, with leases that never end.
  void enter_all(const Plan& plan) {
    for (unsigned i = 0; i < size(); ++i) {
      if (!alive(i)) continue;
      lease(i, kNever);
      if ((plan.members >> i & 1) != 0) enter(i, plan);
    }
  }

  /// Call it after a write to a node's registers, because the node may have work at once.
  void wake(unsigned i) { due_[i] = nodes_[i]->tick(now); }

  void send(const Endpoint& from, const Endpoint& to, const Message& message) {
    Frame frame{from, to, message.header, {message.value.begin(), message.value.end()}};
    if (drop && drop(frame)) return;
    std::uniform_real_distribution<double> chance(0, 1);
    const unsigned copies = chance(random_) < weather_.repeat ? 2 : 1;
    for (unsigned i = 0; i < copies; ++i) {
      if (chance(random_) < weather_.loss) continue;
      Cycles delay = std::uniform_int_distribution<Cycles>(weather_.shortest, weather_.longest)(random_);
      if (chance(random_) < weather_.late) delay *= std::uniform_int_distribution<Cycles>(1, 20)(random_);
      queue_.emplace(std::pair{now + delay, ++sequence_}, frame);
    }
  }

  /// The time of the next event in the simulation.
  [[nodiscard]] Cycles next() const {
    Cycles at = queue_.empty() ? kNever : queue_.begin()->first.first;
    for (const Cycles due : due_) at = std::min(at, due);
    return at;
  }
  /// Runs the events up to the time `until`. Frames to clients go to on_client.
  void run(Cycles until) {
    for (Cycles at = next(); at <= until; at = next()) {
      now = std::max(now, at);
      for (unsigned i = 0; i < size(); ++i)
        if (due_[i] <= now) due_[i] = alive(i) ? nodes_[i]->tick(now) : kNever;
      if (queue_.empty() || queue_.begin()->first.first > now) continue;
      const Frame frame = std::move(queue_.begin()->second);
      queue_.erase(queue_.begin());
      deliver(frame);
    }
    now = std::max(now, until);
  }
  void settle() { run(now + 100 * kRetry); }

  /// Sends one request and waits. Returns the answer, if one comes within a few retries.
  std::optional<Frame> call(unsigned node, const Kv& request, const std::vector<std::byte>& value = {},
                            unsigned client = 0) {
    std::optional<Frame> answer;
    on_client = [&](const Frame& frame) {
      if (frame.to == client_at(client) && frame.header.request == request.request &&
          frame.header.kind == (request.kind | kReplyBit))
        answer = frame;
    };
    send(client_at(client), node_at(node), {request, value});
    for (const Cycles end = now + 5 * kRetry; !answer && now < end;) run(now + 100);
    on_client = nullptr;
    return answer;
  }

  Cycles now = 1000;
  std::function<bool(const Frame&)> drop;
  std::function<void(const Frame&)> on_client;
  std::function<void(const Frame&)> seen;  ///< every frame that arrives

 private:
  struct Port final : Output {
    Cluster* cluster = nullptr;
    Endpoint self;
    void send(const Endpoint& to, const Message& message) override { cluster->send(self, to, message); }
  };

  void deliver(const Frame& frame) {
    if (seen) seen(frame);
    for (unsigned i = 0; i < size(); ++i) {
      if (!(frame.to == node_at(i))) continue;
      if (!alive(i)) return;
      nodes_[i]->receive(frame.from, {frame.header, frame.value}, now);
      due_[i] = nodes_[i]->tick(now);
      return;
    }
    if (on_client) on_client(frame);
  }

  unsigned bucket_bits_;
  NodeOptions options_;
  NodeFaults faults_;
  Weather weather_;
  std::mt19937_64 random_;
  std::vector<Port> ports_;
  std::vector<std::unique_ptr<AnyNode>> nodes_;
  std::vector<Cycles> due_;
  std::map<std::pair<Cycles, std::uint64_t>, Frame> queue_;
  std::uint64_t sequence_ = 0;
};

inline std::uint32_t bucket_of_key(std::uint64_t key, unsigned bits = Cluster::kBucketBits) {
  return bucket_of(hash_of(key), bits);
}

/// `count` keys whose first bucket is `bucket`, in a table of 2^bits buckets.
inline std::vector<std::uint64_t> keys_of_one_bucket(std::uint32_t bucket, std::size_t count,
                                                     unsigned bits = Cluster::kBucketBits) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 1; keys.size() < count; ++key)
    if (bucket_of_key(key, bits) == bucket) keys.push_back(key);
  return keys;
}

}  // namespace wherry::kv::testing
