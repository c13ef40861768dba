// SPDX-License-Identifier: Apache-2.0
// Offers requests at the rate that a 100 Gbit/s link allows, with preamble, check sequence and gaps. Reports the core's
// share of that rate, and the lost frames.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>

#include "sim/bench.hpp"
#include "sim/bench_rig.hpp"
#include "sim/link.hpp"

namespace wherry::kv::rtl {
namespace {

using nlohmann::json;

constexpr std::size_t kKeys = 1024;
constexpr std::uint16_t kLanes = 2048;
constexpr Cycles kRepeat = 2500;            ///< until a leader sends a write again that was not answered
constexpr Cycles kRoundTrip = 250;          ///< from a `replicate` to its answer, on the wires and in the other node
constexpr std::size_t kReceiveBuffer = 32;  ///< frames that may wait for the core; the next is lost
constexpr double kCyclesPerSecond = 1e9 / kCycleNs;

struct Workload {
  const char* name;
  std::uint32_t reads;  ///< in a hundred requests; the others are writes
  bool replica;         ///< writes are a leader's `replicate` frames, else clients'
  bool follows;         ///< writes of clients go to one follower, too
  /// The leader answers each `replicated` with a `commit`. In workloads without reads, it also keeps a Window.
  bool commits;
};
constexpr Workload kWorkloads[] = {
    {"read", 100, false, false, false},
    {"replica_write", 0, true, false, false},
    {"replica_write, with commits", 0, true, false, true},
    {"leader_write", 0, false, true, false},
    {"leader_write, no follower", 0, false, false, false},
    {"90 % read, 10 % replica_write", 90, true, false, true},
    {"50 % read, 50 % replica_write", 50, true, false, true},
    {"90 % read, 10 % leader_write", 90, false, true, false},
    {"50 % read, 50 % leader_write", 50, false, true, false},
};

/// Bytes that a hundred requests put on each direction of the link.
struct Load {
  std::size_t in;
  std::size_t out;
};
Load load_of(const Workload& w, std::size_t size) {
  const std::size_t plain = wire_bytes(kHeaderBytes), full = wire_bytes(kHeaderBytes + size);
  const std::size_t writes = 100 - w.reads;
  Load load{.in = w.reads * plain + writes * full, .out = w.reads * full + writes * plain};
  if (w.follows) {  // replicate and commit out, replicated in
    load.in += writes * plain;
    load.out += writes * (full + plain);
  }
  if (w.commits) load.in += writes * plain;
  return load;
}

/// A leader's writes in flight. The leader reuses a place only after it has committed the write there, and repeats
/// unanswered messages.
class Window {
 public:
  Window() {
    for (std::uint8_t place = 0; place < kPlaces; ++place) free_.push({0, place});
  }

  [[nodiscard]] bool has_room(Cycles now) const { return !free_.empty() && free_.front().from <= now; }
  std::uint8_t take() {
    const std::uint8_t place = free_.front().place;
    free_.pop();
    return place;
  }

  void sent(Cycles now, const Kv& header) {
    waiting_[header.detail % kPlaces] = header;
    repeats_.push({now + kRepeat, header});
  }
  [[nodiscard]] bool waits_for(const Kv& header) const {
    const std::optional<Kv>& write = waiting_[header.detail % kPlaces];
    return write && write->client == header.client && write->request == header.request;
  }

  void answered(const Kv& header, Cycles commit) {
    if (!waits_for(header)) return;
    const auto place = static_cast<std::uint8_t>(header.detail % kPlaces);
    waiting_[place].reset();
    free_.push({commit, place});
  }
  void repeat(Cycles now, const std::function<void(const Kv&)>& send) {
    for (; !repeats_.empty() && repeats_.front().at <= now; repeats_.pop()) {
      const Kv header = repeats_.front().header;
      if (!waits_for(header)) continue;
      send(header);
      repeats_.push({now + kRepeat, header});
    }
  }

 private:
  struct Free {
    Cycles from;
    std::uint8_t place;
  };
  struct Repeat {
    Cycles at;
    Kv header;
  };

  std::queue<Free> free_;
  std::array<std::optional<Kv>, kPlaces> waiting_;
  std::queue<Repeat> repeats_;
};

class Run {
 public:
  Run(const Workload& workload, std::size_t size, std::size_t operations)
      : workload_(workload),
        value_(value_of(size)),
        operations_(operations),
        rig_({.nodes = workload.replica || workload.follows ? 2U : 1U,
              .leader = workload.replica ? 1U : 0U,
              .accept = true,
              .line_rate = true}),
        keys_(Rig::keys(kKeys)) {
    if (workload.commits && workload.reads == 0) window_.emplace();
  }

  json measure() {
    preload();
    const Load load = load_of(workload_, value_.size());
    const double spacing =
        static_cast<double>(std::max(load.in, load.out)) / (100.0 * static_cast<double>(kLinkBytesPerCycle));
    Core& core = rig_.core();
    const Cycles begin = core.now();
    const std::size_t warm = operations_ / 5;
    Cycles measured_from = 0, measured_to = 0;
    std::size_t offered = 0;
    // Runs on after the last request, so that the last answer can arrive.
    for (Cycles quiet = 0; quiet < 20'000; quiet = offered < operations_ ? 0 : quiet + 1) {
      const double now = static_cast<double>(core.now());
      while (offered < operations_ && static_cast<double>(begin) + static_cast<double>(offered) * spacing <= now &&
             (!window_ || window_->has_room(core.now()))) {
        request(offered++);
        if (offered == warm) measured_from = core.now();
        if (offered == operations_) measured_to = core.now();
      }
      if (window_) window_->repeat(core.now(), [&](const Kv& header) { push(core.now(), Rig::node(1), header, true); });
      arrive(core.now());
      core.step();
      rig_.collect([&](const Sent& sent) { take(sent, measured_from, measured_to); });
    }
    const double limit = kCyclesPerSecond / spacing;
    const double rate =
        static_cast<double>(answered_in_window_) / static_cast<double>(measured_to - measured_from) * kCyclesPerSecond;
    return {{"workload", workload_.name},
            {"size", value_.size()},
            {"per_second", rate},
            {"limit_per_second", limit},
            {"share", std::min(rate / limit, 1.0)},
            {"lost", operations_ - std::min(operations_, answered_)}};
  }

 private:
  struct Arrival {
    Cycles at;
    std::uint64_t sequence;
    Endpoint from;
    Kv header;
    bool with_value;
    friend bool operator<(const Arrival& a, const Arrival& b) {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };

  /// Puts all lines into the cache. Not if nothing commits: each place would keep a note of such a write.
  void preload() {
    if (workload_.reads == 0 && !workload_.commits) return;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::size_t before = answered_;
      write(i, 0);
      for (int waited = 0; answered_ == before; ++waited) {
        if (waited == 10'000) give_up("a write before the measurement was not answered");
        arrive(rig_.core().now());
        rig_.core().step();
        rig_.collect([&](const Sent& sent) { take(sent, 0, 0); });
      }
    }
    rig_.settle();
    writes_.assign(keys_.size(), 1);
    answered_ = answered_in_window_ = 0;
  }

  /// Version `round` + 1 of a key. Successive writes use different lanes.
  void write(std::size_t index, std::uint32_t round) {
    const std::uint64_t key = keys_[index % keys_.size()];
    const std::uint32_t number = ++written_;
    Kv header{.kind = static_cast<std::uint8_t>(Kind::write),
              .epoch = Rig::kEpoch,
              .client = static_cast<std::uint16_t>(number % kLanes),
              .request = number / kLanes + 1,
              .key = key};
    if (workload_.replica) {
      header.kind = static_cast<std::uint8_t>(Kind::replicate);
      header.node = 1;
      header.version = round + 1;
      const std::uint32_t place = window_ ? window_->take() : number % kPlaces;
      header.detail = node_detail(first_way_of(hash_of(key)), place);
      header.candidate = first_candidate(key);
      if (window_) window_->sent(rig_.core().now(), header);
    }
    push(rig_.core().now(), workload_.replica ? Rig::node(1) : Rig::client(), header, true);
  }

  void request(std::size_t index) {
    // Mixes reads and writes evenly: 37 and 100 have no common divisor.
    if (index * 37 % 100 >= workload_.reads) {
      const std::size_t key = next_key_++ % keys_.size();
      if (writes_.size() != keys_.size()) writes_.resize(keys_.size());
      return write(key, writes_[key]++);
    }
    push(rig_.core().now(), Rig::client(),
         {.kind = static_cast<std::uint8_t>(Kind::read),
          .request = static_cast<std::uint32_t>(index),
          .key = keys_[(index * 7 + keys_.size() / 2) % keys_.size()]},
         false);
  }

  void push(Cycles at, const Endpoint& from, const Kv& header, bool with_value) {
    arrivals_.push({at, sequence_++, from, header, with_value});
  }

  /// The link delivers one frame after another to the core.
  void arrive(Cycles now) {
    while (!arrivals_.empty() && link_free_ <= static_cast<double>(now) && arrivals_.top().at <= now) {
      const Arrival a = arrivals_.top();
      arrivals_.pop();
      const ByteView value = a.with_value ? ByteView(value_) : ByteView();
      link_free_ =
          std::max(link_free_, static_cast<double>(a.at)) +
          static_cast<double>(wire_bytes(kHeaderBytes + value.size())) / static_cast<double>(kLinkBytesPerCycle);
      if (rig_.core().waiting(Side::kNet) < kReceiveBuffer)
        rig_.put(a.from, a.header, value, static_cast<Cycles>(std::ceil(link_free_)));
    }
  }

  void answer_for_others(const Sent& sent) {
    const auto kind = static_cast<Kind>(sent.header.kind);
    Kv answer = sent.header;
    if (kind == Kind::replicated && workload_.commits) {  // without them reads would find the bucket pending
      const Cycles at = sent.last + kRoundTrip;
      answer.kind = static_cast<std::uint8_t>(Kind::commit);
      answer.node = 1;
      push(at, sent.to, answer, false);
      if (window_) window_->answered(answer, at);
    }
    if (kind != Kind::replicate) return;
    answer.kind = static_cast<std::uint8_t>(Kind::replicated);
    answer.node = static_cast<std::uint8_t>(sent.to.ip - Rig::node(0).ip);
    push(sent.last + kRoundTrip, sent.to, answer, false);
  }

  void take(const Sent& sent, Cycles from, Cycles to) {
    const auto kind = static_cast<Kind>(sent.header.kind);
    const bool once_more = window_ && kind == Kind::replicated && !window_->waits_for(sent.header);
    answer_for_others(sent);
    if (once_more) return;
    const bool reply = kind == Kind::read_done || kind == Kind::write_done;
    if (!reply && kind != Kind::replicated) return;
    ++answered_;
    if (reply && status_of(sent.header) != Status::ok) return;  // busy, pending: not lost, but no use
    if (kind == Kind::read_done && sent.bytes != kHeaderBytes + value_.size()) return;
    if (from != 0 && sent.last >= from && (to == 0 || sent.last < to)) ++answered_in_window_;
  }

  Workload workload_;
  std::vector<std::byte> value_;
  std::size_t operations_;
  Rig rig_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> writes_;  ///< of each key
  std::priority_queue<Arrival> arrivals_;
  std::optional<Window> window_;  ///< the leader's
  std::uint64_t sequence_ = 0;
  double link_free_ = 0;
  std::uint32_t written_ = 0;
  std::size_t next_key_ = 0;
  std::size_t answered_ = 0;
  std::size_t answered_in_window_ = 0;
};

}  // namespace

json measure_rates(bool quick) {
  json rows = json::array();
  for (const Workload& workload : kWorkloads)
    for (const std::size_t size : {std::size_t{64}, std::size_t{1024}})
      rows.push_back(Run(workload, size, quick ? 2000 : 20'000).measure());
  return rows;
}

}  // namespace wherry::kv::rtl
