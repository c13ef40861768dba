// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/rtl_endpoint.hpp"

#include <utility>

namespace wherry::sim {
RtlEndpoint::RtlEndpoint(InPlaceFunction& function, const RtlOptions& options)
    : function_(function), options_(options) {
  reset();
}

void RtlEndpoint::reset() { core_ = std::make_unique<RtlCore>(options_, &function_); }

void RtlEndpoint::write(std::uint32_t offset, std::span<const std::byte> data) {
  core_->write(offset, data);
  accessed_ = true;
}

void RtlEndpoint::read(std::uint32_t offset, std::span<std::byte> data) {
  core_->read(offset, data);
  accessed_ = true;
}

std::uint32_t RtlEndpoint::read_register(std::uint32_t offset) { return core_->read_register(offset); }

void RtlEndpoint::write_register(std::uint32_t offset, std::uint32_t value) { core_->write_register(offset, value); }

std::optional<TailWrite> RtlEndpoint::next_tail() { return core_->take_tail(); }

void RtlEndpoint::tick() {
  core_->cycle();
  if (!std::exchange(accessed_, false)) core_->run_on();
}

std::optional<Frame> RtlEndpoint::take() { return core_->take_frame(); }

bool RtlEndpoint::try_put(const Frame& frame) {
  if (frame.queue != 0 || frame.bytes.empty() || frame.bytes.size() > kMaxFrameBytes) return false;
  if (core_->frames_to_send() >= RtlCore::kFramesToSend) return false;
  core_->put_frame(frame);
  return true;
}

}  // namespace wherry::sim
