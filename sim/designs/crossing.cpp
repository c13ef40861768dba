// SPDX-License-Identifier: Apache-2.0
#include "sim/designs/crossing.hpp"

namespace wherry::sim::designs {

Crossing::Crossing(std::uint64_t manager_ps, std::uint64_t memory_ps)
    : up_delay_(kSynchroniser * manager_ps), down_delay_(kSynchroniser * memory_ps) {
  present(0);
  memory_present(0);
}

void Crossing::present(std::uint64_t now_ps) {
  out_.ar_ready = ar_.size() < kDepth;
  out_.aw_ready = aw_.size() < kDepth;
  out_.w_ready = w_.size() < kDepth;
  out_.r_valid = !r_.empty() && r_.front().ready <= now_ps;
  if (out_.r_valid) {
    const Read& read = r_.front().element;
    out_.r_data = read.data;
    out_.r_last = read.last;
    out_.r_error = read.error;
    out_.r_id = read.id;
  }
  out_.b_valid = !b_.empty() && b_.front().ready <= now_ps;
  if (out_.b_valid) {
    out_.b_id = b_.front().element.id;
    out_.b_error = b_.front().element.error;
  }
}

void Crossing::step(const memory::AxiRequest& in, std::uint64_t now_ps) {
  if (out_.r_valid && in.r_ready) r_.pop_front();
  if (out_.b_valid && in.b_ready) b_.pop_front();
  if (in.ar_valid && out_.ar_ready) ar_.push_back({in.ar, now_ps + down_delay_});
  if (in.aw_valid && out_.aw_ready) aw_.push_back({in.aw, now_ps + down_delay_});
  if (in.w_valid && out_.w_ready) w_.push_back({{in.w_data, in.w_strobes, in.w_last}, now_ps + down_delay_});
  present(now_ps);
}

void Crossing::memory_present(std::uint64_t now_ps) {
  down_.ar_valid = !ar_.empty() && ar_.front().ready <= now_ps;
  if (down_.ar_valid) down_.ar = ar_.front().element;
  down_.aw_valid = !aw_.empty() && aw_.front().ready <= now_ps;
  if (down_.aw_valid) down_.aw = aw_.front().element;
  down_.w_valid = !w_.empty() && w_.front().ready <= now_ps;
  if (down_.w_valid) {
    const Data& data = w_.front().element;
    down_.w_data = data.beat;
    down_.w_strobes = data.strobes;
    down_.w_last = data.last;
  }
  down_.r_ready = r_.size() < kDepth;
  down_.b_ready = b_.size() < kDepth;
}

void Crossing::memory_step(const memory::AxiAnswer& in, std::uint64_t now_ps) {
  if (down_.ar_valid && in.ar_ready) ar_.pop_front();
  if (down_.aw_valid && in.aw_ready) aw_.pop_front();
  if (down_.w_valid && in.w_ready) w_.pop_front();
  if (in.r_valid && down_.r_ready) r_.push_back({{in.r_data, in.r_last, in.r_error, in.r_id}, now_ps + up_delay_});
  if (in.b_valid && down_.b_ready) b_.push_back({{in.b_id, in.b_error}, now_ps + up_delay_});
  memory_present(now_ps);
}

}  // namespace wherry::sim::designs
