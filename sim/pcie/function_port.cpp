// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/function_port.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace wherry::sim::pcie {
namespace {

std::uint64_t queue_bytes(const Packet& packet) { return packet.header_bytes() + packet.payload_bytes(); }
}  // namespace

FunctionPort::FunctionPort(Context& context, Outlet& outlet, Function& function, const FunctionOptions& options,
                           std::uint32_t rcb)
    : context_(context),
      outlet_(outlet),
      function_(function),
      options_(options),
      splitter_{context.options.mps, options.completion_bytes != 0 ? options.completion_bytes : context.options.mps,
                rcb, context.options.reordering.split_anywhere},
      random_(splitmix64(context.options.seed, (std::uint64_t{2} << 32) + context.places++)),
      mrrs_(options.mrrs != 0 ? options.mrrs : context.options.mrrs),
      timeout_(options.completion_timeout),
      tags_(options.tags),
      deadline_timer_(context.queue, *this, kDeadline) {
  for (std::uint32_t tag = 0; tag < options.tags; ++tag) free_tags_.push_back(static_cast<std::uint16_t>(tag));
}

// --- Sending ---

void FunctionPort::issue(Packet* packet) {
  packet->queued_by = this;
  queued_ += queue_bytes(*packet);
  context_.see(Point::kIssued, id_, *packet);
  outlet_.issue(packet);
}

void FunctionPort::left(const Packet& packet) {
  queued_ -= queue_bytes(packet);
  offer_room();
}

void FunctionPort::offer_room() {
  if (!wants_room_ || room_scheduled_ || queued_ > options_.queue_bytes || !waiting_.empty()) return;
  room_scheduled_ = true;
  context_.queue.schedule(context_.queue.now(), *this, kRoom);
}

void FunctionPort::post_write(std::uint64_t address, std::span<const std::byte> data, Attributes attributes) {
  if (!bus_master_ || !present_) {
    ++counters_.master_off;
    return;
  }
  while (!data.empty()) {
    const std::uint32_t bytes =
        request_part(address, static_cast<std::uint32_t>(std::min<std::size_t>(data.size(), kPageBytes)), mps());
    Packet* const packet = context_.pool.take(bytes);
    packet->kind = TlpKind::kWrite;
    packet->attributes = attributes;
    packet->requester = id_;
    packet->address = address;
    packet->bytes = bytes;
    std::memcpy(packet->payload, data.data(), bytes);
    ++counters_.writes_sent;
    counters_.write_bytes_sent += bytes;
    issue(packet);
    address += bytes;
    data = data.subspan(bytes);
  }
}

bool FunctionPort::try_write(std::uint64_t address, std::span<const std::byte> data, Attributes attributes) {
  if (queued_ > options_.queue_bytes) {
    want_room();
    return false;
  }
  post_write(address, data, attributes);
  return true;
}

// --- Requests for us ---

void FunctionPort::receive_write(const Packet& packet, std::uint32_t bar) {
  ++counters_.writes_received;
  counters_.write_bytes_received += packet.bytes;
  if (packet.poisoned) ++counters_.poisoned_received;
  function_.on_write({.bar = bar,
                      .offset = packet.address - bars_[bar],
                      .data = packet.data(),
                      .poisoned = packet.poisoned,
                      .requester = packet.requester,
                      .attributes = packet.attributes});
}

void FunctionPort::receive_read(const Packet& packet, std::uint32_t bar) {
  ++counters_.reads_received;
  counters_.read_bytes_wanted += packet.bytes;
  function_.on_read({.bar = bar,
                     .offset = packet.address - bars_[bar],
                     .bytes = packet.bytes,
                     .requester = packet.requester,
                     .attributes = packet.attributes,
                     .address = packet.address,
                     .tag = packet.tag,
                     .reset_count = resets_});
}

void FunctionPort::complete(const InboundRead& read, std::span<const std::byte> data, CompletionStatus status) {
  if (read.reset_count != resets_ || !present_) {
    ++counters_.stale_completes;
    return;
  }
  const bool success = status == CompletionStatus::kSuccess;
  assert(!success || data.size() == read.bytes);
  std::uint32_t offset = 0;
  do {
    const std::uint32_t left = success ? read.bytes - offset : 0;
    const std::uint32_t bytes = left == 0 ? 0 : splitter_.next(read.address + offset, left, random_);
    Packet* const packet = context_.pool.take(bytes);
    packet->kind = TlpKind::kCompletion;
    packet->status = status;
    packet->attributes = read.attributes;
    packet->tag = read.tag;
    packet->requester = read.requester;
    packet->completer = id_;
    packet->address = read.address + offset;
    packet->bytes = bytes;
    packet->offset = offset;
    packet->remaining = success ? read.bytes - offset : read.bytes;
    packet->last = !success || bytes == left;
    if (bytes != 0) std::memcpy(packet->payload, data.data() + offset, bytes);
    ++counters_.completions_sent;
    counters_.completion_bytes_sent += bytes;
    issue(packet);
    offset += bytes;
  } while (success && offset < read.bytes);
}

void FunctionPort::set_ready(bool writes, bool reads) {
  ready_writes_ = writes;
  ready_reads_ = reads;
  outlet_.ready_changed();
}

// --- State ---

void FunctionPort::set_mrrs(std::uint32_t bytes) {
  assert(bytes >= 128 && bytes <= kPageBytes && (bytes & (bytes - 1)) == 0);
  mrrs_ = bytes;
}

void FunctionPort::set_bus_master(bool on) {
  if (bus_master_ && !on) abandon_waiting();
  bus_master_ = on && present_;
}

/// Ends reads that have not got all their tags. The parts of these reads that are in flight may still end.
void FunctionPort::abandon_waiting() {
  for (const std::uint32_t index : waiting_) {
    Read& read = reads_[index];
    read.complete_issue = true;
    if (read.status == CompletionStatus::kSuccess) read.status = CompletionStatus::kAborted;
    ++counters_.reads_failed;
    if (read.open != 0) continue;
    notices_.push_back({.reset = false, .kind = {}, .token = read.request.token});
    free_reads_.push_back(index);
  }
  waiting_.clear();
  if (!notices_.empty() && !std::exchange(notices_scheduled_, true)) {
    context_.queue.schedule(context_.queue.now(), *this, kNotices);
  }
}

void FunctionPort::abandon_all(ResetKind kind) {
  bus_master_ = false;
  ++resets_;
  abandon_waiting();
  std::vector<bool> told(reads_.size(), false);
  for (std::uint16_t number = first_deadline_; number != kNoTag;) {
    Tag& tag = tags_[number];
    const std::uint16_t next = tag.next;
    if (tag.state == TagState::kWaiting) {
      if (!told[tag.read]) {
        told[tag.read] = true;
        notices_.push_back({.reset = false, .kind = {}, .token = reads_[tag.read].request.token});
        free_reads_.push_back(tag.read);
      }
      ++counters_.reads_failed;
      --pending_;
      awaited_ -= tag.remaining;
      tag.state = TagState::kQuarantined;
    }
    if (kind != ResetKind::kFunctionLevel) free_tag(number);  // nothing comes any more over a link that was down
    number = next;
  }
  notices_.push_back({.reset = true, .kind = kind, .token = 0});
  if (!std::exchange(notices_scheduled_, true)) context_.queue.schedule(context_.queue.now(), *this, kNotices);
}

void FunctionPort::reset() { abandon_all(ResetKind::kFunctionLevel); }

void FunctionPort::removed() {
  abandon_all(ResetKind::kRemoved);
  present_ = false;
}

void FunctionPort::inserted() {
  present_ = true;
  notices_.push_back({.reset = true, .kind = ResetKind::kInserted, .token = 0});
  if (!std::exchange(notices_scheduled_, true)) context_.queue.schedule(context_.queue.now(), *this, kNotices);
}

void FunctionPort::hot_reset() { abandon_all(ResetKind::kHot); }

void FunctionPort::on_event(std::uint64_t argument) {
  switch (argument) {
    case kRoom:
      room_scheduled_ = false;
      if (wants_room_ && queued_ <= options_.queue_bytes && waiting_.empty()) {
        wants_room_ = false;
        function_.on_room();
      }
      break;
    case kNotices: {
      notices_scheduled_ = false;
      // These calls may add notices, which a later event handles.
      const std::vector<Notice> notices = std::exchange(notices_, {});
      for (const Notice& notice : notices) {
        if (notice.reset) {
          function_.on_reset(notice.kind);
        } else {
          function_.on_read_done(notice.token, CompletionStatus::kAborted);
        }
      }
      break;
    }
    default:
      check_deadlines();
  }
}

}  // namespace wherry::sim::pcie
