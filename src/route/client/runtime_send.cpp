// SPDX-License-Identifier: Apache-2.0
// How a rank sends: it writes the message into a lane. If the lane is full, the message goes into the backlog. If that
// is full, the rank polls first.
#include <fmt/core.h>

#include <cstring>

#include "route/client/runtime_core.hpp"

namespace wherry::route::detail {
namespace {

constexpr std::size_t kMuchBacklog = 1 << 20;  // bytes; beyond, a large message first lets the receiver catch up
constexpr int kCatchUpPolls = 256;             // at most so many polls long

}  // namespace

/// Writes a message into its lane. False: the lane has no room.
bool RuntimeCore::try_put(Rank to, std::uint32_t handler, ByteView message) noexcept {
  Lane& lane = router_.lane_of(to);
  if (lane.closed && may_be_dropped(handler)) return true;
  return router_.try_put(lane, Header::make(message.size(), handler, to), message);
}

StatusCode RuntimeCore::send(Rank to, std::uint32_t handler, ByteView message, WhenFull when_full) noexcept {
  if (!failure_) return failure_.code();
  if (to >= ranks || message.size() > kMaxMessageBytes || !may_be_sent_to(handler)) return StatusCode::kInvalidArgument;
  if (file_ != nullptr && !communicating_) note_first_message();
  const bool may_wait = when_full == WhenFull::kWait && !in_handler_;
  const bool own = (when_full == WhenFull::kWait || when_full == WhenFull::kWouldBlock) && !in_handler_;
  const bool large = Header::stride_of(message.size()) > backlog_.max_whole();
  for (bool first = true;; first = false) {
    if (own && promised()) {
      if (phase_ == Phase::kDone) return StatusCode::kFailedPrecondition;
    } else if (large) {
      // With more backlog, receivers are already behind, and the copy would go to memory outside of all caches.
      if (when_full == WhenFull::kWouldBlock && backlog_.bytes() > kMuchBacklog) break;
      for (int i = 0; i < kCatchUpPolls && may_wait && failure_ && backlog_.bytes() > kMuchBacklog; ++i) poll();
      if (backlog_.add(to, handler, message, when_full == WhenFull::kMust)) {
        ++sent;
        backlog_.push();
        return StatusCode::kOk;
      }
    } else {
      bool taken = try_put(to, handler, message);
      if (!taken && may_wait && first) {
        ++would_block_;
        poll();
        continue;
      }
      if (!taken && when_full != WhenFull::kWouldBlock)
        taken = backlog_.add(to, handler, message, when_full == WhenFull::kMust);
      if (taken) {
        ++sent;
        return StatusCode::kOk;
      }
    }
    if (!may_wait) break;
    poll();
    if (!failure_) return failure_.code();
  }
  ++would_block_;
  if (when_full != WhenFull::kWait) return StatusCode::kWouldBlock;
  fail_full("sends more than can leave", "Send less from handlers, or raise backlog_bytes");
  return failure_.code();
}

/// Notices are never refused, because there are only few at a time.
void RuntimeCore::send_notice(Rank to, std::uint32_t handler, ByteView message) noexcept {
  if (!notices_.empty() || !try_put(to, handler, message))
    notices_.push_back({to, handler, Bytes(message.begin(), message.end())});
}

std::uint64_t RuntimeCore::expect(std::function<bool(ByteView)> then) {
  const std::uint64_t number = next_request_++;
  expected_.emplace(number, std::move(then));
  return number;
}

void RuntimeCore::send_reply(Rank to, std::uint64_t number, ByteView reply) noexcept {
  if (!failure_) return;
  if (to >= ranks)
    return fail(Status{StatusCode::kProtocol, fmt::format("a request came from rank {} of {}", to, ranks)});
  Bytes message(sizeof number + reply.size());
  std::memcpy(message.data(), &number, sizeof number);
  if (!reply.empty()) std::memcpy(message.data() + sizeof number, reply.data(), reply.size());
  const bool large = Header::stride_of(message.size()) > backlog_.max_whole();
  if ((large || !try_put(to, kReplyHandler, message)) && !backlog_.add(to, kReplyHandler, message, false)) {
    return fail_full("answers more than can leave",
                     "Let ranks wait for answers before they send further requests, or raise backlog_bytes");
  }
  ++sent;  // replies count: quiesce() waits for them
}

/// A handler cannot wait for room, because only the poll() that called it can make room.
void RuntimeCore::fail_full(std::string_view what, std::string_view remedy) noexcept {
  fail(Status{StatusCode::kResourceExhausted,
              fmt::format("a handler of rank {} {}: {} bytes are waiting for full buffers, and "
                          "Options::backlog_bytes allows {}. {}",
                          place().rank, what, backlog_.bytes(), backlog_.budget(), remedy)});
}

std::span<std::byte> RuntimeCore::try_buffer(Rank towards, std::size_t bytes) noexcept {
  if (!failure_ || towards >= ranks || bytes > router_.buffer_bytes() || (!in_handler_ && promised())) return {};
  Lane& lane = router_.lane_of(towards);
  std::byte* const at = router_.room(lane, bytes, towards);
  return at == nullptr ? std::span<std::byte>() : std::span(at, bytes);
}

void RuntimeCore::post_buffer(Rank towards, std::size_t bytes, std::uint64_t messages) noexcept {
  if (router_.abandoned()) return;
  router_.lane_of(towards).at += bytes;
  sent += messages;
}

}  // namespace wherry::route::detail
