// SPDX-License-Identifier: Apache-2.0
#include "route/client/runtime_core.hpp"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/error_line.hpp"
#include "base/guarded.hpp"
#include "route/post.hpp"

namespace wherry::route::detail {
namespace {

constexpr std::uint64_t kSpins = 16;             // idle polls before the core is offered to others
constexpr std::uint64_t kHealthEvery = 1 << 14;  // polls between looks at the job's health

constexpr std::size_t kMuchBacklog = 1 << 20;  // beyond, a large message first lets the receiver catch up
constexpr int kTries = 256;                    // polls that it gives it

}  // namespace

RuntimeCore::RuntimeCore(const Options& options, std::unique_ptr<Wiring> wiring, std::unique_ptr<StatisticsFile> file)
    : options_(options),
      wiring_(std::move(wiring)),
      alive_(wiring_->presence(), *this),
      file_(std::move(file)),
      router_(wiring_->router()),
      backlog_(router_, wiring_->place().rank, options.backlog_bytes, kFragmentHandler),
      agreement_(wiring_->place().rank, wiring_->place().topology.family(wiring_->place().rank), kReportHandler,
                 kVerdictHandler,
                 [this](Rank to, std::uint32_t handler, ByteView message) { send_internal(to, handler, message); }) {
  lane_of = router_.table();
  ranks = router_.ranks();
  for (const Rank child : wiring_->place().topology.family(wiring_->place().rank).children)
    lanes_of_children_.push_back(router_.index_of(router_.lane_of(child)));
  if (file_ != nullptr) file_->begin();
  start_watching();
}

void RuntimeCore::in_child() noexcept {
  inherited_ = true;
  leaving_ = true;  // a handler may have forked: what comes after its message is the parent's
  std::swap(failure_, in_child_);
  fall_silent();
}

/// No lane has room: messages that are sent inline take the way through send(), which says why.
void RuntimeCore::fall_silent() noexcept {
  silent_ = true;
  router_.abandon();
}

RuntimeCore::~RuntimeCore() {
  stop_watching();
  if (inherited_) return;
  leave_job();
  if (file_ == nullptr) return;
  if (const Status s = file_->write(place(), statistics()); !s)
    error_line(fmt::format("rank {}: no statistics: {}", place().rank, s.message()));
}

void RuntimeCore::warn_of_losses() noexcept {
  (void)attempt([&] {
    const std::string who = wiring_->untaken();
    if (who.empty()) return;
    error_line(fmt::format("rank {} leaves the job and drops messages: {} did not take them within {} s", place().rank,
                           who, Post::kPatience.count()));
  });
}

void RuntimeCore::leave_job() noexcept {
  if (silent_) return;
  // What it wrote must have left; what comes for this rank is nobody's any more.
  leaving_ = true;
  const Departure departure{place().rank, agreement_.round()};
  if (failure_) tell(kLeftHandler, std::as_bytes(std::span(&departure, 1)));
  send_out();
  constexpr std::chrono::seconds kBriefly{1};
  const Deadline patience(kBriefly);  // for what others may have no room for
  // Of a job that has failed nobody needs the messages.
  while ((!news_.empty() && !patience.passed()) || !wiring_->depart(failure_ ? Post::kPatience : kBriefly)) {
    poll();
    send_out();
  }
  if (failure_) warn_of_losses();
  if (failure_) conclude();
  wiring_->leave();
  fall_silent();
  if (failure_) std::swap(failure_, over_);
}

Statistics RuntimeCore::statistics() const noexcept {
  const RouterCounts& counts = router_.counts;
  const auto why = [&](Flush flush) { return counts.flushes[static_cast<std::size_t>(flush)]; };
  return {.sent = sent,
          .handled = handled_,
          .forwarded_bytes = counts.forwarded_bytes,
          .bytes_out = counts.bytes_out,
          .bytes_in = counts.bytes_in,
          .transfers = counts.transfers,
          .flush_full = why(Flush::kFull),
          .flush_idle = why(Flush::kIdle),
          .flush_timeout = why(Flush::kTimeout),
          .flush_explicit = why(Flush::kExplicit),
          .would_block = would_block_,
          .backlog_bytes = backlog_.bytes(),
          .backlog_high = backlog_.high_water(),
          .blocked_ns = blocked_ns_};
}

std::string RuntimeCore::describe() const {
  const Topology& topology = place().topology;
  const RingShape shape = router_.lanes().front().ring.shape();
  return fmt::format(
      "rank {} of {} on node {} of {}, placement {}, {} buffers of {} bytes to each of {} next hops over {}",
      place().rank, ranks, topology.node_of(place().rank), topology.nodes(), to_string(place().placement),
      shape.buffers, shape.buffer_bytes, router_.lanes().size(), wiring_->transport());
}

std::uint32_t RuntimeCore::add(std::unique_ptr<HandlerEntry> entry, HandlerInfo info) {
  const auto id = handlers_.add(std::move(entry), std::move(info));
  if (id) return *id;
  fail(id.status());
  return 0;
}

// ---------------------------------------------------------------- sending

/// Writes a message into its lane. False: there is no room.
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
  const bool large = Header::stride_of(message.size()) > backlog_.whole();
  for (bool first = true;; first = false) {
    if (own && promised()) {
      if (phase_ == Phase::kDone) return StatusCode::kFailedPrecondition;
    } else if (large) {
      // Beyond a megabyte receivers are behind already, and what is kept back costs memory that no cache has seen.
      if (when_full == WhenFull::kWouldBlock && backlog_.bytes() > kMuchBacklog) break;
      for (int i = 0; i < kTries && may_wait && failure_ && backlog_.bytes() > kMuchBacklog; ++i) poll();
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

/// For the library's own messages, which are never refused: there are few of them at a time.
void RuntimeCore::send_internal(Rank to, std::uint32_t handler, ByteView message) noexcept {
  if (!news_.empty() || !try_put(to, handler, message))
    news_.push_back({to, handler, Bytes(message.begin(), message.end())});
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
  const bool large = Header::stride_of(message.size()) > backlog_.whole();
  if ((large || !try_put(to, kReplyHandler, message)) && !backlog_.add(to, kReplyHandler, message, false)) {
    return fail_full("answers more than can leave",
                     "Let ranks wait for answers before they send further requests, or raise backlog_bytes");
  }
  ++sent;  // an answer counts: who quiesces waits for it
}

/// A handler cannot wait: what would make room is handled by the poll() that has called it.
void RuntimeCore::fail_full(std::string_view what, std::string_view remedy) noexcept {
  fail(Status{StatusCode::kResourceExhausted,
              fmt::format("a handler of rank {} {}: {} bytes are waiting for full buffers, and "
                          "Options::backlog_bytes allows {}. {}",
                          place().rank, what, backlog_.bytes(), backlog_.budget(), remedy)});
}

// ---------------------------------------------------------------- receiving

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

bool RuntimeCore::on_fragment(ByteView message) noexcept {
  FragmentHead head;
  if (message.size() < sizeof head) return false;
  std::memcpy(&head, message.data(), sizeof head);
  const ByteView bytes = message.subspan(sizeof head);
  if (head.source >= ranks || head.total > kMaxMessageBytes || bytes.empty() || head.offset > head.total ||
      bytes.size() > head.total - head.offset)
    return false;
  // Nothing else is long; and a fragment, or a pack of them, could hold the next one, thousands deep.
  if (!may_be_sent_to(head.handler) && head.handler != kReplyHandler) return false;
  const std::uint64_t key = std::uint64_t{head.source} << 32 | head.number;
  Assembly& assembly = assemblies_[key];
  const Header header = Header::make(head.total, head.handler, place().rank);
  if (assembly.message.empty()) {
    assembly.message = spare_.take(header.stride());
    header.store(assembly.message.data());
  }
  if (Header::load(assembly.message.data()) != header) return false;
  std::memcpy(assembly.message.data() + 8 + head.offset, bytes.data(), bytes.size());
  assembly.received += bytes.size();
  if (assembly.received < head.total) return true;
  Bytes whole = std::move(assembly.message);
  assemblies_.erase(key);
  const bool good = handle_one(whole.data(), whole.data() + whole.size(), header) != nullptr;
  spare_.give(std::move(whole));
  return good;
}

const std::byte* RuntimeCore::handle_one(const std::byte* at, const std::byte* limit, Header header) noexcept {
  const std::uint32_t id = header.handler();
  if (id >= kFirstUserHandler) {
    HandlerEntry* const entry = handlers_.find(id);
    const Handled handled = entry == nullptr ? Handled{} : entry->run(entry, at, limit, header);
    handled_ += handled.count;
    if (handled.next == nullptr) fail(handlers_.refusal(id, header.size(), place().rank));
    return handled.next;
  }
  const ByteView message(at + 8, header.size());
  bool good = false;
  if (id == kPackHandler) good = unpack(message);
  if (id == kFragmentHandler) good = on_fragment(message);
  if (id == kReplyHandler) good = on_reply(message);
  if (id == kReportHandler) good = agreement_.on_report(message);
  if (id == kVerdictHandler) good = agreement_.on_verdict(message);
  if (id == kAbortHandler) {
    auto breakdown = decode_breakdown(message);
    good = breakdown.ok();
    if (good) fail(*std::move(breakdown));
  }
  if (id == kLeftHandler) {
    Departure who;
    good = message.size() == sizeof who;
    if (good) std::memcpy(&who, message.data(), sizeof who);
    good = good && who.rank < ranks;
    if (good) on_left(who);
  }
  return good ? at + header.stride() : nullptr;
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

/// Messages behind one header (wherry/route_message.hpp). False: malformed.
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
  // Somebody wants them with their headers.
  unpacked_.resize(count * header.stride());
  for (std::size_t i = 0; i < count; ++i) {
    header.store(unpacked_.data() + i * header.stride());
    std::memcpy(unpacked_.data() + i * header.stride() + sizeof(Header), at + i * step, step);
  }
  return handle(unpacked_.data(), unpacked_.data() + unpacked_.size()) == unpacked_.data() + unpacked_.size();
}

/// Gives messages of the application that follow each other to poll_buffers()' caller.
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

void RuntimeCore::drain(Input& input) noexcept {
  const bool worked =
      router_.drain(input, [this](const std::byte* at, const std::byte* limit) { return handle(at, limit); });
  busy_ |= worked || input.waiting;
  if (input.broken) [[unlikely]]
    fail_malformed();
}

void RuntimeCore::fail_malformed() noexcept {
  fail(Status{
      StatusCode::kProtocol,
      fmt::format("rank {} has received bytes that are not a message: its memory was overwritten, or a rank gave "
                  "post_buffer() something else than messages",
                  place().rank)});
}

std::uint64_t RuntimeCore::poll() noexcept {
  if (in_handler_ || silent_) return 0;
  const std::uint64_t before = handled_;
  const std::uint64_t began = idle_polls_ >= kSpins ? now_ns() : 0;  // nobody is in a hurry any more
  busy_ = false;
  wiring_->progress();
  in_handler_ = true;
  router_.each_input([this](Input& input) { drain(input); });
  in_handler_ = false;
  if (silent_) [[unlikely]]
    return handled_ - before;
  step_quiesce();
  settle(busy_);
  if (!departed_.empty()) check_departed();
  if (file_ != nullptr && !communicating_ && handled_ != 0) note_first_message();
  if (promised()) flush(Flush::kExplicit);  // closes all lanes: what is sent next passes through send()
  if (began != 0 && idle_polls_ > kSpins) blocked_ns_ += now_ns() - began;
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

void RuntimeCore::settle(bool worked) noexcept {
  if (!news_.empty()) push_news();
  if (agreement_.round() != concluded_) conclude();
  if (!backlog_.empty()) worked |= backlog_.push();
  if (router_.undeliverable()) check_undeliverable();
  if (++polls_ % kHealthEvery == 0) look_around();
  const bool sending = sent != sent_at_last_poll_;
  sent_at_last_poll_ = sent;
  if (router_.armed()) {
    if (!worked && !sending) {
      flush(Flush::kIdle);
      return;
    }
    const std::uint64_t now = now_ns();
    if (flush_at_ == 0) flush_at_ = now + static_cast<std::uint64_t>(options_.flush_after.count());
    if (now >= flush_at_) flush(Flush::kTimeout);
  }
  if (worked || sending) {
    idle_polls_ = 0;
    return;
  }
  if (++idle_polls_ < kSpins) return cpu_relax();
  sched_yield();
}

void RuntimeCore::flush(Flush why) noexcept {
  if (silent_) return;
  router_.flush(why);
  flush_at_ = 0;
}

void RuntimeCore::flush_now() noexcept { send_out(); }

void RuntimeCore::send_out() noexcept {
  if (silent_) return;
  flush(Flush::kExplicit);
  wiring_->progress();
}

// ---------------------------------------------------------------- buffers

std::span<std::byte> RuntimeCore::try_buffer(Rank towards, std::size_t bytes) noexcept {
  if (!failure_ || towards >= ranks || bytes > router_.largest() || (!in_handler_ && promised())) return {};
  Lane& lane = router_.lane_of(towards);
  std::byte* const at = router_.room(lane, bytes, towards);
  return at == nullptr ? std::span<std::byte>() : std::span(at, bytes);
}

void RuntimeCore::post_buffer(Rank towards, std::size_t bytes, std::uint64_t messages) noexcept {
  if (silent_) return;
  router_.lane_of(towards).at += bytes;
  sent += messages;
}

}  // namespace wherry::route::detail
