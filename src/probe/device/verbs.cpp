// SPDX-License-Identifier: Apache-2.0
#include "probe/device/verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/try.hpp"
#include "probe/device/absent.hpp"
#ifdef WHERRY_VERBS
#include "probe/device/host_memory.hpp"
#include "probe/device/places.hpp"
#include "probe/device/rdma_pair.hpp"
#include "probe/pattern.hpp"
#endif

namespace wherry::probe {
namespace {

enum class Verb : std::uint8_t { kRead, kWrite, kSend, kAtomic };

struct VerbKind {
  const char* id;
  Verb verb;
  Initiator initiator;
  [[nodiscard]] Flow flow() const {
    const bool reads = verb == Verb::kRead;
    return reads == (initiator == Initiator::kDevice) ? Flow::kH2C : Flow::kC2H;
  }
};
constexpr std::array<VerbKind, 8> kVerbKinds{{
    {"verbs.read", Verb::kRead, Initiator::kHost},
    {"verbs.write", Verb::kWrite, Initiator::kHost},
    {"verbs.send", Verb::kSend, Initiator::kHost},
    {"verbs.atomic", Verb::kAtomic, Initiator::kHost},
    {"verbs.read.device", Verb::kRead, Initiator::kDevice},
    {"verbs.write.device", Verb::kWrite, Initiator::kDevice},
    {"verbs.send.device", Verb::kSend, Initiator::kDevice},
    {"verbs.atomic.device", Verb::kAtomic, Initiator::kDevice},
}};

#ifdef WHERRY_VERBS

constexpr unsigned kMostRequests = 256, kMostPairs = 16;
constexpr std::uint64_t kReceived = std::uint64_t{1} << 32;  // in wr_id: the receiver's end of a send
constexpr std::size_t kWord = 8;                             // of an atomic

class VerbsPath final : public Path {
 public:
  VerbsPath(PathInfo info, const VerbKind& kind, std::shared_ptr<const VerbsApi> verbs, const DeviceSettings& settings)
      : info_(std::move(info)),
        kind_(kind),
        verbs_(std::move(verbs)),
        name_(settings.verbs_device),
        sysfs_(settings.sysfs) {}
  ~VerbsPath() override { close(); }

  [[nodiscard]] const PathInfo& info() const override { return info_; }

  [[nodiscard]] Status accepts(const Shape& shape) const override {
    const auto unsupported = [&](const std::string& why) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: {}", info_.id, why));
    };
    if (shape.flow != kind_.flow()) return unsupported("the other direction is a path of its own");
    if (shape.depth > kMostRequests || shape.channels > kMostPairs)
      return unsupported(fmt::format("depth is at most {}, and queue pairs are at most {}", kMostRequests, kMostPairs));
    if (shape.channels > shape.depth)
      return unsupported("a queue pair needs a request under way: depth is at least the channels");
    if (kind_.verb == Verb::kAtomic && shape.bytes != kWord) return unsupported("an atomic has 8 bytes");
    return Places::plan(shape, rules()).status();
  }

  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    WHERRY_TRY(accepts(shape));
    close();
    WHERRY_ASSIGN(places_, Places::plan(shape, rules()));
    blocking_ = shape.notice != Notice::kPolled;
    WHERRY_ASSIGN(
        device_,
        RdmaDevice::open(
            verbs_,
            {.name = name_, .sysfs = sysfs_, .pairs = shape.channels, .depth = shape.depth, .sleeps = blocking_}));
    if (kind_.verb == Verb::kAtomic && !device_->has_atomics())
      return Status(StatusCode::kUnsupported, info_.id + ": the device has no atomics");
    WHERRY_ASSIGN(near_, HostMemory::make(places_.region_bytes()));
    WHERRY_ASSIGN(far_, HostMemory::make(places_.region_bytes()));
    WHERRY_ASSIGN(near_region_, device_->register_memory(near_.span()));
    WHERRY_ASSIGN(far_region_, device_->register_memory(far_.span()));
    missing_.assign(shape.depth, 0);
    ends_.resize(std::size_t{2} * shape.depth);
    Bound bound;
    bound.why =
        "both ends are behind one device: the bytes need not cross the wire, and the port's rate does not bound them";
    return bound;
  }

  void prepare(std::uint64_t seed) override {
    seed_ = seed;
    if (kind_.verb == Verb::kAtomic) {  // the old values come back to the side that posts
      places_.fill_source(local(), seed);
      places_.fill_destination(remote(), seed);
      return;
    }
    places_.fill_source(source(), seed);
    places_.fill_destination(destination(), seed);
  }

  [[nodiscard]] bool try_post(unsigned slot) override {
    if (missing_[slot] != 0) return false;
    const RdmaPair& pair = device_->pairs()[slot % device_->pairs().size()];
    const bool by_host = kind_.initiator == Initiator::kHost;
    ibv_qp* const poster = by_host ? pair.near : pair.far;
    ibv_qp* const other = by_host ? pair.far : pair.near;
    const ibv_mr& mine = by_host ? *near_region_ : *far_region_;
    const ibv_mr& theirs = by_host ? *far_region_ : *near_region_;
    const std::size_t offset = places_.take(slot);
    const auto bytes = static_cast<std::uint32_t>(places_.bytes());
    const std::uint64_t remote_address = reinterpret_cast<std::uint64_t>(theirs.addr) + offset;
    if (kind_.verb == Verb::kSend) {  // in the order of the sends: a queue pair's receives are used in order
      ibv_sge into{.addr = remote_address, .length = bytes, .lkey = theirs.lkey};
      ibv_recv_wr receive{};
      receive.wr_id = slot | kReceived;
      receive.sg_list = &into;
      receive.num_sge = 1;
      ibv_recv_wr* bad = nullptr;
      if (const int error = ibv_post_recv(other, &receive, &bad); error != 0) return refuse("ibv_post_recv", error);
    }
    ibv_sge piece{.addr = reinterpret_cast<std::uint64_t>(mine.addr) + offset, .length = bytes, .lkey = mine.lkey};
    ibv_send_wr request{};
    request.wr_id = slot;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    switch (kind_.verb) {
      case Verb::kRead:
      case Verb::kWrite:
        request.opcode = kind_.verb == Verb::kRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        request.wr.rdma.remote_addr = remote_address;
        request.wr.rdma.rkey = theirs.rkey;
        break;
      case Verb::kSend:
        request.opcode = IBV_WR_SEND;
        break;
      case Verb::kAtomic: {
        request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        request.wr.atomic.remote_addr = remote_address;
        request.wr.atomic.rkey = theirs.rkey;
        request.wr.atomic.compare_add = pattern_word(offset, true);
        request.wr.atomic.swap = pattern_word(offset, false);
        break;
      }
    }
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(poster, &request, &bad); error != 0) return refuse("ibv_post_send", error);
    missing_[slot] = kind_.verb == Verb::kSend ? 2 : 1;
    ++under_way_;
    return true;
  }

  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    WHERRY_TRY(Status(failed_));
    unsigned found = 0;
    while (under_way_ != 0) {
      // A request has at most two completions. `done` has room for all slots of the completions polled.
      WHERRY_ASSIGN(const unsigned ends,
                    device_->poll(std::span(ends_).first(std::min(ends_.size(), done.size() - found))));
      for (const ibv_wc& one : std::span(ends_).first(ends)) {
        const auto slot = static_cast<unsigned>(one.wr_id & ~kReceived);
        if (--missing_[slot] != 0) continue;
        places_.ended(slot);
        --under_way_;
        done[found++] = slot;
      }
      if (found != 0 || !blocking_) break;
      if (ends == 0) WHERRY_TRY(device_->wait());
    }
    return found;
  }

  [[nodiscard]] Status verify(std::uint64_t seed) override {
    WHERRY_TRY(Status(failed_));
    if (kind_.verb != Verb::kAtomic) {
      WHERRY_TRY(places_.check(destination(), seed));
      return places_.check_source(source(), seed);
    }
    WHERRY_TRY(places_.check(remote(), seed));
    return check_old_values();
  }

  [[nodiscard]] std::span<std::byte> landing() override {
    return kind_.verb == Verb::kAtomic ? remote() : destination();
  }

  void close() noexcept override {
    device_.reset();
    near_ = {};
    far_ = {};
    under_way_ = 0;
    failed_ = {};
  }

 private:
  [[nodiscard]] PlaceRules rules() const {
    return {.room = std::size_t{256} << 20,
            .guard = 4096,
            .unit = kind_.verb == Verb::kAtomic ? kWord : 1,
            .spread = std::size_t{4} << 20};
  }
  std::span<std::byte> local() { return kind_.initiator == Initiator::kHost ? near_.span() : far_.span(); }
  std::span<std::byte> remote() { return kind_.initiator == Initiator::kHost ? far_.span() : near_.span(); }
  std::span<std::byte> source() { return kind_.verb == Verb::kRead ? remote() : local(); }
  std::span<std::byte> destination() { return kind_.verb == Verb::kRead ? local() : remote(); }

  [[nodiscard]] std::uint64_t pattern_word(std::size_t offset, bool poison) const {
    std::array<std::byte, kWord> bytes;
    poison ? fill_poison(bytes, seed_, offset) : fill_pattern(bytes, seed_, offset);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), kWord);
    return word;
  }
  /// Checks the values that swaps returned. Each must be poison, as before a place's first swap,
  /// or the pattern that this swap left. Memory without a returned value still has poison.
  Status check_old_values() {
    const auto region = local();
    for (std::size_t at = 0; at + kWord <= region.size(); at += kWord) {
      std::uint64_t word = 0;
      std::memcpy(&word, &region[at], kWord);
      if (word != pattern_word(at, false) && word != pattern_word(at, true))
        return {StatusCode::kInternal, fmt::format("wrong data: the value that an atomic brought back, {} bytes behind "
                                                   "the region's begin, was never there",
                                                   at)};
    }
    return {};
  }
  bool refuse(const char* call, int error) {
    if (error == ENOMEM) return false;  // the queue is full: the runner polls first
    failed_ = {StatusCode::kUnavailable, fmt::format("{}: {}", call, std::strerror(error))};
    return true;
  }

  PathInfo info_;
  VerbKind kind_;
  std::shared_ptr<const VerbsApi> verbs_;
  std::string name_, sysfs_;
  Places places_;
  HostMemory near_, far_;
  std::unique_ptr<RdmaDevice> device_;
  ibv_mr *near_region_ = nullptr, *far_region_ = nullptr;
  std::vector<std::uint8_t> missing_;  ///< by slot: ends that have not been seen
  std::vector<ibv_wc> ends_;
  std::uint64_t seed_ = 0;
  unsigned under_way_ = 0;
  bool blocking_ = false;
  Status failed_;
};

/// Why no path can run here. Empty if paths can run.
std::string missing(const VerbsApi& verbs, const std::string& name) {
  int count = 0;
  ibv_device** const list = verbs.get_device_list(&count);
  bool found = false;
  for (int i = 0; list != nullptr && i < count; ++i)
    found = found || name.empty() || name == verbs.device_name(list[i]);
  if (list != nullptr) verbs.free_device_list(list);
  if (found) return "";
  if (!name.empty()) return fmt::format("WHERRY_PROBE_VERBS: there is no RDMA device {}", name);
  return "no RDMA device: needs a NIC with RDMA, or Soft-RoCE (modprobe rdma_rxe; rdma link add rxe0 type rxe netdev "
         "INTERFACE)";
}

#endif

}  // namespace

std::vector<std::unique_ptr<Path>> verbs_paths(const DeviceSettings& settings) {
  std::vector<std::unique_ptr<Path>> paths;
#ifdef WHERRY_VERBS
  const auto verbs = VerbsApi::load(settings.verbs_library);
  const std::string why = verbs ? missing(**verbs, settings.verbs_device) : verbs.status().message();
#else
  (void)settings;
  const std::string why = "this build has no <infiniband/verbs.h>: install libibverbs-dev, and build again";
#endif
  for (const VerbKind& kind : kVerbKinds) {
    PathInfo info{.id = kind.id, .group = "verbs", .initiator = kind.initiator, .absent = {}};
    const std::string host = "host memory", other = "memory of the other side of an RDMA device";
    info.from = kind.flow() == Flow::kH2C ? host : other;
    info.to = kind.flow() == Flow::kH2C ? other : host;
#ifdef WHERRY_VERBS
    if (why.empty()) {
      paths.push_back(std::make_unique<VerbsPath>(std::move(info), kind, *verbs, settings));
      continue;
    }
#endif
    paths.push_back(absent(std::move(info), why));
  }
  return paths;
}

}  // namespace wherry::probe
