// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/stream_functions.hpp"

#include <algorithm>
#include <utility>

#include "sim/bypass/echo.hpp"

namespace wherry::sim {
namespace {

/// This many frames wait before s_tx, so that the next begins in the cycle after the last beat of the one before.
constexpr std::size_t kFramesAhead = 2;

}  // namespace

pcie::Time EchoStream::turn(RtlCore& core, pcie::Time now) {
  while (core.frames_to_send() < kFramesAhead && core.frames_waiting() > 0) {
    if (now < next_) return next_;
    next_ = now + interval_;
    Frame frame = *core.take_frame();
    echo(std::span(frame.bytes).first(std::min<std::size_t>(frame.bytes.size(), kLineBytes)));
    core.put_frame(std::move(frame));
    ++frames_;
  }
  return pcie::kNever;
}

pcie::Time GeneratorStream::turn(RtlCore& core, pcie::Time now) {
  while (const auto frame = core.take_frame()) received.on_frame(frame->bytes, true);
  while (sent_ < options_.frames && core.frames_to_send() < kFramesAhead) {
    if (now < next_) return next_;
    const std::uint32_t bytes = options_.sizes[sent_ % options_.sizes.size()];
    Frame frame{.queue = 0, .bytes = std::vector<std::byte>(bytes)};
    nic::make_frame(frame.bytes, sent_++, 0);
    core.put_frame(std::move(frame));
    if (options_.mbits != 0) next_ += nic::slot_time(bytes, options_.mbits);
  }
  return pcie::kNever;
}

}  // namespace wherry::sim
