// SPDX-License-Identifier: Apache-2.0
// How a rank receives: poll() reads the inputs, calls the handlers for its own messages and forwards all others.
#include <fmt/core.h>

#include <cstring>

#include "route/client/runtime_core.hpp"

namespace wherry::route::detail {

std::uint64_t RuntimeCore::poll() noexcept {
  if (in_handler_ || router_.abandoned()) return 0;
  const std::uint64_t before = handled_;
  // If the rank has been idle for a while, measure this poll: there is no hurry.
  const std::uint64_t began = idle_.count() >= IdleTurns::kSpins ? now_ns() : 0;
  busy_ = false;
  wiring_->progress();
  in_handler_ = true;
  router_.each_input([this](Input& input) { drain(input); });
  in_handler_ = false;
  if (router_.abandoned()) [[unlikely]]
    return handled_ - before;
  step_quiesce();
  pace(busy_);
  if (!departed_.empty()) check_departed();
  if (file_ != nullptr && !communicating_ && handled_ != 0) note_first_message();
  if (promised()) router_.flush(Flush::kExplicit);  // no lane has room: the next message passes through send()
  if (began != 0 && idle_.count() > IdleTurns::kSpins) blocked_ns_ += now_ns() - began;
  return handled_ - before;
}

std::uint64_t RuntimeCore::poll_buffers(const std::function<void(ByteView)>& take) {
  if (in_handler_) return 0;
  const std::uint64_t before = router_.counts.bytes_in;
  take_ = &take;
  poll();
  take_ = nullptr;
  return router_.counts.bytes_in - before;
}

void RuntimeCore::drain(Input& input) noexcept {
  const bool worked =
      router_.drain(input, [this](const std::byte* at, const std::byte* limit) { return handle(at, limit); });
  busy_ |= worked || input.waiting;
  if (input.malformed) [[unlikely]]
    fail_malformed();
}

void RuntimeCore::fail_malformed() noexcept {
  fail(Status{
      StatusCode::kProtocol,
      fmt::format("rank {} has received bytes that are not a message: its memory was overwritten, or a rank gave "
                  "post_buffer() something else than messages",
                  place().rank)});
}

const std::byte* RuntimeCore::handle(const std::byte* at, const std::byte* limit) noexcept {
  const Rank me = place().rank;
  while (at != limit) {
    const Header header = Header::load(at);
    if (header.to() != me) return at;
    if (header.stride() > static_cast<std::size_t>(limit - at)) return nullptr;
    if (leaving_ && header.handler() != kAbortHandler) {
      at += header.stride();
      continue;
    }
    if (take_ != nullptr && header.handler() >= kFirstUserHandler) {
      at = hand_over(at, limit);
      continue;
    }
    at = handle_one(at, limit, header);
    if (at == nullptr) return nullptr;
  }
  return at;
}

/// Passes consecutive messages of the application to the caller of poll_buffers().
const std::byte* RuntimeCore::hand_over(const std::byte* at, const std::byte* limit) noexcept {
  const std::byte* end = at;
  while (end != limit) {
    const Header header = Header::load(end);
    if (header.to() != place().rank || header.handler() < kFirstUserHandler ||
        header.stride() > static_cast<std::size_t>(limit - end))
      break;
    end += header.stride();
    ++handled_;
  }
  (*take_)(ByteView(at, end));
  return end;
}

/// Handles a message, and further ones that follow it for the same handler.
const std::byte* RuntimeCore::handle_one(const std::byte* at, const std::byte* limit, Header header) noexcept {
  const std::uint32_t id = header.handler();
  if (id >= kFirstUserHandler) {
    HandlerEntry* const entry = handlers_.find(id);
    const Handled handled = entry == nullptr ? Handled{} : entry->run(entry, at, limit, header);
    handled_ += handled.count;
    if (handled.next == nullptr) fail(handlers_.refusal(id, header.size(), place().rank));
    return handled.next;
  }
  const ByteView message(at + sizeof header, header.size());
  const bool good = id == kPackHandler ? unpack(message) : handle_own(id, message);
  return good ? at + header.stride() : nullptr;
}

/// Handles messages that are packed behind one header (wherry/route_message.hpp). False: malformed.
bool RuntimeCore::unpack(ByteView pack) noexcept {
  if (pack.size() <= sizeof(Header)) return false;
  const Header header = Header::load(pack.data());
  const std::byte* const at = pack.data() + sizeof(Header);
  const std::size_t bytes = pack.size() - sizeof(Header), step = packed_stride(header.size());
  if (step == 0 || step > kMaxPackedBytes || bytes % step != 0 || header.to() != place().rank ||
      header.handler() < kFirstUserHandler)
    return false;
  const std::size_t count = bytes / step;
  if (HandlerEntry* const entry = handlers_.find(header.handler()); take_ == nullptr && entry != nullptr) {
    if (entry->pack != nullptr) {
      if (entry->pack_size != header.size()) {
        fail(handlers_.refusal(header.handler(), header.size(), place().rank));
        return false;
      }
      entry->pack(entry, at, count);
      handled_ += count;
      return true;
    }
  }
  // A receiver of low-level buffers must get each message with a header.
  unpacked_.resize(count * header.stride());
  for (std::size_t i = 0; i < count; ++i) {
    header.store(unpacked_.data() + i * header.stride());
    std::memcpy(unpacked_.data() + i * header.stride() + sizeof(Header), at + i * step, step);
  }
  return handle(unpacked_.data(), unpacked_.data() + unpacked_.size()) == unpacked_.data() + unpacked_.size();
}

/// Handles a message for one of the library's own handlers. False: malformed.
bool RuntimeCore::handle_own(std::uint32_t id, ByteView message) noexcept {
  switch (id) {
    case kFragmentHandler:
      return on_fragment(message);
    case kReplyHandler:
      return on_reply(message);
    case kReportHandler:
      return agreement_.on_report(message);
    case kOutcomeHandler:
      return agreement_.on_outcome(message);
    case kAbortHandler:
      return on_abort(message);
    case kLeftHandler:
      return on_departure(message);
    default:
      return false;
  }
}

bool RuntimeCore::on_fragment(ByteView message) noexcept {
  FragmentHead head;
  if (message.size() < sizeof head) return false;
  std::memcpy(&head, message.data(), sizeof head);
  const ByteView bytes = message.subspan(sizeof head);
  if (head.source >= ranks || head.total > kMaxMessageBytes || bytes.empty() || head.offset > head.total ||
      bytes.size() > head.total - head.offset)
    return false;
  // Only application messages and replies can be large. A fragment of a fragment, or of a pack of them, could be nested
  // thousands of levels deep, so refuse it.
  if (!may_be_sent_to(head.handler) && head.handler != kReplyHandler) return false;
  const std::uint64_t key = std::uint64_t{head.source} << 32 | head.number;
  Assembly& assembly = assemblies_[key];
  const Header header = Header::make(head.total, head.handler, place().rank);
  if (assembly.message.empty()) {
    assembly.message = spare_.take(header.stride());
    header.store(assembly.message.data());
  }
  if (Header::load(assembly.message.data()) != header) return false;
  std::memcpy(assembly.message.data() + sizeof header + head.offset, bytes.data(), bytes.size());
  assembly.received += bytes.size();
  if (assembly.received < head.total) return true;
  Bytes whole = std::move(assembly.message);
  assemblies_.erase(key);
  const bool good = handle_one(whole.data(), whole.data() + whole.size(), header) != nullptr;
  spare_.give(std::move(whole));
  return good;
}

bool RuntimeCore::on_reply(ByteView message) noexcept {
  std::uint64_t number = 0;
  if (message.size() < sizeof number) return false;
  std::memcpy(&number, message.data(), sizeof number);
  const auto it = expected_.find(number);
  if (it == expected_.end()) return false;
  const auto then = std::move(it->second);
  expected_.erase(it);
  ++handled_;
  const ByteView answer = message.subspan(sizeof number);
  if (then(answer)) return true;
  fail(Status{
      StatusCode::kFailedPrecondition,
      fmt::format("the answer to a request of rank {} has {} bytes, which is not the size of its Reply: ranks have "
                  "registered different services. Rank {} has {}",
                  place().rank, answer.size(), place().rank, handlers_.describe())});
  return false;
}

bool RuntimeCore::on_abort(ByteView message) noexcept {
  auto failure = decode_failure(message);
  if (!failure) return false;
  fail(*std::move(failure));
  return true;
}

bool RuntimeCore::on_departure(ByteView message) noexcept {
  Departure who;
  if (message.size() != sizeof who) return false;
  std::memcpy(&who, message.data(), sizeof who);
  if (who.rank >= ranks) return false;
  on_left(who);
  return true;
}

}  // namespace wherry::route::detail
