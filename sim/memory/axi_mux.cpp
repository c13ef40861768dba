// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/axi_mux.hpp"

namespace wherry::sim::memory {

AxiMux::AxiMux(AxiBus& below, const std::vector<std::uint32_t>& slices) : below_(below) {
  for (const std::uint32_t count : slices) managers_.emplace_back(1 + count);
  for (Manager& manager : managers_) present(manager);
}

/// The next manager after `after` that has an address; kNobody if there is none.
std::uint32_t AxiMux::next(std::uint32_t after, Pipe<AxiAddress> Manager::* channel) const {
  const auto count = static_cast<std::uint32_t>(managers_.size());
  for (std::uint32_t i = 1; i <= count; ++i) {
    const std::uint32_t number = (after + i) % count;
    if ((managers_[number].*channel).is_ready(now_)) return number;
  }
  return kNobody;
}

/// Decides what is driven below in this cycle. An address stays until it is taken.
void AxiMux::drive() {
  if (ar_holder_ == kNobody) ar_holder_ = next(ar_turn_, &Manager::ar);
  down_.ar_valid = ar_holder_ != kNobody;
  if (down_.ar_valid) {
    down_.ar = managers_[ar_holder_].ar.front();
    down_.ar.id |= ar_holder_ << kIdBits;
  }
  if (aw_holder_ == kNobody) aw_holder_ = next(aw_turn_, &Manager::aw);
  down_.aw_valid = aw_holder_ != kNobody;
  if (down_.aw_valid) {
    down_.aw = managers_[aw_holder_].aw.front();
    down_.aw.id |= aw_holder_ << kIdBits;
  }
  down_.w_valid = !data_order_.empty() && managers_[data_order_.front()].w.is_ready(now_);
  if (down_.w_valid) {
    const Data& data = managers_[data_order_.front()].w.front();
    down_.w_data = data.beat;
    down_.w_strobes = data.strobes;
    down_.w_last = data.last;
  }
  const AxiAnswer& up = below_.answer(0);
  down_.r_ready = up.r_valid && managers_[up.r_id >> kIdBits].r.has_room();
  down_.b_ready = up.b_valid && managers_[up.b_id >> kIdBits].b.has_room();
}

void AxiMux::take(Manager& manager, const AxiRequest& in) {
  if (manager.out.r_valid && in.r_ready) manager.r.pop();
  if (manager.out.b_valid && in.b_ready) manager.b.pop();
  if (in.ar_valid && manager.out.ar_ready) manager.ar.push(in.ar, now_);
  if (in.aw_valid && manager.out.aw_ready) manager.aw.push(in.aw, now_);
  if (in.w_valid && manager.out.w_ready) manager.w.push({in.w_data, in.w_strobes, in.w_last}, now_);
}

void AxiMux::present(Manager& manager) {
  AxiAnswer& out = manager.out;
  out.ar_ready = manager.ar.has_room();
  out.aw_ready = manager.aw.has_room();
  out.w_ready = manager.w.has_room();
  out.r_valid = manager.r.is_ready(now_);
  if (out.r_valid) {
    out.r_data = manager.r.front().data;
    out.r_last = manager.r.front().last;
    out.r_error = manager.r.front().error;
    out.r_id = manager.r.front().id;
  }
  out.b_valid = manager.b.is_ready(now_);
  if (out.b_valid) {
    out.b_id = manager.b.front().id;
    out.b_error = manager.b.front().error;
  }
}

void AxiMux::step(std::span<const AxiRequest> in) {
  drive();
  const AxiAnswer up = below_.answer(0);
  constexpr std::uint32_t kOwnId = (1U << kIdBits) - 1;
  if (up.r_valid && down_.r_ready)
    managers_[up.r_id >> kIdBits].r.push({up.r_data, up.r_last, up.r_error, up.r_id & kOwnId}, now_);
  if (up.b_valid && down_.b_ready) managers_[up.b_id >> kIdBits].b.push({up.b_id & kOwnId, up.b_error}, now_);
  if (down_.w_valid && up.w_ready) {
    managers_[data_order_.front()].w.pop();
    if (down_.w_last) data_order_.pop_front();
  }
  if (down_.ar_valid && up.ar_ready) {
    managers_[ar_holder_].ar.pop();
    ar_turn_ = ar_holder_;
    ar_holder_ = kNobody;
  }
  if (down_.aw_valid && up.aw_ready) {
    managers_[aw_holder_].aw.pop();
    aw_turn_ = aw_holder_;
    data_order_.push_back(aw_holder_);
    aw_holder_ = kNobody;
  }
  for (std::size_t i = 0; i < managers_.size(); ++i) take(managers_[i], in[i]);
  below_.step({&down_, 1});
  ++now_;
  for (Manager& manager : managers_) present(manager);
}

}  // namespace wherry::sim::memory
