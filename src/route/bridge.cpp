// SPDX-License-Identifier: Apache-2.0
#include "route/bridge.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/guarded.hpp"
#include "route/internal.hpp"

namespace wherry::route {

namespace {

/// The reason why the other end is unreachable. Ok: no failure is known.
Status lost(const fabric::Endpoint& endpoint, const std::string& who) noexcept {
  return guarded([&]() -> Status {
    if (!endpoint.failed()) return {};
    Status why = endpoint.status();
    if (endpoint.streams()) return why;  // names it
    return {why.code(), who + " cannot be reached any more: " + why.message()};
  });
}

Status unavailable(const char* before, const std::string& who, const char* after, const char* why) noexcept {
  return guarded([&] { return Status(StatusCode::kUnavailable, before + who + after + why); });
}

}  // namespace

BridgeOut::BridgeOut(RingShape shape, fabric::Endpoint endpoint, std::uint64_t secret, std::uint32_t input,
                     std::string who)
    : head_{.secret = secret, .kind = BridgeHead::Kind::kBytes, .index = input},
      credits_(shape.buffers),
      who_(std::move(who)),
      endpoint_(std::move(endpoint)) {
  const InboxShape inbox{1, shape};
  memory_ = zeroed_bytes(inbox.bytes(), 4096);
  ring_ = RingReader(memory_.get() + inbox.ring_at(0), shape);
  for (std::uint32_t i = 0; i < shape.buffers; ++i) {
    transfers_.push_back(std::make_unique<Transfer>());
    transfers_.back()->bytes.reserve(sizeof head_ + shape.buffer_bytes);
  }
}

bool BridgeOut::progress() noexcept {
  bool worked = false;
  if (!status_) return false;
  if (left_) return drop();
  if (endpoint_.failed()) {
    status_ = lost(endpoint_, who_);
    return false;
  }
  for (auto& transfer : transfers_) {
    if (transfer->done.pending() != 0 || transfer->done.error() == nullptr) continue;
    status_ = unavailable("messages to ", who_, " were lost: ", transfer->done.error());
    return false;
  }
  for (auto& transfer : transfers_) {
    if (credits_ == 0 || !status_) return worked;
    if (transfer->done.pending() != 0) continue;
    const RingReader::Part part = ring_.peek();
    if (part.malformed || part.empty()) return worked;
    const auto bytes = static_cast<std::size_t>(part.to - part.from);
    transfer->bytes.resize(sizeof head_ + bytes);
    std::memcpy(transfer->bytes.data(), &head_, sizeof head_);
    std::memcpy(transfer->bytes.data() + sizeof head_, part.from, bytes);
    ring_.advance(bytes);
    transfer->begin = taken_;
    taken_ += bytes;
    --credits_;
    worked = true;
    status_ = guarded([&] { return endpoint_.send(kBridgeMessage, transfer->bytes, transfer->done); });
  }
  return worked;
}

bool BridgeOut::has_sent(std::uint64_t bytes) const noexcept {
  if (!status_ || left_) return true;
  const auto under_way = [&](const auto& one) { return one->done.pending() != 0 && one->begin < bytes; };
  return taken_ >= bytes && std::ranges::none_of(transfers_, under_way);
}

/// Reads and drops messages; otherwise a lane that is not closed yet would fill up and block an input.
bool BridgeOut::drop() noexcept {
  bool worked = false;
  for (;;) {
    const RingReader::Part part = ring_.peek();
    if (part.malformed || part.empty()) return worked;
    for (const std::byte* at = part.from; at < part.to; at += Header::load(at).stride()) {
      const Header header = Header::load(at);
      if (!may_be_dropped(header.handler())) undelivered_ = header.to();
    }
    ring_.advance(static_cast<std::size_t>(part.to - part.from));
    worked = true;
  }
}

BridgeIn::BridgeIn(InboxShape shape, std::byte* inbox, std::uint32_t input, fabric::Endpoint endpoint,
                   std::uint64_t secret, std::uint32_t lane, std::string who)
    : ring_(inbox + shape.ring_at(input), shape.ring),
      doorbells_(reinterpret_cast<std::uint64_t*>(inbox)),
      input_(input),
      credit_{.secret = secret, .kind = BridgeHead::Kind::kCredits, .index = lane},
      left_{.secret = secret, .kind = BridgeHead::Kind::kLeft, .index = lane},
      who_(std::move(who)),
      endpoint_(std::move(endpoint)) {}

bool BridgeIn::write(ByteView bytes) noexcept {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  if (start_ != nullptr && ring_.shape().buffer_bytes - used_ < size) {
    ring_.close(used_);
    start_ = nullptr;
  }
  if (start_ == nullptr) {
    start_ = ring_.try_open();
    used_ = 0;
    if (start_ == nullptr) return false;
  }
  std::memcpy(start_ + used_, bytes.data(), size);
  used_ += size;
  ring_.publish(used_);
  doorbells_.set(input_);
  ++owed_;
  return true;
}

bool BridgeIn::say_left() {
  if (!std::exchange(said_left_, true) && status_)
    status_ = endpoint_.send(kBridgeMessage, std::as_bytes(std::span(&left_, 1)), left_sent_);
  return !status_ || left_sent_.pending() == 0;
}

bool BridgeIn::receive(ByteView bytes) {
  if (bytes.empty() || bytes.size() > ring_.shape().buffer_bytes || bytes.size() % 8 != 0) return false;
  if (waiting_.empty() && write(bytes)) return true;
  if (waiting_.size() == ring_.shape().buffers) return false;
  waiting_.emplace_back(bytes.begin(), bytes.end());
  return true;
}

bool BridgeIn::progress() noexcept {
  bool worked = false;
  while (!waiting_.empty() && write(waiting_.front())) {
    waiting_.pop_front();
    worked = true;
  }
  if (status_ && endpoint_.failed()) status_ = lost(endpoint_, who_);
  if (owed_ != 0 && credit_sent_.pending() == 0 && status_) {
    if (credit_sent_.error() != nullptr && !endpoint_.streams()) {
      status_ = unavailable("", who_, " cannot be reached any more: ", credit_sent_.error());
      return worked;
    }
    credit_sent_.reset();
    credit_.credits = owed_;
    owed_ = 0;
    status_ =
        guarded([&] { return endpoint_.send(kBridgeMessage, std::as_bytes(std::span(&credit_, 1)), credit_sent_); });
    worked = true;
  }
  return worked;
}

}  // namespace wherry::route
