// SPDX-License-Identifier: Apache-2.0
// The reads of FunctionPort: parts, tags, deadlines, completions.
#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/pcie/function_port.hpp"

namespace wherry::sim::pcie {
namespace {
constexpr std::uint64_t kLowerAddress = 128;  // a completion carries seven bits of it (Spec 2.2.9)
}  // namespace

std::uint32_t FunctionPort::take_read(const ReadRequest& request) {
  if (free_reads_.empty()) {
    free_reads_.push_back(static_cast<std::uint32_t>(reads_.size()));
    reads_.emplace_back();
  }
  const std::uint32_t index = free_reads_.back();
  free_reads_.pop_back();
  reads_[index] = Read{.request = request};
  return index;
}

bool FunctionPort::try_read(const ReadRequest& request) {
  if (queued_ > options_.queue_bytes || !waiting_.empty()) {
    want_room();
    return false;
  }
  post_read(request);
  return true;
}

void FunctionPort::post_read(const ReadRequest& request) {
  if (!bus_master_ || !present_) {
    ++counters_.master_off;
    notices_.push_back({.reset = false, .kind = {}, .token = request.token});
    if (!std::exchange(notices_scheduled_, true)) context_.queue.schedule(context_.queue.now(), *this, kNotices);
    return;
  }
  waiting_.push_back(take_read(request));
  pump_reads();
}

void FunctionPort::pump_reads() {
  while (!waiting_.empty() && !free_tags_.empty()) {
    const std::uint32_t index = waiting_.front();
    issue_part(index);
    if (reads_[index].complete_issue) waiting_.pop_front();
  }
  offer_room();
}

void FunctionPort::issue_part(std::uint32_t index) {
  Read& read = reads_[index];
  const std::uint64_t address = read.request.address + read.issued;
  const std::uint32_t bytes = request_part(address, read.request.bytes - read.issued, mrrs_);
  const std::uint16_t number = free_tags_.front();
  free_tags_.pop_front();
  Tag& tag = tags_[number];
  tag = Tag{.state = TagState::kWaiting,
            .previous = last_deadline_,
            .next = kNoTag,
            .read = index,
            .offset = read.issued,
            .bytes = bytes,
            .remaining = bytes,
            .address = address,
            .deadline = context_.queue.now() + timeout_};
  (last_deadline_ == kNoTag ? first_deadline_ : tags_[last_deadline_].next) = number;
  last_deadline_ = number;
  if (!deadline_timer_.armed()) deadline_timer_.set(tags_[first_deadline_].deadline);
  ++pending_;
  ++read.open;
  read.issued += bytes;
  read.complete_issue = read.issued == read.request.bytes;

  Packet* const packet = context_.pool.take(0);
  packet->kind = TlpKind::kRead;
  packet->attributes = read.request.attributes;
  packet->tag = number;
  packet->requester = id_;
  packet->address = address;
  packet->bytes = bytes;
  ++counters_.reads_sent;
  counters_.read_bytes_asked += bytes;
  awaited_ += bytes;
  counters_.most_bytes_awaited = std::max(counters_.most_bytes_awaited, awaited_);
  issue(packet);
}

void FunctionPort::free_tag(std::uint16_t number) {
  Tag& tag = tags_[number];
  (tag.previous == kNoTag ? first_deadline_ : tags_[tag.previous].next) = tag.next;
  (tag.next == kNoTag ? last_deadline_ : tags_[tag.next].previous) = tag.previous;
  tag.state = TagState::kFree;
  free_tags_.push_back(number);
  if (first_deadline_ == kNoTag) deadline_timer_.cancel();
}

void FunctionPort::finish_tag(std::uint16_t number, CompletionStatus status) {
  const std::uint32_t index = tags_[number].read;
  awaited_ -= tags_[number].remaining;
  free_tag(number);
  --pending_;
  Read& read = reads_[index];
  --read.open;
  if (status != CompletionStatus::kSuccess) {
    ++counters_.reads_failed;
    if (read.status == CompletionStatus::kSuccess) read.status = status;
  }
  pump_reads();
  finish_read_if_over(index);
}

void FunctionPort::finish_read_if_over(std::uint32_t index) {
  const Read& read = reads_[index];
  if (read.open != 0 || !read.complete_issue) return;
  const Token token = read.request.token;
  const CompletionStatus status = read.status;
  free_reads_.push_back(index);
  function_.on_read_done(token, status);
}

void FunctionPort::receive_completion(const Packet& packet) {
  ++counters_.completions_received;
  const bool success = packet.status == CompletionStatus::kSuccess;
  if (packet.tag >= tags_.size() || tags_[packet.tag].state == TagState::kFree) {
    ++counters_.unexpected_completions;
    return;
  }
  Tag& tag = tags_[packet.tag];
  // A device checks the byte count and the lower address (Spec 2.3.2). The answer to an earlier use of the tag differs.
  const std::uint64_t expected = tag.address + (tag.bytes - tag.remaining);
  if (success && (packet.remaining != tag.remaining || (packet.address ^ expected) % kLowerAddress != 0)) {
    ++counters_.unexpected_completions;
    return;
  }
  if (tag.state == TagState::kQuarantined) {
    ++counters_.unexpected_completions;
    tag.remaining -= packet.bytes;
    if (packet.last) {
      free_tag(packet.tag);
      pump_reads();
    }
    return;
  }
  if (!success) {
    finish_tag(packet.tag, packet.status);
    return;
  }
  counters_.completion_bytes_received += packet.bytes;
  Read& read = reads_[tag.read];
  if (packet.poisoned) {
    ++counters_.poisoned_received;
    if (read.status == CompletionStatus::kSuccess) {
      read.status = CompletionStatus::kPoisoned;
      ++counters_.reads_failed;
    }
  }
  const std::uint32_t offset = tag.offset + (tag.bytes - tag.remaining);
  tag.remaining -= packet.bytes;
  awaited_ -= packet.bytes;
  if (packet.bytes != 0) {
    if (read.request.into != nullptr) std::memcpy(read.request.into + offset, packet.payload, packet.bytes);
    const std::uint32_t resets = resets_;
    if (packet.poisoned) {
      function_.on_poisoned_data(read.request.token, offset, packet.data());
    } else {
      function_.on_read_data(read.request.token, offset, packet.data());
    }
    if (resets != resets_) return;  // it was reset in that call: the tag is in quarantine
  }
  if (packet.last) finish_tag(packet.tag, CompletionStatus::kSuccess);
}

void FunctionPort::check_deadlines() {
  const Time now = context_.queue.now();
  while (first_deadline_ != kNoTag && tags_[first_deadline_].deadline <= now) {
    const std::uint16_t number = first_deadline_;
    if (tags_[number].state == TagState::kQuarantined) {
      free_tag(number);
      pump_reads();
      continue;
    }
    ++counters_.timeouts;
    finish_tag(number, CompletionStatus::kTimeout);
  }
  if (first_deadline_ != kNoTag) deadline_timer_.set(tags_[first_deadline_].deadline);
}

}  // namespace wherry::sim::pcie
