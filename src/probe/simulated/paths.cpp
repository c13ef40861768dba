// SPDX-License-Identifier: Apache-2.0
#include "probe/simulated/paths.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/try.hpp"
#include "probe/host/memory.hpp"
#include "probe/pattern.hpp"
#include "sim/designs/neighbours.hpp"
#include "sim/designs/rig.hpp"

namespace wherry::probe {
namespace {

namespace designs = sim::designs;

constexpr std::size_t kLine = 64;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // more takes seconds to simulate: `wherry bench probe`
constexpr std::uint64_t kTicksAPoll = 50'000;             // 200 us of the simulation's time

/// Each channel is one blocking call, with XDMA's engine and driver (designs::kXdma).
class DesignPath final : public Path {
 public:
  DesignPath(designs::Design design, Flow flow) : design_(design), flow_(flow) {
    const std::string card = fmt::format("simulated card, {}", designs::name_of(design));
    const bool to_card = flow == Flow::kH2C;
    info_.id = fmt::format("sim.{}.{}", designs::name_of(design), to_card ? "h2c" : "c2h");
    info_.group = "sim";
    info_.from = to_card ? "simulated host" : card;
    info_.to = to_card ? card : "simulated host";
    info_.provenance = Provenance::kSimulated;
    info_.note = "XDMA's engine and driver as paper 000 had them; the time is that of the simulation";
    if (design == designs::Design::kLinux)
      info_.note += fmt::format("; Linux' traffic is {}", designs::linux_traffic_name());
  }

  [[nodiscard]] const PathInfo& info() const override { return info_; }
  [[nodiscard]] Status accepts(const Shape& shape) const override {
    const auto no = [](const char* why) { return Status(StatusCode::kUnsupported, why); };
    if (shape.flow != flow_) return no("it goes one way");
    if (shape.bytes == 0 || shape.bytes % kLine != 0 || shape.bytes > kMostBytes || shape.align != 0)
      return no("multiples of 64 bytes up to 1 MiB, from their own line on");
    if (shape.depth != 1) return no("a call of the driver blocks: depth 1");
    if (shape.channels == 0 || shape.channels > designs::kMostChannels) return no("1 to 4 channels");
    if (shape.pattern != Pattern::kSequential || shape.cache != CacheState::kWarm)
      return no("it has no pattern and no caches");
    if (shape.notice == Notice::kBlocking) return no("the driver polls or waits for an interrupt");
    return ok_status();
  }
  [[nodiscard]] Work work(const Shape& shape) const override {
    return {.slots = shape.channels, .bytes = shape.bytes, .footprint = 2 * shape.bytes * shape.channels};
  }
  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    WHERRY_TRY(accepts(shape));
    const designs::EnginePreset& preset = designs::kXdma;
    layout_ = {.bytes = shape.bytes, .slots = shape.channels};
    software_ns_ = shape.notice == Notice::kInterrupt ? preset.interrupt_ns : preset.polled_ns;
    const bool to_card = flow_ == Flow::kH2C;
    designs::CardOptions card;
    card.design = design_;
    rig_ = std::make_unique<designs::Rig>(
        card, preset, to_card ? designs::Flow::kToCard : designs::Flow::kToHost, shape.channels, layout_.total(),
        design_ == designs::Design::kLinux ? designs::linux_traffic() : designs::MakeNeighbour{}, 1);
    calls_.assign(shape.channels, {});
    there_.resize(layout_.total());
    const double bound = to_card ? sim::dma::read_bound(preset.link, preset.piece)
                                 : sim::dma::write_bound(preset.link, preset.piece, preset.mps);
    return Bound{.bytes_per_s = bound * 1e9, .why = "what the PCIe link carries"};
  }
  void prepare(std::uint64_t seed) override {
    const bool to_card = flow_ == Flow::kH2C;
    const std::span<std::byte> there{reinterpret_cast<std::byte*>(there_.data()), there_.size()};
    fill_source(to_card ? rig_->host() : there, layout_, seed);
    fill_destination(to_card ? there : rig_->host(), layout_, seed);
    rig_->card().content().load(0, there_);
    written_ = 0;
  }
  [[nodiscard]] bool try_post(unsigned slot) override {
    Call& call = calls_[slot];
    if (call.state != State::kFree) return false;
    call.state = State::kCalled;
    call.until_ns = rig_->engine().now_ns() + software_ns_;
    written_ = std::max(written_, slot + 1);
    return true;
  }
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    unsigned count = 0;
    for (std::uint64_t tick = 0; tick < kTicksAPoll && count == 0; ++tick) {
      for (unsigned slot = 0; slot < calls_.size(); ++slot) {
        Call& call = calls_[slot];
        if (call.state == State::kMoving && rig_->engine().idle(slot)) {
          call.state = State::kMoved;
          call.until_ns = rig_->engine().ended_ns(slot);
        }
        if (call.state == State::kFree || call.state == State::kMoving || call.until_ns > rig_->engine().now_ns())
          continue;
        if (call.state == State::kMoved) {
          call.state = State::kFree;
          done[count++] = slot;
        } else {
          call.state = State::kMoving;
          rig_->engine().post(slot, {layout_.offset(slot), layout_.offset(slot), layout_.bytes});
        }
      }
      if (count == 0) rig_->tick();
    }
    if (const std::string broken = rig_->card().violation(); !broken.empty())
      return Status(StatusCode::kInternal, fmt::format("the simulation broke a rule: {}", broken));
    return count;
  }
  [[nodiscard]] Status verify(std::uint64_t seed) override {
    if (flow_ == Flow::kC2H) return check_destination(rig_->host(), layout_, seed, written_);
    rig_->card().content().dump(0, there_);
    return check_destination({reinterpret_cast<const std::byte*>(there_.data()), there_.size()}, layout_, seed,
                             written_);
  }
  [[nodiscard]] bool spoil(std::uint64_t at) override {
    const std::size_t place = layout_.offset(0) + at % layout_.bytes;
    if (flow_ == Flow::kC2H) {
      rig_->host()[place] ^= std::byte{0x40};
      return true;
    }
    std::uint8_t byte = 0;
    rig_->card().content().dump(place, {&byte, 1});
    byte ^= 0x40;
    rig_->card().content().load(place, {&byte, 1});
    return true;
  }
  [[nodiscard]] std::uint64_t own_ns() override {
    return rig_ == nullptr ? 0 : static_cast<std::uint64_t>(rig_->engine().now_ns());
  }
  void close() noexcept override { rig_.reset(); }

 private:
  enum class State : std::uint8_t { kFree, kCalled, kMoving, kMoved };
  struct Call {
    State state = State::kFree;
    double until_ns = 0;  ///< of kCalled: its doorbell; of kMoved: its end
  };

  designs::Design design_;
  Flow flow_;
  PathInfo info_;
  Layout layout_;
  double software_ns_ = 0;
  std::unique_ptr<designs::Rig> rig_;
  std::vector<Call> calls_;
  std::vector<std::uint8_t> there_;  ///< the card's part, as it is loaded and looked at
  unsigned written_ = 0;
};

}  // namespace

Paths simulated_paths() {
  Paths paths;
  for (const designs::Design design : designs::kDesigns)
    for (const Flow flow : {Flow::kH2C, Flow::kC2H}) paths.push_back(std::make_unique<DesignPath>(design, flow));
  return paths;
}

}  // namespace wherry::probe
