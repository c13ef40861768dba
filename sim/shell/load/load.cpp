// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/load.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "sim/pcie/fabric.hpp"
#include "sim/shell/load/adapter.hpp"
#include "sim/shell/load/memory_engines.hpp"
#include "sim/shell/load/mover.hpp"
#include "sim/shell/load/stream_engines.hpp"
#include "sim/shell/qdma.hpp"

namespace wherry::sim::shell::load {
namespace {

constexpr std::uint64_t kRings = 0x100000, kNotices = 0x1000000, kHostBuffers = 0x4000000;
constexpr std::uint64_t kStride = 8192;  ///< from buffer to buffer
constexpr Time kAfter = 20 * pcie::kMicrosecond;

double ns(Time time) { return static_cast<double>(time) / pcie::kNanosecond; }

bool to_host(Path path) { return path == Path::kWireToHost || path == Path::kHbmToHost; }
bool to_card(Path path) { return path == Path::kWireToHbm || path == Path::kHostToHbm; }
bool has_notice(Path path) { return path != Path::kWireToHbm && path != Path::kHbmToWire; }

class Bed final : pcie::MemoryWatcher {
 public:
  explicit Bed(const LoadOptions& options);
  LoadFound run();

 private:
  void offer_all();
  void offer(Packet& packet);
  void send(Packet& packet);
  void post(Packet& packet);
  void post_waiting(RingKind kind, std::uint32_t queue);
  void post_buffer(std::uint32_t queue);
  void on_memory_write(std::uint64_t address, std::uint32_t bytes) override;
  [[nodiscard]] std::uint64_t wrong(const Packet& packet);
  [[nodiscard]] FlowFound found_of(std::uint32_t flow) const;
  [[nodiscard]] bool over() const;

  LoadOptions options_;
  Parameters p_;
  Limits limits_;
  std::vector<Packet> packets_;
  std::vector<Time> flow_end_;
  pcie::EventQueue queue_;
  pcie::Fabric fabric_;
  kv::rtl::HbmContent content_;
  Requests requests_;
  CardSwitch card_;
  Descriptors descriptors_;
  Notices notices_;
  AdapterOut adapter_out_;
  Feeder host_feeder_, mover_feeder_;
  C2hStream c2h_stream_;
  H2cStream h2c_stream_;
  H2cMemory h2c_memory_;
  C2hMemory c2h_memory_;
  MoverWrite mover_write_;
  MoverRead mover_read_;
  AdapterIn adapter_in_;
  std::vector<std::vector<std::deque<Packet*>>> backlog_;  ///< of the host's software, by kind and queue
  std::vector<Packet*> owners_;                            ///< of the host's buffers
  Time wire_free_ = 0;
  bool built_ = false;
};

pcie::FabricOptions fabric_of(const Parameters& p, std::uint64_t seed) {
  pcie::FabricOptions options{.mps = p.mps, .mrrs = p.mrrs, .seed = seed};
  options.root.memory_latency = 0;
  options.root.completion_bytes = p.completion;
  options.root.rcb = p.completion < 128 ? 64 : 128;
  return options;
}

const Clock& store_clock(const Parameters& p) { return p.second_store == kCmacStore ? kCmacClock : kShellClock; }

Bed::Bed(const LoadOptions& options)
    : options_(options),
      p_(options.parameters),
      limits_(options.limits),
      fabric_(queue_, fabric_of(p_, options.seed)),
      requests_(queue_),
      card_(queue_, content_, p_),
      descriptors_(p_, limits_, requests_, fabric_.memory(), kRings),
      notices_(queue_, p_, limits_, requests_, fabric_.memory(), packets_, kNotices),
      adapter_out_(queue_, p_, limits_),
      host_feeder_(queue_, adapter_out_, 0, kShellClock, kShellClock.cycles(p_.box)),
      mover_feeder_(queue_, adapter_out_, 1, store_clock(p_),
                    p_.second_store == kNoStore ? kShellClock.cycles(p_.box) : 0),
      c2h_stream_(queue_, p_, limits_, requests_, descriptors_, notices_),
      h2c_stream_(queue_, p_, limits_, requests_, descriptors_, notices_, host_feeder_),
      h2c_memory_(queue_, p_, limits_, requests_, descriptors_, notices_, card_),
      c2h_memory_(queue_, p_, limits_, requests_, descriptors_, notices_, card_),
      mover_write_(queue_, p_, limits_, card_),
      mover_read_(queue_, p_, limits_, card_, mover_feeder_),
      adapter_in_(queue_, p_, limits_,
                  [this](Packet& packet) -> PartSink& {
                    if (packet.path == Path::kWireToHost) return c2h_stream_;
                    return mover_write_;
                  }),
      backlog_(static_cast<std::size_t>(RingKind::kCount), std::vector<std::deque<Packet*>>(limits_.queues)) {
  // As in the unloaded testbench (bed.cpp): half of the flight is the link's, half the hard block's.
  const Time flight = kShellClock.cycles(p_.flight);
  const pcie::NodeId slot =
      fabric_
          .add_endpoint(pcie::kRoot, {.generation = 3, .lanes = 16, .propagation = flight / 2},
                        {.receive_latency = flight - flight / 2, .send_latency = flight - flight / 2})
          .value();
  pcie::Port* const port =
      fabric_.add_function(slot, requests_, {.name = "qdma", .mrrs = p_.mrrs, .queue_bytes = limits_.link_ahead})
          .value();
  built_ = fabric_.enumerate().ok();
  port->set_bus_master(true);
  requests_.start(*port);
  c2h_stream_.on_room = mover_write_.on_room = [this] { adapter_in_.pump(); };
  c2h_stream_.placed = [this](Packet& packet) { owners_[(packet.host - kHostBuffers) / kStride] = &packet; };
  adapter_out_.sent = [this](Packet& packet) { packet.done = queue_.now(); };
  descriptors_.on_space = [this](RingKind kind, std::uint32_t queue) {
    if (kind == RingKind::kC2hStream) {
      post_buffer(queue);
    } else {
      post_waiting(kind, queue);
    }
  };
}

/// Makes all packets with their times, buffers and bytes. A flow's packets come as a Poisson process, or regularly.
void Bed::offer_all() {
  double total = 0;
  for (const Flow& flow : options_.flows) total += flow.gbytes_per_s / flow.bytes;
  for (std::uint32_t f = 0; f < options_.flows.size(); ++f) {
    const Flow& flow = options_.flows[f];
    const double share = flow.gbytes_per_s / flow.bytes / total;
    const auto count = std::max(1U, static_cast<std::uint32_t>(std::lround(share * options_.packets)));
    const double interval = 1000.0 * flow.bytes / flow.gbytes_per_s;  // ps
    SplitMix64 random(splitmix64(options_.seed, f));
    double at = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      Packet packet;
      packet.flow = f;
      packet.bytes = flow.bytes;
      packet.path = flow.path;
      packet.queue = random.below(limits_.queues);
      packet.offered = static_cast<Time>(at);
      packets_.push_back(packet);
      const double chance = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;  // above 0, at most 1
      at += options_.regular ? interval : -std::log(chance) * interval;
    }
  }
  flow_end_.assign(options_.flows.size(), 0);
  std::stable_sort(packets_.begin(), packets_.end(),
                   [](const Packet& a, const Packet& b) { return a.offered < b.offered; });
  std::vector<std::byte> data;
  for (std::uint32_t id = 0; id < packets_.size(); ++id) {
    Packet& packet = packets_[id];
    packet.id = id;
    flow_end_[packet.flow] = std::max(flow_end_[packet.flow], packet.offered);
    packet.card = id * kStride + p_.card_offset;
    packet.host = kHostBuffers + id * kStride + p_.host_offset;
    data.resize(packet.bytes);
    fill(id, 0, data);
    if (packet.path == Path::kHostToWire || packet.path == Path::kHostToHbm) fabric_.memory().write(packet.host, data);
    for (std::uint32_t i = 0; (packet.path == Path::kHbmToWire || packet.path == Path::kHbmToHost) && i < packet.bytes;
         i += kv::rtl::kHbmBeatBytes) {
      kv::rtl::HbmBeat beat;
      std::memcpy(beat.data(), data.data() + i, sizeof beat);
      content_.write(packet.card + i, beat);
    }
    owners_.push_back(packet.path == Path::kHbmToHost ? &packet : nullptr);
    queue_.call(packet.offered, [this, &packet] { offer(packet); });
  }
}

void Bed::offer(Packet& packet) {
  switch (packet.path) {
    case Path::kWireToHost:
    case Path::kWireToHbm:
      return send(packet);
    case Path::kHbmToWire:
      return mover_read_.command(packet);
    case Path::kHostToWire:
      backlog_[static_cast<std::size_t>(RingKind::kH2cStream)][packet.queue].push_back(&packet);
      return post_waiting(RingKind::kH2cStream, packet.queue);
    case Path::kHostToHbm:
      backlog_[static_cast<std::size_t>(RingKind::kH2cMemory)][packet.queue].push_back(&packet);
      return post_waiting(RingKind::kH2cMemory, packet.queue);
    case Path::kHbmToHost:
      backlog_[static_cast<std::size_t>(RingKind::kC2hMemory)][packet.queue].push_back(&packet);
      return post_waiting(RingKind::kC2hMemory, packet.queue);
  }
}

/// The network's side: sends a frame when the wire is free, a beat in each CMAC cycle.
void Bed::send(Packet& packet) {
  const Time begin = std::max(queue_.now(), wire_free_);
  wire_free_ = begin + std::int64_t{8000} * (packet.bytes + limits_.wire_overhead) / limits_.wire_gbits;
  const Time first = kCmacClock.edge(begin);
  for (std::uint32_t i = 0; i * kBeatBytes < packet.bytes; ++i)
    queue_.call(kCmacClock.edge(first + kCmacClock.cycles(i + 1)),
                [this, &packet, i] { adapter_in_.part({&packet, i}); });
}

void Bed::post_waiting(RingKind kind, std::uint32_t queue) {
  std::deque<Packet*>& waiting = backlog_[static_cast<std::size_t>(kind)][queue];
  while (!waiting.empty() && !descriptors_.full(kind, queue)) {
    Packet& packet = *waiting.front();
    std::array<std::byte, kMemoryDescriptor> descriptor{};
    const auto put = [&](std::size_t at, std::uint64_t value, std::size_t size) {
      std::memcpy(descriptor.data() + at, &value, size);
    };
    const bool card_to_host = kind == RingKind::kC2hMemory;
    if (kind == RingKind::kH2cStream) {
      put(4, packet.bytes, 2);
      put(8, packet.host, 8);
    } else {
      put(0, card_to_host ? packet.card : packet.host, 8);
      put(8, packet.bytes, 4);
      put(16, card_to_host ? packet.host : packet.card, 8);
    }
    // The engines identify a packet by its place in the queue's order.
    waiting.pop_front();
    if (kind == RingKind::kH2cStream) h2c_stream_.expect(packet);
    if (kind == RingKind::kH2cMemory) h2c_memory_.expect(packet);
    if (card_to_host) c2h_memory_.expect(packet);
    descriptors_.post(kind, queue, std::span(descriptor).first(Descriptors::size_of(kind)));
  }
}

/// Posts an empty buffer for a packet from the network.
void Bed::post_buffer(std::uint32_t queue) {
  const std::uint64_t address = kHostBuffers + owners_.size() * kStride + p_.host_offset;
  owners_.push_back(nullptr);
  descriptors_.post(RingKind::kC2hStream, queue, std::as_bytes(std::span(&address, 1)));
}

void Bed::on_memory_write(std::uint64_t address, std::uint32_t bytes) {
  Packet& packet = *owners_[(address - kHostBuffers) / kStride];
  packet.arrived += bytes;
  if (packet.arrived == packet.bytes) packet.done = queue_.now();
  if (packet.path == Path::kHbmToHost) c2h_memory_.host_has(packet);
}

bool Bed::over() const {
  return std::ranges::all_of(packets_, [](const Packet& packet) {
    return packet.dropped || (packet.done != pcie::kNever && (!has_notice(packet.path) || packet.told != pcie::kNever));
  });
}

LoadFound Bed::run() {
  packets_.reserve(options_.packets + options_.flows.size());
  offer_all();
  fabric_.memory().watch(kHostBuffers, std::uint64_t{2} << 30, *this);
  const bool to_queues = std::ranges::any_of(options_.flows, [](const Flow& f) { return f.path == Path::kWireToHost; });
  for (std::uint32_t i = 0; to_queues && i < limits_.queues * limits_.ring; ++i) post_buffer(i % limits_.queues);
  const Time end = *std::ranges::max_element(flow_end_);
  for (Time until = end + kAfter; queue_.next() != pcie::kNever && !over(); until += kAfter) queue_.run(until);
  LoadFound found;
  for (std::uint32_t f = 0; f < options_.flows.size(); ++f) found.flows.push_back(found_of(f));
  Time last = 0;
  for (const Packet& packet : packets_) {
    found.wrong += packet.dropped ? 0 : wrong(packet);
    if (packet.dropped || packet.done == pcie::kNever) continue;
    last = std::max(last, packet.done);
  }
  found.duration_ns = ns(last);
  found.adapter_received = adapter_in_.received;
  found.adapter_dropped = adapter_in_.dropped;
  found.adapter_most = adapter_in_.most;
  found.fetches = descriptors_.fetches;
  found.descriptors = descriptors_.fetched;
  found.entries = notices_.entries;
  found.statuses = notices_.statuses;
  found.interrupts = notices_.interrupts;
  found.broken = card_.violation();
  if (found.broken.empty() && !over()) found.broken = "a packet is neither over nor dropped";
  if (found.broken.empty() && !built_) found.broken = "the fabric was not enumerated";
  found.wrong += (found.broken.empty() ? 0 : 1) + requests_.failed + notices_.wrong;
  return found;
}

std::uint64_t Bed::wrong(const Packet& packet) {
  std::vector<std::byte> there(packet.bytes);
  if (to_host(packet.path)) {
    fabric_.memory().read(packet.host, there);
  } else if (to_card(packet.path)) {
    for (std::uint32_t i = 0; i < packet.bytes; i += kv::rtl::kHbmBeatBytes) {
      const kv::rtl::HbmBeat beat = content_.read(packet.card + i);
      std::memcpy(there.data() + i, beat.data(), sizeof beat);
    }
  } else {
    fill(packet.id, 0, there);  // compared on the way to the network
  }
  return packet.wrong + differing(packet.id, 0, there);
}

FlowFound Bed::found_of(std::uint32_t flow) const {
  FlowFound found{.flow = options_.flows[flow]};
  const Time end = flow_end_[flow], begin = end / 5;
  std::vector<double> times;
  double told = 0;
  std::uint64_t offered = 0, delivered = 0;
  for (const Packet& packet : packets_) {
    if (packet.flow != flow) continue;
    ++found.offered;
    found.dropped += packet.dropped ? 1 : 0;
    const bool there = !packet.dropped && packet.done != pcie::kNever;
    found.delivered += there ? 1 : 0;
    if (there && packet.done > begin && packet.done <= end) ++delivered;
    if (packet.offered < begin) continue;
    ++offered;
    if (!there) continue;
    times.push_back(ns(packet.done - packet.offered));
    if (has_notice(packet.path)) told += ns(packet.told - packet.offered);
  }
  found.gbytes_per_s = end == begin ? 0 : static_cast<double>(delivered * found.flow.bytes) / ns(end - begin);
  found.saturated = static_cast<double>(delivered) < 0.97 * static_cast<double>(offered);
  if (times.empty()) return found;
  std::ranges::sort(times);
  const auto count = static_cast<double>(times.size());
  for (const double time : times) found.mean_ns += time / count;
  found.told_ns = told / count;
  const auto place = [&](double share) { return times[static_cast<std::size_t>(share * (count - 1))]; };
  found.p50_ns = place(0.5);
  found.p99_ns = place(0.99);
  found.most_ns = times.back();
  return found;
}

}  // namespace

LoadFound run(const LoadOptions& options) { return std::make_unique<Bed>(options)->run(); }

}  // namespace wherry::sim::shell::load
