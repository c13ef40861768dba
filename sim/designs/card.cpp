// SPDX-License-Identifier: Apache-2.0
#include "sim/designs/card.hpp"

#include <array>

#include "sim/memory/bram.hpp"

namespace wherry::sim::designs {
namespace {

/// Paper 000 configures 1 MiB of the 8 MB available (section 6.1), but four channels of 1 MiB need more.
constexpr std::uint64_t kBramBytes = std::uint64_t{8} << 20;
/// Register slices on a soft core's own path to the mux.
constexpr std::uint32_t kCoreSlices = 2;

}  // namespace

std::string_view name_of(Design design) noexcept {
  switch (design) {
    case Design::kBram:
      return "bram";
    case Design::kDdr4:
      return "ddr4";
    case Design::kSoftcore:
      return "softcore";
    case Design::kLinux:
      break;
  }
  return "linux";
}

Card::Card(const CardOptions& options, const MakeNeighbour& neighbour) {
  if (options.design == Design::kBram) {
    memory_ = std::make_unique<memory::Bram>(kBramBytes, kEnginePs);
    port_ = std::make_unique<memory::AxiMemory>(*memory_, content_, 1, memory::kBramPort);
    return;
  }
  const bool litedram = options.controller == Controller::kLitedram;
  memory_ = std::make_unique<memory::Ddr4>(litedram ? memory::kLitedramController : memory::kCardController,
                                           litedram ? memory::kLitedramTiming : memory::kDdr4_2400);
  port_ = std::make_unique<memory::AxiMemory>(*memory_, content_, 1);
  crossing_ = std::make_unique<Crossing>(kEnginePs, memory_->cycle_ps());
  if (options.design == Design::kDdr4) return;
  if (neighbour) neighbour_ = neighbour(content_);
  mux_ = std::make_unique<memory::AxiMux>(*port_, std::vector<std::uint32_t>{options.slices, kCoreSlices});
}

std::uint64_t Card::bytes() const noexcept { return memory_->bytes(); }

const memory::AxiAnswer& Card::answer() const { return crossing_ ? crossing_->answer() : port_->answer(0); }

void Card::memory_step() {
  memory::AxiBus& bus = mux_ ? static_cast<memory::AxiBus&>(*mux_) : *port_;
  std::array<memory::AxiRequest, 2> requests;
  requests[0] = crossing_->request();
  const memory::AxiAnswer first = bus.answer(0);
  if (mux_ == nullptr) {
    bus.step({requests.data(), 1});
  } else if (neighbour_ == nullptr) {
    bus.step(requests);
  } else {
    const memory::AxiAnswer second = bus.answer(1);
    requests[1] = neighbour_->request();
    bus.step(requests);
    neighbour_->step(second);
  }
  crossing_->memory_step(first, memory_ps_);
}

void Card::step(const memory::AxiRequest& in) {
  now_ps_ += kEnginePs;
  if (crossing_ == nullptr) {
    port_->step({&in, 1});
    return;
  }
  while (memory_ps_ + memory_->cycle_ps() <= now_ps_) {
    memory_ps_ += memory_->cycle_ps();
    memory_step();
  }
  crossing_->step(in, now_ps_);
}

}  // namespace wherry::sim::designs
