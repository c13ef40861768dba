// SPDX-License-Identifier: Apache-2.0
#include "sim/dma/host_link.hpp"

#include <algorithm>

namespace wherry::sim::dma {
namespace {

constexpr std::uint32_t kBoundary = 64;  ///< the read completion boundary
constexpr std::uint32_t kLine = 64;
constexpr double kWayBack = 0.35;  ///< of the round trip
constexpr double kAhead = 50;      ///< ns of completions that the host's transmitter has in its queue

}  // namespace

void HostLink::request(const ReadRequest& request) {
  up(kRequestHeader + kFraming);
  ++reads;
  asked_ += request.bytes;
  peak_bytes = std::max(peak_bytes, asked_);
  Waiting waiting{.request = request};
  waiting.due = now_ + options_.rtt_ns * (1 - kWayBack);
  if (options_.jitter_ns > 0) waiting.due += options_.jitter_ns * random_.below(1024) / 1024;
  const bool lost = silent_ || draw(faults.lost);
  if (lost) waiting.error = Error::kTimeout;
  if (!lost && draw(faults.unsupported)) waiting.error = Error::kUnsupported;
  if (waiting.error == Error::kNone && draw(faults.aborted)) waiting.error = Error::kAborted;
  if (waiting.error == Error::kNone && draw(faults.poisoned)) waiting.error = Error::kPoisoned;
  if (waiting.error == Error::kNone && draw(faults.short_)) waiting.wrong_by = -1;
  if (waiting.error == Error::kNone && waiting.wrong_by == 0 && draw(faults.long_)) waiting.wrong_by = 1;
  if (waiting.wrong_by < 0 && request.bytes == 1) waiting.wrong_by = 1;
  const Error told = waiting.wrong_by != 0 ? Error::kMalformed : waiting.error;
  if (told != Error::kNone && on_fault) on_fault(request, told);
  if (lost) {
    asked_ -= request.bytes;
    return;
  }
  const auto place = std::ranges::upper_bound(waiting_, waiting.due, {}, &Waiting::due);
  waiting_.insert(place, waiting);
}

/// Puts the next completion of a request onto the link.
void HostLink::complete(Waiting& waiting) {
  const ReadRequest& request = waiting.request;
  const std::uint32_t total = static_cast<std::uint32_t>(static_cast<std::int64_t>(request.bytes) + waiting.wrong_by);
  std::uint32_t grain = options_.completion;
  if (options_.random_splits) grain = kBoundary * (1 + random_.below(options_.completion / kBoundary));
  const std::uint64_t begin = request.address + waiting.done;
  std::uint32_t bytes = std::min(grain - static_cast<std::uint32_t>(begin % kBoundary), total - waiting.done);
  if (!options_.random_splits)
    bytes = std::min(grain - static_cast<std::uint32_t>(begin % grain), total - waiting.done);
  // An error without data ends the request, at once or later. Poisoned data come completely, and only one of the
  // completions is marked.
  const bool without_data = waiting.error == Error::kUnsupported || waiting.error == Error::kAborted;
  const bool ends_in_error = without_data && (random_.below(2) == 0 || waiting.done + bytes == total);
  Error error = Error::kNone;
  if (ends_in_error) {
    bytes = 0;
    error = waiting.error;
  }
  if (waiting.error == Error::kPoisoned && (random_.below(2) == 0 || waiting.done + bytes == total)) {
    error = Error::kPoisoned;
    waiting.error = Error::kNone;
  }
  const bool ends = ends_in_error || waiting.done + bytes == total;
  const double size = kCompletionHeader + kFraming + bytes;
  down_free_ = std::max(down_free_, now_) + (size + (ends ? options_.extra_down_per_read : 0)) / options_.raw;
  down_bytes += size;
  for (std::uint32_t done = 0; done < std::max(bytes, 1U); done += kLine) {
    const std::uint32_t here = std::min(kLine, bytes - done);
    CompletionBeat beat{.tag = request.tag,
                        .first = done == 0,
                        .last = done + here == bytes,
                        .final_ = ends,
                        .error = error,
                        .bytes = here,
                        .address = begin + done};
    flying_.push_back({down_free_ + options_.rtt_ns * kWayBack, beat});
  }
  waiting.done += bytes;
  if (ends) waiting.done = total;
}

void HostLink::cycle() {
  now_ += kCycleNs;
  paused_read_ = draw(options_.pauses);
  paused_write_ = draw(options_.pauses);
  while (!waiting_.empty() && waiting_.front().due <= now_ && down_free_ <= now_ + kAhead) {
    std::size_t index = 0;
    if (options_.random_splits) {
      std::size_t due = 1;
      while (due < waiting_.size() && waiting_[due].due <= now_) ++due;
      index = random_.below(static_cast<std::uint32_t>(due));
    }
    Waiting& waiting = waiting_[index];
    complete(waiting);
    if (waiting.done ==
        static_cast<std::uint32_t>(static_cast<std::int64_t>(waiting.request.bytes) + waiting.wrong_by)) {
      asked_ -= waiting.request.bytes;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
  while (!flying_.empty() && flying_.front().due <= now_) {
    beats_.push_back(flying_.front().beat);
    flying_.pop_front();
  }
  if (!offered_) offered_ = !beats_.empty() && !draw(options_.pauses);
}

void HostLink::completion_taken() {
  beats_.pop_front();
  offered_ = false;
}

void HostLink::forget() {
  waiting_.clear();
  flying_.clear();
  beats_.clear();
  offered_ = false;
  asked_ = 0;
}

double read_bound(const LinkOptions& options, std::uint32_t bytes) {
  const std::uint32_t last = bytes % options.completion;
  const std::uint32_t completions = bytes / options.completion + (last != 0 ? 1 : 0);
  return options.raw * bytes / (bytes + completions * (kCompletionHeader + kFraming));
}

double write_bound(const LinkOptions& options, std::uint32_t bytes, std::uint32_t mps) {
  const std::uint32_t writes = (bytes + mps - 1) / mps;
  return options.raw * bytes / (bytes + writes * (kRequestHeader + kFraming));
}

}  // namespace wherry::sim::dma
