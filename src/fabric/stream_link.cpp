// SPDX-License-Identifier: Apache-2.0
#include "fabric/stream_link.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/guarded.hpp"

namespace wherry::fabric {
namespace {

constexpr std::size_t kAhead = std::size_t{64} << 10;
constexpr std::size_t kPieces = 64;            // of one write
constexpr std::size_t kRepliesAtOnce = 16;     // answers made ready together
constexpr std::size_t kFirstPart = 64 << 10;   // room for a message of which nothing has come
constexpr std::size_t kKeptMessage = 1 << 20;  // a larger buffer is given back after its message
alignas(64) constexpr std::array<std::byte, 16384> kZeros{};

Status malformed(const char* what) {
  return {StatusCode::kProtocol, fmt::format("the other side sent {}: the connection ends", what)};
}

iovec piece(const std::byte* data, std::size_t bytes) { return {const_cast<std::byte*>(data), bytes}; }

}  // namespace

StreamLink::StreamLink(Host& host) : host_(host), ahead_(kAhead) {}

StreamLink::~StreamLink() { close({StatusCode::kUnavailable, "closed"}); }  // needs no memory

void StreamLink::attach(std::unique_ptr<ByteStream> stream) {
  if (status_) stream_ = std::move(stream);
}

bool StreamLink::under_way() const noexcept {
  for (std::size_t i = first_; i < queue_.size(); ++i) {
    if (queue_[i].done != nullptr) return true;
  }
  return !gets_.empty();
}

void StreamLink::close(Status why) noexcept {
  if (!status_) return;
  status_ = std::move(why);
  for (; first_ < queue_.size(); ++first_) {
    if (queue_[first_].done != nullptr) queue_[first_].done->op_done("the connection ended");
  }
  queue_.clear();
  first_ = at_ = 0;
  replies_.clear();
  for (const Get& get : gets_) get.done->op_done("the connection ended");
  gets_.clear();
  asked_ = 0;
}

void StreamLink::lose(Status why) noexcept {
  if (lost_ && !attempt([&] { lost_ = why; })) lost_ = no_memory();
  close(std::move(why));
}

// ---------------------------------------------------------------- out

StreamLink::Out& StreamLink::next_out(FrameType type, std::uint32_t number, std::uint64_t body_bytes) {
  if (first_ == queue_.size()) {
    queue_.clear();
    first_ = 0;
  } else if (first_ >= 64 && first_ > queue_.size() / 2) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  Out& out = queue_.emplace_back();
  const FrameHead head{body_bytes, type, number};
  std::memcpy(out.head.data(), &head, sizeof head);
  out.head_bytes = sizeof head;
  return out;
}

/// Counts the operation in `done`, and tries to send at once.
Status StreamLink::finish_enqueue(Completion& done) {
  queue_.back().done = &done;
  done.op_started();
  if (!pumping_out_) (void)pump_out(~std::size_t{0});
  return ok_status();
}

Status StreamLink::send(std::uint32_t id, ByteView message, Completion& done) {
  if (!status_) return lost();  // who has left gets nothing more
  Out& out = next_out(FrameType::kMessage, id, message.size());
  out.body = message;
  return finish_enqueue(done);
}

Status StreamLink::get(std::byte* to, std::uint64_t address, std::size_t bytes, Completion& done) {
  if (!status_) return status_;
  gets_.push_back({to, address, bytes, next_read_++, false, &done});
  done.op_started();
  if (!attempt([&] { ask(); })) close(no_memory());  // which tells `done`
  if (!pumping_out_) (void)pump_out(~std::size_t{0});
  return ok_status();
}

/// Sends reads up to the number that the other side allows to wait.
void StreamLink::ask() {
  for (; asked_ < gets_.size() && asked_ < kMaxReads; ++asked_) {
    const Get& get = gets_[asked_];
    const std::uint64_t body[2] = {get.address, get.bytes};
    Out& out = next_out(FrameType::kRead, get.number, sizeof body);
    std::memcpy(out.head.data() + out.head_bytes, body, sizeof body);
    out.head_bytes += sizeof body;
  }
}

Status StreamLink::put(const std::byte* from, std::uint64_t address, std::size_t bytes, Completion& done) {
  if (!status_) return status_;
  if (bytes > kMaxPutBytes || bytes % 8 != 0 || address % 8 != 0)
    return {StatusCode::kInvalidArgument, fmt::format("a put of {} bytes over the stream transport", bytes)};
  Out& out = next_out(FrameType::kPut, 0, sizeof address + bytes);
  std::memcpy(out.head.data() + out.head_bytes, &address, sizeof address);
  std::memcpy(out.head.data() + out.head_bytes + sizeof address, from, bytes);
  out.head_bytes += sizeof address + bytes;
  return finish_enqueue(done);
}

Status StreamLink::flush(Completion& done) {
  if (!status_) return status_;
  if (first_ == queue_.size()) return ok_status();
  (void)queue_.emplace_back();  // nothing, after everything
  return finish_enqueue(done);
}

bool StreamLink::say_bye() {
  if (!status_) return true;
  if (!std::exchange(said_bye_, true)) (void)next_out(FrameType::kBye, 0, 0);
  if (!pumping_out_) (void)pump_out(~std::size_t{0});
  return !status_ || first_ == queue_.size();
}

void StreamLink::queue_replies() {
  for (std::size_t i = 0; i < kRepliesAtOnce && !replies_.empty(); ++i) {
    const Reply reply = replies_.front();
    replies_.pop_front();
    const auto outcome = static_cast<std::uint64_t>(reply.outcome);
    const FrameHead done{sizeof outcome, FrameType::kDone, reply.number};
    if (reply.outcome == ReadOutcome::kOk) {
      Out& out = next_out(FrameType::kData, reply.number, reply.bytes);
      out.body = {reinterpret_cast<const std::byte*>(reply.address), reply.bytes};
      std::memcpy(out.tail.data(), &done, sizeof done);
      std::memcpy(out.tail.data() + sizeof done, &outcome, sizeof outcome);
      out.tail_bytes = sizeof done + sizeof outcome;
    } else {
      Out& out = next_out(FrameType::kDone, reply.number, sizeof outcome);
      std::memcpy(out.head.data() + out.head_bytes, &outcome, sizeof outcome);
      out.head_bytes += sizeof outcome;
    }
  }
}

void StreamLink::wrote(std::size_t bytes) {
  at_ += bytes;
  while (first_ < queue_.size() && at_ >= queue_[first_].total()) {
    Out& out = queue_[first_];
    at_ -= out.total();
    if (out.done != nullptr) out.done->op_done(nullptr);
    ++first_;
  }
}

/// An exception ends the connection, because half a frame may have been sent. Waiting callers get an error.
bool StreamLink::pump_out(std::size_t budget) noexcept {
  if (stream_ == nullptr || !status_) return false;
  bool worked = false;
  pumping_out_ = true;
  if (!attempt([&] { worked = write_out(budget); })) close(no_memory());
  pumping_out_ = false;
  return worked;
}

bool StreamLink::write_out(std::size_t budget) {
  bool worked = false;
  for (;;) {
    if (first_ == queue_.size()) queue_replies();
    if (first_ == queue_.size()) {
      careful_ = false;
      break;
    }
    if (budget == 0) {
      unfinished_ = true;
      break;
    }
    std::array<iovec, kPieces> pieces;
    std::size_t count = 0, bytes = 0, skip = at_;
    bool in_body = false;  // the first piece is of a body
    const auto add = [&](const std::byte* data, std::size_t size, bool body) {
      if (size == 0 || count == kPieces || (careful_ && count == 1)) return;
      if (skip >= size) {
        skip -= size;
        return;
      }
      if (count == 0) in_body = body;
      pieces[count++] = piece(data + skip, size - skip);
      bytes += size - skip;
      skip = 0;
    };
    for (std::size_t i = first_; i < queue_.size() && count + 3 <= kPieces; ++i) {
      const Out& out = queue_[i];
      add(out.head.data(), out.head_bytes, false);
      if (!out.unreadable) {
        add(out.body.data(), out.body.size(), true);
      } else if (skip < out.body.size()) {
        // A part of the body has already been sent. So send zeros for the rest, a page at a time.
        const std::size_t rest = out.body.size() - skip;
        skip = 0;
        add(kZeros.data(), std::min(rest, kZeros.size()), false);
        if (rest > kZeros.size()) break;
      } else {
        skip -= out.body.size();
      }
      add(out.tail.data(), out.tail_bytes, false);
      if (careful_ && count == 1) break;
    }
    if (count == 0) {
      wrote(0);  // only empty ones: flushes
      continue;
    }
    const ByteStream::Moved moved = stream_->write({pieces.data(), count});
    if (moved.outcome == ByteStream::Outcome::kMoved) {
      worked = true;
      wrote(moved.bytes);
      budget -= std::min(budget, moved.bytes);
    } else if (moved.outcome == ByteStream::Outcome::kUnreadable && !careful_) {
      careful_ = true;
    } else if (moved.outcome == ByteStream::Outcome::kUnreadable && in_body && queue_[first_].tail_bytes != 0) {
      Out& out = queue_[first_];
      out.unreadable = true;
      const auto fault = ReadOutcome::kFault;
      std::memcpy(out.tail.data() + sizeof(FrameHead), &fault, sizeof fault);
      careful_ = false;
    } else if (moved.outcome == ByteStream::Outcome::kNotNow) {
      break;
    } else {
      close({StatusCode::kUnavailable, stream_->why()});
      break;
    }
  }
  return worked;
}

// ---------------------------------------------------------------- in

Result<std::span<std::byte>> StreamLink::on_head(const FrameHead& head) {
  if (other_left_) return malformed("more after it had left");
  switch (head.type) {
    case FrameType::kMessage:
      if (head.bytes > host_.largest_message()) return malformed("a message that is too long");
      return on_part(head, 0);
    case FrameType::kRead:
      if (head.bytes != 16) return malformed("a wrong read");
      if (replies_.size() >= kMaxReads) return malformed("more reads than may wait");
      return std::span(small_).first(16);
    case FrameType::kData:
      if (gets_.empty() || gets_.front().number != head.number || gets_.front().bytes != head.bytes ||
          gets_.front().filled)
        return malformed("memory that was not asked for");
      gets_.front().filled = true;
      return std::span(gets_.front().to, gets_.front().bytes);
    case FrameType::kDone:
      if (head.bytes != 8 || gets_.empty() || gets_.front().number != head.number)
        return malformed("an answer to no question");
      return std::span(small_).first(8);
    case FrameType::kPut:
      if (head.bytes < 16 || head.bytes > small_.size() || head.bytes % 8 != 0) return malformed("a wrong put");
      return std::span(small_).first(head.bytes);
    case FrameType::kBye:
      if (head.bytes != 0) return malformed("a wrong farewell");
      return std::span<std::byte>();
  }
  return malformed("a frame of no known type");
}

/// The memory for a message grows with the received bytes, not with the length that the head claims.
Result<std::span<std::byte>> StreamLink::on_part(const FrameHead& head, std::uint64_t have) {
  const std::uint64_t part = std::min(head.bytes - have, std::max<std::uint64_t>(kFirstPart, have));
  if (message_.size() < have + part) message_.resize(have + part);
  return std::span<std::byte>(message_).subspan(have, part);
}

Status StreamLink::on_frame(const FrameHead& head) {
  switch (head.type) {
    case FrameType::kMessage:
      host_.on_message(head.number, ByteView(message_).first(head.bytes));
      if (message_.capacity() > kKeptMessage) Bytes().swap(message_);
      break;
    case FrameType::kRead:
      return on_read(head.number);
    case FrameType::kData:
      break;
    case FrameType::kDone:
      return on_done(head.number);
    case FrameType::kPut:
      return on_put(std::span(small_).first(head.bytes));
    case FrameType::kBye:
      other_left_ = true;
      break;
  }
  return ok_status();
}

Status StreamLink::on_read(std::uint32_t number) {
  std::uint64_t body[2];
  std::memcpy(body, small_.data(), sizeof body);
  const bool offered = body[1] != 0 && host_.may_read(body[0], body[1]);
  replies_.push_back({body[0], body[1], number, offered ? ReadOutcome::kOk : ReadOutcome::kNotOffered});
  return ok_status();
}

Status StreamLink::on_done(std::uint32_t) {
  auto outcome = ReadOutcome::kFault;
  std::memcpy(&outcome, small_.data(), sizeof outcome);
  const Get get = gets_.front();
  if (outcome == ReadOutcome::kOk && !get.filled) return malformed("an answer without the memory");
  gets_.pop_front();
  --asked_;
  get.done->op_done(outcome == ReadOutcome::kOk           ? nullptr
                    : outcome == ReadOutcome::kNotOffered ? "the memory is not registered there"
                                                          : "the memory cannot be read there");
  ask();  // the pump that brought this answer sends it
  return ok_status();
}

Status StreamLink::on_put(ByteView body) {
  std::uint64_t address = 0;
  std::memcpy(&address, body.data(), sizeof address);
  const ByteView data = body.subspan(sizeof address);
  if (address % 8 != 0 || !host_.may_write(address, data.size()))
    return malformed("data for memory that it may not write");
  // Write from the last word to the first, so that a reader that sees the first word sees all words.
  auto* const words = reinterpret_cast<std::uint64_t*>(address);
  for (std::size_t i = data.size() / 8; i-- > 0;) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data() + 8 * i, sizeof word);
    std::atomic_ref(words[i]).store(word, i == 0 ? std::memory_order_release : std::memory_order_relaxed);
  }
  return ok_status();
}

bool StreamLink::pump_in(std::size_t budget) noexcept {
  if (pumping_in_) return false;  // a handler asked for progress
  bool worked = false;
  pumping_in_ = true;
  if (!attempt([&] { worked = read_in(budget); })) close(no_memory());
  pumping_in_ = false;
  return worked;
}

bool StreamLink::read_in(std::size_t budget) {
  bool worked = false;
  while (stream_ != nullptr && status_) {
    if (budget == 0) {
      unfinished_ = true;
      break;
    }
    const std::span<std::byte> wanted = reader_.wanted();
    const std::array<iovec, 2> to{piece(wanted.data(), wanted.size()), piece(ahead_.data(), ahead_.size())};
    const ByteStream::Moved moved = stream_->read(to);
    if (moved.outcome == ByteStream::Outcome::kNotNow) break;
    if (moved.outcome != ByteStream::Outcome::kMoved) {
      close({StatusCode::kUnavailable, stream_->why()});
      break;
    }
    worked = true;
    budget -= std::min(budget, moved.bytes);
    const std::size_t direct = std::min(moved.bytes, wanted.size());
    Status s = reader_.filled(direct);
    if (s && moved.bytes > direct) s = reader_.feed(ByteView(ahead_).first(moved.bytes - direct));
    if (!s) close(std::move(s));
  }
  return worked;
}

bool StreamLink::pump(std::size_t budget) noexcept {
  unfinished_ = false;
  const bool in = pump_in(budget);
  const bool out = pump_out(budget);
  return in || out;
}

}  // namespace wherry::fabric
