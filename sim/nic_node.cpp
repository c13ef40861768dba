// SPDX-License-Identifier: Apache-2.0
#include "sim/nic_node.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <utility>

namespace wherry::kv::rtl {
namespace {

using wherry::sim::RtlFunction;
namespace pcie = wherry::sim::pcie;

constexpr std::size_t kWaiting = 2, kAhead = 2;  ///< frames before the kv core, and before the bypass core's s_tx
/// Cycles after which a tail is written, whatever the credits. After the last event, the bypass core's clock runs at
/// least that long.
constexpr std::uint32_t kDoorbellTimer = 256;

wherry::sim::RigOptions rig_options(const NicNodeOptions& options) {
  wherry::sim::RigOptions rig{.nic = options.nic, .in_place = false, .seed = options.seed, .pauses = options.pauses};
  rig.frame_bytes = 1522;
  rig.doorbell_timer = kDoorbellTimer;
  if (options.reordering) rig.reordering = {.per_mille = 300, .split_anywhere = true};
  return rig;
}

}  // namespace

NicNode::NicNode(const NicNodeOptions& options)
    : core_(options.core), zero_(core_.now()), rig_(rig_options(options), nullptr, this), target_(rig_.queue.now()) {
  if (!rig_.ready) {
    fmt::print(stderr, "a node behind {}: {}\n", options.nic, rig_.ready.message());
    std::abort();
  }
  rig_.nic.connect(this);
}

std::optional<NicNode::Sent> NicNode::take() {
  if (sent_.empty()) return std::nullopt;
  std::optional<Sent> first = std::move(sent_.front());
  sent_.pop_front();
  return first;
}

void NicNode::run(Cycles cycles) {
  target_ += static_cast<pcie::Time>(cycles) * RtlFunction::kCycle;
  rig_.queue.run(target_);
  catch_up(target_);
  if (!core_.idle() || !to_send_.empty()) rig_.card.wake();
}

std::optional<Cycles> NicNode::next() const {
  if (!core_.idle() || !to_send_.empty() || !rig_.card.asleep()) return 1;
  const pcie::Time next = rig_.queue.next();
  if (next == pcie::kNever) return std::nullopt;
  return static_cast<Cycles>((next - rig_.queue.now()) / RtlFunction::kCycle + 1);
}

/// Runs the kv core, so that its clock is never behind.
void NicNode::catch_up(pcie::Time now) {
  const Cycles wanted = zero_ + static_cast<Cycles>(now / RtlFunction::kCycle);
  if (core_.now() < wanted) core_.run(wanted - core_.now());
}

pcie::Time NicNode::turn(wherry::sim::RtlCore& bypass, pcie::Time now) {
  while (core_.waiting(Side::kNet) < kWaiting) {
    const auto frame = bypass.take_frame();
    if (!frame) break;
    core_.put(Side::kNet, frame->bytes);
  }
  catch_up(now);
  while (core_.take(Side::kHost)) continue;  // what is not kv's is nobody's here
  while (auto frame = core_.take(Side::kNet)) {
    core_cycles_ = frame->last - core_.entered(Side::kNet).first;
    to_send_.push_back({.queue = 0, .bytes = std::move(frame->bytes)});
  }
  for (; !to_send_.empty() && bypass.frames_to_send() < kAhead; to_send_.pop_front())
    bypass.put_frame(std::move(to_send_.front()));
  return core_.idle() && to_send_.empty() && bypass.frames_waiting() == 0 ? pcie::kNever : now + RtlFunction::kCycle;
}

void NicNode::on_frame(std::span<const std::byte> frame, bool) {
  sent_.push_back({.bytes = {frame.begin(), frame.end()}, .at = rig_.queue.now()});
}

}  // namespace wherry::kv::rtl
