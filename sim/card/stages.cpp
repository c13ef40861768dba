// SPDX-License-Identifier: Apache-2.0
#include "sim/card/stages.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::sim::card {
namespace {

using pcie::Point;
using pcie::Time;
using pcie::Tlp;
using pcie::TlpKind;
using wherry::dma::Direction;

constexpr Time kNot = -1;  // it did not happen
constexpr std::size_t index(Stage stage) { return static_cast<std::size_t>(stage); }

}  // namespace

std::string_view to_string(Stage stage) noexcept {
  static constexpr std::array<std::string_view, kStages> kNames{
      "posted", "rung",       "bell_left", "bell_came", "fetch_asked", "fetch_answered", "fetch_left", "fetch_came",
      "asked",  "asked_last", "answered",  "left",      "came",        "status",         "told"};
  return kNames[index(stage)];
}

void Stages::posted(Time now) {
  Times& times = open_.emplace_back();
  times.fill(kNot);
  times[index(Stage::kPosted)] = now;
}

void Stages::told(Time now) {
  Times times = open_.front();
  open_.pop_front();
  ++first_;
  times[index(Stage::kTold)] = now;
  if (!counts_) return;
  ++counted_;
  // A stage that did not happen (a fetch, if the descriptor is in its doorbell) ends with the stage before.
  for (std::size_t i = 1; i < kStages; ++i) {
    times[i] = std::max(times[i], times[i - 1]);
    sums_[i] += static_cast<double>(times[i] - times[i - 1]);
  }
}

void Stages::begin() {
  counts_ = true;
  counted_ = bells_ = rung_ = fetches_ = fetched_ = 0;
  sums_ = {};
  down_ = up_ = {};
}

Stages::Times* Stages::transfer(std::uint64_t number) noexcept {
  return number >= first_ && number - first_ < open_.size() ? &open_[number - first_] : nullptr;
}

bool Stages::is_data(std::uint64_t address) const noexcept {
  return address >= options_.data && address - options_.data < options_.data_bytes;
}

Stages::Times* Stages::at_address(std::uint64_t address) noexcept {
  // The oldest transfer in this place; a place is reused only after its transfer was reported.
  const std::uint64_t place = (address - options_.data) / options_.stride;
  return transfer(first_ + (place + options_.places - first_ % options_.places) % options_.places);
}

void Stages::on_tlp(Point point, std::uint32_t place, const Tlp& tlp, Time now) {
  static_cast<void>(place);
  if (point == Point::kLeft) count_bytes(tlp);
  const bool of_host = tlp.requester == pcie::kHostId;
  if (of_host) {
    if (tlp.kind == TlpKind::kWrite && tlp.address - options_.bells < wherry::dma::kBellBytes) bell(point, tlp, now);
    return;
  }
  if (is_data(tlp.address)) return data(point, tlp, now);
  if (tlp.kind == TlpKind::kWrite) {
    if (point == Point::kIssued) status(tlp, now);
    return;
  }
  if (tlp.kind == TlpKind::kRead && point == Point::kIssued) {
    ++fetches_;
    const std::uint64_t before = fetched_to_;
    descriptors(tlp, Stage::kFetchAsked, now);
    fetched_ += fetched_to_ - before;
  }
  if (tlp.kind != TlpKind::kCompletion) return;
  if (point == Point::kEntered) descriptors(tlp, Stage::kFetchAnswered, now);
  if (point == Point::kLeft) descriptors(tlp, Stage::kFetchLeft, now);
  if (point == Point::kDelivered) descriptors(tlp, Stage::kFetchCame, now);
}

void Stages::bell(Point point, const Tlp& tlp, Time now) {
  const std::uint64_t offset = (tlp.address - options_.bells) % wherry::dma::kBellStride;
  if (offset + tlp.bytes < wherry::dma::kTailOffset + sizeof(std::uint16_t)) return;
  std::uint16_t tail = 0;
  std::memcpy(&tail, tlp.payload + (wherry::dma::kTailOffset - offset), sizeof tail);
  const std::uint64_t end = told_of_ + static_cast<std::uint16_t>(tail - told_of_);
  if (point == Point::kEntered) {
    for (std::uint64_t i = told_of_; i != end; ++i)
      if (Times* const times = transfer(i)) (*times)[index(Stage::kRung)] = now;
    ++bells_;
    rung_ += end - told_of_;
    told_of_ = end;
    return;
  }
  if (point != Point::kLeft && point != Point::kDelivered) return;
  // `tail` may belong to an earlier bell. The transfers of that bell are before `tail` and have no such time yet.
  const std::size_t at = index(point == Point::kLeft ? Stage::kBellLeft : Stage::kBellCame);
  const std::uint64_t behind = told_of_ - static_cast<std::uint16_t>(static_cast<std::uint16_t>(told_of_) - tail);
  for (std::uint64_t i = behind; i-- > first_;) {
    Times* const times = transfer(i);
    if (times == nullptr || (*times)[at] != kNot) break;
    (*times)[at] = now;
  }
}

/// The descriptors that the TLP asks for, or carries. A read begins at an even descriptor, so it may fetch one again.
void Stages::descriptors(const Tlp& tlp, Stage stage, Time now) {
  constexpr std::uint64_t kBytes = wherry::dma::kDescriptorBytes;
  const std::uint64_t in_ring = tlp.address % wherry::dma::kPageBytes / kBytes;
  for (std::uint64_t i = 0; i * kBytes < tlp.bytes; ++i) {
    // Of the transfers that may use this place of the ring, the open one.
    const std::uint64_t slot = (in_ring + i) % options_.descriptors;
    const std::uint64_t number =
        first_ + (slot + options_.descriptors - first_ % options_.descriptors) % options_.descriptors;
    Times* const times = transfer(number);
    if (times == nullptr || number >= told_of_) continue;
    Time& time = (*times)[index(stage)];
    // Skip it: it was requested before.
    if (stage == Stage::kFetchAsked ? number < fetched_to_ : time != kNot) continue;
    time = now;
    if (stage == Stage::kFetchAsked) fetched_to_ = std::max(fetched_to_, number + 1);
  }
}

void Stages::status(const Tlp& tlp, Time now) {
  if (tlp.bytes != wherry::dma::kStatusWordBytes) return;  // a message
  std::uint32_t count = 0;
  std::memcpy(&count, tlp.payload, sizeof count);
  for (; static_cast<std::uint32_t>(done_) != count; ++done_)
    if (Times* const times = transfer(done_)) (*times)[index(Stage::kStatus)] = now;
}

void Stages::data(Point point, const Tlp& tlp, Time now) {
  Times* const times = at_address(tlp.address);
  if (times == nullptr) return;
  const bool asks = point == Point::kIssued && tlp.kind != TlpKind::kCompletion;
  const bool carries = tlp.kind != TlpKind::kRead;
  if (asks) {
    if (Time& first = (*times)[index(Stage::kAsked)]; first == kNot) first = now;
    (*times)[index(Stage::kAskedLast)] = now;
  }
  if (!carries) return;
  if (point == Point::kEntered) (*times)[index(Stage::kAnswered)] = now;
  if (point == Point::kLeft) (*times)[index(Stage::kLeft)] = now;
  if (point == Point::kDelivered) (*times)[index(Stage::kCame)] = now;
}

void Stages::count_bytes(const Tlp& tlp) {
  const std::uint64_t all = pcie::link_bytes(tlp, options_.overhead), payload = tlp.payload_bytes();
  const bool completion = tlp.kind == TlpKind::kCompletion, of_host = tlp.requester == pcie::kHostId;
  // Upward go the card's requests, its writes, and its answers to the host.
  const bool down = completion != of_host;
  LinkUse& use = down ? down_ : up_;
  if (of_host) {
    const bool bell = tlp.kind == TlpKind::kWrite && tlp.address - options_.bells < wherry::dma::kBellBytes;
    (bell ? use.bells : use.others) += all;
  } else if (!is_data(tlp.address)) {
    (tlp.kind == TlpKind::kWrite ? use.status : use.descriptors) += all;
  } else if (tlp.kind == TlpKind::kRead) {
    use.requests += all;
  } else {
    use.payload += payload;
    use.headers += all - payload;
  }
}

std::array<double, kStages> Stages::mean_ns() const {
  std::array<double, kStages> mean{};
  if (counted_ == 0) return mean;
  for (std::size_t i = 0; i < kStages; ++i)
    mean[i] = sums_[i] / static_cast<double>(counted_) / static_cast<double>(pcie::kNanosecond);
  return mean;
}

}  // namespace wherry::sim::card
