// SPDX-License-Identifier: Apache-2.0
#include "sim/nic/nic.hpp"

namespace wherry::sim::nic {

Nic::Nic(pcie::EventQueue& queue, const NicOptions& options)
    : context_(queue, options), out_(*this), receive_(context_), transmit_(context_, out_) {}

void Nic::attach(pcie::Port& port) noexcept {
  context_.port = &port;
  context_.reads.attach(port);
}

Status Nic::start_rx(std::uint32_t queue, std::uint64_t base, std::uint32_t descriptors, std::uint32_t buffer_bytes) {
  const bypass::Personality& nic = context_.options.nic;
  if (queue >= context_.options.queues) return Status(StatusCode::kInvalidArgument, "no such queue");
  if (base % nic.ring_align != 0 || descriptors % nic.rx_ring_multiple != 0 || descriptors > nic.ring_max ||
      descriptors == 0) {
    return Status(StatusCode::kInvalidArgument, "the receive ring's base or length is not one of this NIC's");
  }
  if (buffer_bytes == 0 || buffer_bytes % nic.rx_buffer_unit != 0 || buffer_bytes > nic.rx_buffer_max) {
    return Status(StatusCode::kInvalidArgument, "the receive buffer's size is not one of this NIC's");
  }
  receive_.start(queue, base, descriptors, buffer_bytes);
  return {};
}

Status Nic::start_tx(std::uint32_t queue, std::uint64_t base, std::uint32_t descriptors, std::uint64_t head_writeback) {
  const bypass::Personality& nic = context_.options.nic;
  if (queue >= context_.options.queues) return Status(StatusCode::kInvalidArgument, "no such queue");
  if (base % nic.ring_align != 0 || descriptors % nic.tx_ring_multiple != 0 || descriptors > nic.ring_max ||
      descriptors == 0) {
    return Status(StatusCode::kInvalidArgument, "the transmit ring's base or length is not one of this NIC's");
  }
  if (head_writeback != 0 && nic.tx_head_offset == 0 && !nic.tx_head_context) {
    return Status(StatusCode::kInvalidArgument, "this NIC has no head write-back");
  }
  transmit_.start(queue, base, descriptors);
  transmit_.set_head_writeback(queue, head_writeback);
  return {};
}

void Nic::set_link(bool up) {
  link_up_ = up;
  transmit_.set_link(up || loopback_);
}

void Nic::set_bus_master(bool on) {
  context_.port->set_bus_master(on);
  if (!on) return;
  context_.reads.resume();
  receive_.resume();
  transmit_.resume();
}

void Nic::reset() {
  transmit_.reset();
  receive_.reset();
  context_.reads.reset();
  registers_.clear();
  loopback_ = false;
  transmit_.set_link(link_up_);
}

void Nic::on_frame(std::span<const std::byte> frame, bool fcs_good) {
  if (!loopback_) receive_.on_frame(frame, fcs_good, link_up_);
}

void Nic::Out::on_frame(std::span<const std::byte> frame, bool fcs_good) {
  if (nic.loopback_) {
    nic.receive_.on_frame(frame, fcs_good, true);
  } else if (nic.peer_ != nullptr) {
    nic.peer_->on_frame(frame, fcs_good);
  }
}

void Nic::on_room() {
  transmit_first_ = !transmit_first_;
  if (transmit_first_) transmit_.resume();
  receive_.resume();
  if (!transmit_first_) transmit_.resume();
}

void Nic::on_reset(pcie::ResetKind kind) {
  static_cast<void>(kind);
  reset();
}

}  // namespace wherry::sim::nic
