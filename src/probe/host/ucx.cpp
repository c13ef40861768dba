// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "probe/host/copy.hpp"
#include "probe/host/paths.hpp"
#include "probe/host/ucx_pair.hpp"

namespace wherry::probe {
namespace {

constexpr unsigned kFirstData = 1;                          // as in ucx_pair.cpp
constexpr std::size_t kMostMessage = std::size_t{1} << 20;  // eager: beyond that nobody sends messages
constexpr std::size_t kMostStreamPut = 64;                  // fabric/stream_frame.hpp, kMaxPutBytes

const char* verb_name(Verb verb) { return verb == Verb::kGet ? "get" : verb == Verb::kPut ? "put" : "am"; }

class Ucx final : public Path {
 public:
  Ucx(Verb verb, Transport transport) : verb_(verb), transport_(transport) {
    const bool get = verb == Verb::kGet;
    info_.id = fmt::format("ucx.{}.{}", verb_name(verb), to_string(transport));
    info_.group = "ucx";
    info_.from = get ? "memory of another process" : "host memory";
    info_.to = get ? "host memory" : "memory of another process";
    if (transport == Transport::kRdma && !fabric::rdma_is_here())
      info_.absent = "UCX finds no RDMA device; load a NIC's driver and rdma-core, and use a UCX with verbs";
  }
  ~Ucx() override { Ucx::close(); }

  [[nodiscard]] const PathInfo& info() const override { return info_; }
  [[nodiscard]] Status accepts(const Shape& shape) const override {
    const bool stream = transport_ == Transport::kTcp;
    const std::size_t most = verb_ == Verb::kMessage         ? kMostMessage
                             : verb_ == Verb::kPut && stream ? kMostStreamPut
                                                             : UcxPair::kArenaBytes;
    const Layout layout{shape.bytes, shape.depth, shape.align};
    if (verb_ == Verb::kPut && stream && (shape.bytes % 8 != 0 || shape.align % 8 != 0))
      return {StatusCode::kUnsupported, "a put over TCP is of whole words of 8 bytes"};
    if (shape.bytes > 0 && shape.bytes <= most && shape.depth >= 1 && shape.depth <= UcxPair::kMostDepth &&
        layout.total() <= UcxPair::kArenaBytes && shape.channels == 1 && shape.notice == Notice::kPolled &&
        shape.cache == CacheState::kWarm && shape.pattern == Pattern::kSequential && shape.align <= 4096 &&
        shape.flow == (verb_ == Verb::kGet ? Flow::kC2H : Flow::kH2C))
      return ok_status();
    return {StatusCode::kUnsupported, fmt::format("{} is polled and sequential, of at most {} bytes, {} deep", info_.id,
                                                  most, UcxPair::kMostDepth)};
  }
  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    WHERRY_TRY(accepts(shape));
    WHERRY_ASSIGN(pair_, UcxPair::of(transport_));
    layout_ = {shape.bytes, shape.depth, shape.align};
    pair_->set_layout(layout_);
    info_.note = fmt::format("{}; {}",
                             pair_->one_sided() ? "one-sided (measured: a get came while its owner slept)"
                                                : "emulated (measured: a get takes its owner's help)",
                             pair_->transports());
    if (verb_ == Verb::kPut && transport_ == Transport::kTcp)
      info_.note += "; ends with a get that shows that it landed";
    under_way_ = {};
    if (verb_ == Verb::kMessage || !pair_->one_sided()) pair_->wake();
    return transport_ == Transport::kRdma ? Bound{} : one_thread_bound();
  }
  void prepare(std::uint64_t seed) override {
    posted_ = 0;
    fill_source(source(), layout_, seed);
    fill_destination(destination(), layout_, seed);
  }
  [[nodiscard]] bool try_post(unsigned slot) override {
    Status posted;
    Flight& flight = under_way_[slot];
    flight.done.reset();
    const std::uint64_t there = address_of(layout_.offset(slot));
    std::byte* const here = pair_->mine().data() + layout_.offset(slot);
    switch (verb_) {
      case Verb::kGet:
        posted = pair_->endpoint().get(here, pair_->local(), pair_->remote(), there, layout_.bytes, flight.done);
        break;
      case Verb::kPut:
        posted = pair_->endpoint().put(here, pair_->remote(), there, layout_.bytes, flight.done);
        if (posted) posted = landed(there, slot, flight.done);
        break;
      case Verb::kMessage:
        flight.answers = pair_->answered(slot) + 1;
        posted = pair_->endpoint().send(kFirstData + slot, {here, layout_.bytes}, flight.done);
        break;
    }
    if (posted.is_would_block()) return false;
    flight.failed = std::move(posted);
    flight.busy = true;
    posted_ = std::max(posted_, slot + 1);
    return true;
  }
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    if (verb_ == Verb::kMessage || !all_done_at_once()) pair_->worker().progress();
    unsigned count = 0;
    for (unsigned slot = 0; slot < layout_.slots; ++slot) {
      Flight& flight = under_way_[slot];
      if (!flight.busy) continue;
      WHERRY_TRY(flight.failed);
      if (flight.done.error() != nullptr)
        return Status(StatusCode::kUnavailable, fmt::format("{}: {}", info_.id, flight.done.error()));
      if (flight.done.pending() > 0) continue;
      if (verb_ == Verb::kMessage && pair_->answered(slot) < flight.answers) continue;
      flight.busy = false;
      done[count++] = slot;
    }
    return count;
  }
  [[nodiscard]] Status verify(std::uint64_t seed) override {
    std::atomic_thread_fence(std::memory_order_acquire);
    return check_destination(destination(), layout_, seed, posted_);
  }
  [[nodiscard]] std::span<std::byte> landing() override {
    return pair_ ? landing_of(destination(), layout_) : std::span<std::byte>();
  }
  [[nodiscard]] CpuTime other_side() override { return pair_ ? pair_->other_side() : CpuTime{}; }
  /// The pair is kept for the next shape, and its child sleeps.
  void close() noexcept override {
    if (!pair_) return;
    settle();
    pair_->sleep();
    pair_last_ = std::move(pair_);
  }

 private:
  struct Flight {
    fabric::Completion done;
    Status failed;
    std::uint64_t answers = 0;
    bool busy = false;
  };

  /// After a put, `done` says that the data are visible there. A stream's flush ends while the bytes
  /// are still in flight. So a get follows the put, because the other side serves it after the put.
  Status landed(std::uint64_t there, unsigned slot, fabric::Completion& done) {
    if (transport_ != Transport::kTcp) return pair_->endpoint().flush(done);
    std::byte* const word = pair_->mine().data() + UcxPair::kArenaBytes - (slot + 1) * sizeof(std::uint64_t);
    return pair_->endpoint().get(word, pair_->local(), pair_->remote(), there, sizeof(std::uint64_t), done);
  }
  /// If the call itself completed the operation, UCX reports no completion later.
  [[nodiscard]] bool all_done_at_once() const noexcept {
    return std::ranges::all_of(under_way_, [](const Flight& one) { return !one.busy || one.done.pending() == 0; });
  }
  /// A Completion must exist as long as UCX may use it.
  void settle() noexcept {
    const auto pending = [&] {
      return std::ranges::any_of(under_way_, [](const Flight& one) { return one.done.pending() > 0; });
    };
    for (const Deadline deadline(std::chrono::seconds(2)); pending() && !deadline.passed();) pair_->worker().progress();
    if (pending()) pair_->cancel();
  }
  [[nodiscard]] std::span<std::byte> source() const {
    return (verb_ == Verb::kGet ? pair_->theirs() : pair_->mine()).first(layout_.total());
  }
  [[nodiscard]] std::span<std::byte> destination() const {
    return (verb_ == Verb::kGet ? pair_->mine() : pair_->theirs()).first(layout_.total());
  }
  [[nodiscard]] std::uint64_t address_of(std::size_t offset) const { return pair_->remote().base() + offset; }

  Verb verb_;
  Transport transport_;
  PathInfo info_;
  std::shared_ptr<UcxPair> pair_;       ///< null: not open
  std::shared_ptr<UcxPair> pair_last_;  ///< keeps it for the next open()
  Layout layout_;
  std::array<Flight, UcxPair::kMostDepth> under_way_;
  unsigned posted_ = 0;
};

}  // namespace

std::unique_ptr<Path> make_ucx(Verb verb, Transport transport) { return std::make_unique<Ucx>(verb, transport); }

}  // namespace wherry::probe
