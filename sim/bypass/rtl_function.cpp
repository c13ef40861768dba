// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/rtl_function.hpp"

#include <utility>

namespace wherry::sim {
RtlFunction::RtlFunction(InPlaceFunction& function, const RtlOptions& options)
    : function_(function), options_(options) {
  reset();
}

void RtlFunction::reset() { core_ = std::make_unique<RtlCore>(options_, &function_); }

void RtlFunction::write(std::uint32_t offset, std::span<const std::byte> data) {
  core_->write(offset, data);
  accessed_ = true;
}

void RtlFunction::read(std::uint32_t offset, std::span<std::byte> data) {
  core_->read(offset, data);
  accessed_ = true;
}

std::uint32_t RtlFunction::read_register(std::uint32_t offset) { return core_->read_register(offset); }

void RtlFunction::write_register(std::uint32_t offset, std::uint32_t value) { core_->write_register(offset, value); }

std::optional<TailWrite> RtlFunction::next_tail() { return core_->take_tail(); }

void RtlFunction::tick() {
  core_->cycle();
  if (!std::exchange(accessed_, false)) core_->run_on();
}

std::optional<Frame> RtlFunction::take() { return core_->take_frame(); }

bool RtlFunction::try_put(const Frame& frame) {
  if (frame.queue != 0 || frame.bytes.empty() || frame.bytes.size() > kMaxFrameBytes) return false;
  if (core_->frames_to_send() >= RtlCore::kFramesToSend) return false;
  core_->put_frame(frame);
  return true;
}

}  // namespace wherry::sim
