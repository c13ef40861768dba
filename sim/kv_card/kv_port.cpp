// SPDX-License-Identifier: Apache-2.0
#include "sim/kv_card/kv_port.hpp"

#include <fmt/core.h>

#include <cstdlib>

namespace wherry::kv::rtl {
namespace {

using wherry::sim::memory::AxiAddress;
using wherry::sim::memory::kAllBytes;

/// More cycles than kv_host_path takes for a burst while its core works.
constexpr std::uint64_t kMostCycles = 1'000'000;

bool is_inside(const AxiAddress& burst) { return burst.address < kHbmBytes; }  // and none crosses 4 KiB

}  // namespace

const wherry::sim::memory::AxiAnswer& KvPort::answer(std::uint32_t port) const {
  static_cast<void>(port);
  return out_;
}

/// Drives the manager's inputs in this cycle. They do not depend on the manager's outputs in the same cycle, and
/// neither do kv_host_path's answers.
void KvPort::present() {
  inner_ = core_.host_answer();
  out_ = inner_;
  if (lost_read_) {
    out_.ar_ready = false;
    if (reads_ == 0) {
      out_.r_valid = true;
      out_.r_error = true;
      out_.r_last = lost_read_->beats == 1;
      out_.r_id = lost_read_->id;
      out_.r_data = {};
    }
  }
  if (lost_write_) {
    out_.aw_ready = false;
    if (write_data_ == 0) out_.w_ready = lost_write_->beats != 0;
    if (writes_ == 0 && lost_write_->beats == 0) {
      out_.b_valid = true;
      out_.b_error = true;
      out_.b_id = lost_write_->id;
    }
  }
}

void KvPort::step(std::span<const Request> in) {
  const Request& from = in.front();
  Request to = from;
  const bool read_is_lost = from.ar_valid && !is_inside(from.ar), write_is_lost = from.aw_valid && !is_inside(from.aw);
  to.ar_valid = from.ar_valid && out_.ar_ready && !read_is_lost;
  to.aw_valid = from.aw_valid && out_.aw_ready && !write_is_lost;
  to.r_ready = from.r_ready && inner_.r_valid;
  to.b_ready = from.b_ready && inner_.b_valid;
  // Data of a burst beyond the memory come after the data of earlier bursts. The core takes no data before their
  // address.
  const bool data_is_lost = lost_write_ && write_data_ == 0;
  to.w_valid = from.w_valid && !data_is_lost;
  core_.step_host(to);
  ++cycles_;

  if (to.ar_valid) ++reads_;
  if (to.r_ready && inner_.r_last) --reads_;
  if (to.aw_valid) ++writes_, ++write_data_;
  if (to.w_valid && inner_.w_ready && to.w_last) --write_data_;
  if (to.b_ready) --writes_;
  if (lost_read_ && reads_ == 0 && out_.r_error && out_.r_valid && from.r_ready && !inner_.r_valid &&
      --lost_read_->beats == 0)
    lost_read_.reset();
  else if (from.ar_valid && out_.ar_ready && read_is_lost)
    lost_read_ = {.id = from.ar.id, .beats = from.ar.length + 1};
  if (data_is_lost && from.w_valid && out_.w_ready) lost_write_->beats = from.w_last ? 0 : 1;
  if (lost_write_ && out_.b_valid && !inner_.b_valid && from.b_ready)
    lost_write_.reset();
  else if (from.aw_valid && out_.aw_ready && write_is_lost)
    lost_write_ = {.id = from.aw.id, .beats = 1};
  present();
}

void KvPort::managers_reset() {
  lost_read_.reset();
  if (lost_write_ && write_data_ == 0) lost_write_.reset();
  // Ends the transactions in flight: unexpected data are dropped, and missing data are not written.
  const std::uint64_t end = cycles_ + kMostCycles;
  while (reads_ != 0 || writes_ != 0) {
    if (cycles_ == end) {
      fmt::print(stderr, "the kv card's memory does not answer what a reset left behind\n");
      std::abort();
    }
    Request in{.r_ready = true, .b_ready = true};
    in.w_valid = in.w_last = write_data_ != 0;
    in.w_strobes = 0;
    step({&in, 1});
  }
  lost_write_.reset();
  present();
}

}  // namespace wherry::kv::rtl
