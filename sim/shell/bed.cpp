// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/bed.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "sim/pcie/fabric.hpp"
#include "sim/shell/data_mover.hpp"
#include "sim/shell/qdma.hpp"

namespace wherry::sim::shell {
namespace {

constexpr std::uint64_t kRing = 0x10000, kHostBuffer = 0x200000, kCardBuffer = 0x400000;
constexpr Time kLongEnough = 100 * pcie::kMicrosecond;

double ns(Time time) { return static_cast<double>(time) / pcie::kNanosecond; }

pcie::FabricOptions fabric_of(const Parameters& p) {
  pcie::FabricOptions options{.mps = p.mps, .mrrs = p.mrrs};
  // The testbench's memory answers at once, because its latency is part of `flight`. It cuts completions to one size.
  options.root.memory_latency = 0;
  options.root.completion_bytes = p.completion;
  options.root.rcb = p.completion < 128 ? 64 : 128;
  return options;
}

/// Half of the flight is the link and the root's port, half the card's hard block; the split has no effect.
pcie::LinkOptions link_of(const Parameters& p) {
  return {.generation = 3, .lanes = 16, .propagation = kShellClock.cycles(p.flight) / 2};
}
pcie::EndpointOptions endpoint_of(const Parameters& p) {
  const Time half = kShellClock.cycles(p.flight) - kShellClock.cycles(p.flight) / 2;
  return {.receive_latency = half, .send_latency = half};
}

kv::rtl::HbmTiming timing_of(const Parameters& p) { return {.read = p.hbm_read, .write = p.hbm_write}; }

class Bed final : pcie::MemoryWatcher {
 public:
  Bed(Path path, std::uint32_t bytes, const Parameters& parameters)
      : p_(parameters),
        path_(path),
        host_(kHostBuffer + p_.host_offset),
        card_(kCardBuffer + p_.card_offset),
        fabric_(queue_, fabric_of(p_)),
        requester_(queue_, trace_, p_.mrrs),
        by_mover_(path == Path::kWireToHbm || path == Path::kHbmToWire),
        memory_(queue_, trace_, content_, timing_of(p_), by_mover_ ? p_.mover_read_route : 0,
                by_mover_ ? 0 : p_.qdma_write_route),
        // To the network: box, packet adapter, and the parts before them.
        wire_out_(queue_, trace_, Place::kWireOut, wire_),
        adapter_out_(queue_, kCmacClock, kCmacClock.cycles(p_.tx), wire_out_),
        second_(queue_, p_.second_store == kShellStore ? kShellClock : kCmacClock, 0, adapter_out_),
        box_out_(queue_, trace_, Place::kBoxOut,
                 by_mover_ && p_.second_store != kNoStore ? static_cast<Sink&>(second_) : adapter_out_),
        box_pipe_out_(queue_, p_.box, box_out_),
        stream_out_(queue_, trace_, Place::kStreamOut, box_pipe_out_),
        qdma_(queue_, p_, requester_, &memory_, &stream_out_),
        mover_(queue_, p_, memory_, &stream_out_),
        // From the network.
        box_in_(queue_, trace_, Place::kBoxOut, by_mover_ ? static_cast<Sink&>(mover_) : qdma_),
        box_pipe_in_(queue_, p_.box, box_in_),
        adapter_in_(queue_, trace_, Place::kAdapterOut, box_pipe_in_),
        store_in_(queue_, kShellClock, kShellClock.cycles(p_.rx), adapter_in_),
        wire_in_(queue_, trace_, Place::kWireIn, store_in_) {
    const pcie::NodeId slot = fabric_.add_endpoint(pcie::kRoot, link_of(p_), endpoint_of(p_)).value();
    pcie::Port* const port = fabric_.add_function(slot, requester_, {.name = "qdma", .mrrs = p_.mrrs}).value();
    built_ = fabric_.enumerate().ok();
    port->set_bus_master(true);
    requester_.start(*port);
    for (std::uint32_t i = 0; i < bytes; ++i)
      packet_.push_back(static_cast<std::byte>((i * 0x9e3779b1U + 0x85ebca6bU) >> 24));
  }

  Measured run() {
    prepare();
    switch (path_) {
      case Path::kHostToWire:
        qdma_.host_to_stream(kRing);
        break;
      case Path::kHostToHbm:
        qdma_.host_to_card(kRing);
        break;
      case Path::kHbmToHost:
        qdma_.card_to_host(kRing);
        break;
      case Path::kHbmToWire:
        mover_.read(card_, bytes());
        break;
      case Path::kWireToHost:
        qdma_.stream_to_host(kRing);
        send();
        break;
      case Path::kWireToHbm:
        mover_.write(card_, bytes());
        send();
        break;
    }
    queue_.run(kLongEnough);
    Measured found = measured();
    found.transactions = static_cast<std::uint32_t>(trace_.card_reads.size());
    found.wrong = wrong() + (built_ && memory_.violation().empty() && requester_.failed == 0 ? 0 : 1);
    return found;
  }

 private:
  [[nodiscard]] std::uint32_t bytes() const { return static_cast<std::uint32_t>(packet_.size()); }

  /// Prepares what the host has written: a descriptor, and a packet if it starts there.
  void prepare() {
    std::array<std::byte, kMemoryDescriptor> descriptor{};
    const auto put = [&](std::size_t at, std::uint64_t value, std::size_t size) {
      std::memcpy(descriptor.data() + at, &value, size);
    };
    if (path_ == Path::kHostToWire) {
      put(4, bytes(), 2);
      put(8, host_, 8);
    } else if (path_ == Path::kWireToHost) {
      put(0, host_, 8);
    } else {
      put(0, path_ == Path::kHostToHbm ? host_ : card_, 8);
      put(8, bytes(), 4);
      put(16, path_ == Path::kHostToHbm ? card_ : host_, 8);
    }
    fabric_.memory().write(kRing, descriptor);
    if (path_ == Path::kHostToWire || path_ == Path::kHostToHbm) fabric_.memory().write(host_, packet_);
    if (path_ == Path::kWireToHost || path_ == Path::kHbmToHost) fabric_.memory().watch(host_, bytes(), *this);
    if (path_ != Path::kHbmToHost && path_ != Path::kHbmToWire) return;
    for (std::uint32_t i = 0; i < bytes(); i += kv::rtl::kHbmBeatBytes) {
      kv::rtl::HbmBeat beat;
      std::memcpy(beat.data(), packet_.data() + i, sizeof beat);
      content_.write(card_ + i, beat);
    }
  }

  /// The network's side: sends a beat in each CMAC cycle.
  void send() {
    trace_.see(Place::kWireIn, queue_.now());
    std::int64_t cycle = 0;
    for (const Beat& beat : cut(packet_))
      queue_.call(kCmacClock.cycles(++cycle), [this, beat] { wire_in_.beat(beat); });
  }

  void on_memory_write(std::uint64_t address, std::uint32_t count) override {
    static_cast<void>(address);
    trace_.see(Place::kHostWrite, queue_.now());
    host_got_ += count;
    qdma_.host_has(host_got_);
  }

  [[nodiscard]] std::uint64_t wrong() const {
    std::vector<std::byte> there(packet_.size());
    switch (path_) {
      case Path::kHostToWire:
      case Path::kHbmToWire:
        there = wire_.bytes;
        break;
      case Path::kWireToHost:
      case Path::kHbmToHost:
        fabric_.memory().read(host_, there);
        break;
      case Path::kWireToHbm:
      case Path::kHostToHbm:
        for (std::uint32_t i = 0; i < bytes(); i += kv::rtl::kHbmBeatBytes) {
          const kv::rtl::HbmBeat beat = content_.read(card_ + i);
          std::memcpy(there.data() + i, beat.data(), sizeof beat);
        }
    }
    std::uint64_t differ = there.size() > packet_.size() ? there.size() - packet_.size() : 0;
    for (std::size_t i = 0; i < packet_.size(); ++i) differ += i < there.size() && there[i] == packet_[i] ? 0 : 1;
    return differ;
  }

  [[nodiscard]] Measured measured() const;

  Parameters p_;
  Path path_;
  std::uint64_t host_, card_;
  pcie::EventQueue queue_;
  mutable pcie::Fabric fabric_;
  Trace trace_;
  kv::rtl::HbmContent content_;
  Requester requester_;
  bool by_mover_;
  CardPort memory_;
  Collector wire_;
  Probe wire_out_;
  PacketStore adapter_out_, second_;
  Probe box_out_;
  Pipe box_pipe_out_;
  Probe stream_out_;
  Qdma qdma_;
  DataMover mover_;
  Probe box_in_;
  Pipe box_pipe_in_;
  Probe adapter_in_;
  PacketStore store_in_;
  Probe wire_in_;
  std::vector<std::byte> packet_;
  std::uint64_t host_got_ = 0;
  bool built_ = false;
};

/// The times as sections 5.3.2, 5.3.3, 5.4.2, 5.4.3, 5.5.2 and 5.5.3 define them.
Measured Bed::measured() const {
  const Span fetch = trace_.of(Place::kFetch), wire_in = trace_.of(Place::kWireIn), box = trace_.of(Place::kBoxOut);
  const Span host_read = trace_.of(Place::kHostRead), host_write = trace_.of(Place::kHostWrite);
  const Span wire_out = trace_.of(Place::kWireOut), stream = trace_.of(Place::kStreamOut);
  const Span adapter = trace_.of(Place::kAdapterOut), card_write = trace_.of(Place::kCardWrite);
  Measured found;
  if (!by_mover_) found.descriptor = ns(fetch.length());
  switch (path_) {
    case Path::kHostToWire:
      found.total = ns(wire_out.last - fetch.last);
      found.sections = {{"host_qdma", ns(host_read.length())},
                        {"qdma", ns(host_read.first - fetch.last + stream.last - host_read.last)},
                        {"qdma_cmac", ns(box.last - stream.last)},
                        {"cmac", ns(wire_out.last - box.last)}};
      break;
    case Path::kWireToHost:
      found.total = ns(host_write.last - wire_in.first - fetch.length());
      found.sections = {{"cmac", ns(adapter.last - wire_in.first)},
                        {"cmac_qdma", ns(box.last - adapter.last)},
                        {"qdma", ns(host_write.first - box.last - fetch.length())},
                        {"qdma_host", ns(host_write.length())}};
      break;
    case Path::kWireToHbm:
      found.total = ns(card_write.last - wire_in.first);
      found.sections = {{"cmac", ns(box.first - wire_in.first)},
                        {"dm", ns(card_write.first - box.first)},
                        {"dm_hbm", ns(card_write.length())}};
      break;
    case Path::kHbmToWire: {
      // The command is given at time 0.
      const Span read = trace_.card_reads.front();
      found.total = ns(wire_out.last);
      found.sections = {{"dm_hbm", ns(read.length())},
                        {"dm", ns(read.first + stream.last - read.last)},
                        {"cmac", ns(wire_out.last - stream.last)}};
      break;
    }
    case Path::kHostToHbm: {
      found.total = ns(card_write.last - fetch.last);
      const double host = ns(host_read.length()), card = ns(card_write.length());
      found.sections = {{"host_qdma", host}, {"qdma", found.total - host - card}, {"qdma_hbm", card}};
      break;
    }
    case Path::kHbmToHost: {
      // A transaction's time with the memory counts as the memory's, even if it lies between writes to the host.
      Time all = 0;
      for (const Span& read : trace_.card_reads) all += read.length();
      found.total = ns(host_write.last - fetch.last);
      const double card = ns(all);
      const double host = ns(host_write.length() - (all - trace_.card_reads.front().length()));
      found.sections = {{"hbm_qdma", card}, {"qdma", found.total - card - host}, {"qdma_host", host}};
    }
  }
  return found;
}

}  // namespace

const std::vector<PathName>& paths() {
  static const std::vector<PathName> all{{Path::kHostToWire, 1, "out"},  {Path::kWireToHost, 1, "in"},
                                         {Path::kWireToHbm, 2, "write"}, {Path::kHbmToWire, 2, "read"},
                                         {Path::kHostToHbm, 3, "write"}, {Path::kHbmToHost, 3, "read"}};
  return all;
}

Measured run(Path path, std::uint32_t bytes, const Parameters& parameters) {
  return std::make_unique<Bed>(path, bytes, parameters)->run();
}

}  // namespace wherry::sim::shell
