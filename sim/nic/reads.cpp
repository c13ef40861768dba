// SPDX-License-Identifier: Apache-2.0
#include "sim/nic/reads.hpp"

namespace wherry::sim::nic {

using pcie::CompletionStatus;

bool Reads::try_read(std::uint64_t address, std::uint32_t bytes, std::byte* into, ReadOwner& owner,
                     std::uint64_t argument) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  if (!port_->try_read({.address = address, .bytes = bytes, .into = into, .token = index})) return false;
  free_.pop_back();
  slots_[index] = {.address = address, .into = into, .owner = &owner, .argument = argument, .bytes = bytes};
  return true;
}

void Reads::done(pcie::Token token, CompletionStatus status) {
  const auto index = static_cast<std::uint32_t>(token);
  Slot& slot = slots_[index];
  if (slot.stale) {
    finish(index, CompletionStatus::kAborted);
  } else if (status == CompletionStatus::kAborted) {
    slot.parked = true;
    parked_.push_back(index);
  } else if (status == CompletionStatus::kTimeout && repeats_ && slot.retries < kReadRetries) {
    ++slot.retries;
    ++counters_.retries;
    port_->post_read({.address = slot.address, .bytes = slot.bytes, .into = slot.into, .token = token});
  } else {
    finish(index, status);
  }
}

void Reads::resume() {
  std::vector<std::uint32_t> again;
  again.swap(parked_);
  for (const std::uint32_t index : again) {
    Slot& slot = slots_[index];
    slot.parked = false;
    if (!repeats_) {
      finish(index, CompletionStatus::kTimeout);
      continue;
    }
    port_->post_read({.address = slot.address, .bytes = slot.bytes, .into = slot.into, .token = index});
  }
}

void Reads::reset() {
  for (Slot& slot : slots_) slot.stale = slot.owner != nullptr;
  std::vector<std::uint32_t> over;
  over.swap(parked_);
  for (const std::uint32_t index : over) finish(index, CompletionStatus::kAborted);
}

void Reads::finish(std::uint32_t index, CompletionStatus status) {
  const Slot slot = slots_[index];
  slots_[index] = {};
  free_.push_back(index);
  slot.owner->on_read(slot.argument, status);
}

}  // namespace wherry::sim::nic
