// SPDX-License-Identifier: Apache-2.0
// The session's table of regions: allocated, registered and temporarily registered memory, and the time at which each
// may be freed.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "base/patience.hpp"
#include "base/try.hpp"
#include "session/session_core.hpp"

namespace wherry::detail {

Result<std::uint32_t> SessionCore::allocate(std::size_t bytes) {
  if (inherited() || closed()) return broken_;
  const FabricLock lock(fabric_mutex_, shared());
  return add_region(context_->allocate(bytes));
}

Result<std::uint32_t> SessionCore::register_memory(void* data, std::size_t bytes) {
  if (inherited() || closed()) return broken_;
  const FabricLock lock(fabric_mutex_, shared());
  return add_region(context_->register_memory(data, bytes));
}

std::uint32_t SessionCore::free_entry() {
  if (!free_entries_.empty()) {
    const std::uint32_t index = free_entries_.back();
    free_entries_.pop_back();
    return index;
  }
  regions_.emplace_back();
  return static_cast<std::uint32_t>(regions_.size() - 1);
}

/// Called under the fabric lock, like all callers of free_region: UCX's context allows one call at a time.
Result<std::uint32_t> SessionCore::add_region(Result<fabric::Region> made) {
  WHERRY_ASSIGN(fabric::Region handle, std::move(made));
  Bytes key;
  WHERRY_TRY(handle.pack_key(key));
  const std::uint32_t index = free_entry();
  RegionEntry& region = regions_[index];
  region.base = reinterpret_cast<std::uint64_t>(handle.data());
  region.size = handle.size();
  region.id = next_region_id_++;
  region.used = true;
  region.key = std::move(key);
  region.handle = std::move(handle);
  registered_.push_back(index);
  return index;
}

void SessionCore::free_region(std::uint32_t index) {
  RegionEntry& region = regions_[index];
  if (region.announced != 0) dropped_.push_back(region.id);
  if (!region.automatic) std::erase(registered_, index);
  region = {};
  free_entries_.push_back(index);
}

Status SessionCore::remove_region(std::uint32_t index) {
  if (inherited()) return broken_;
  if (regions_[index].in_flight != 0) reap();
  RegionEntry& region = regions_[index];
  if (region.held != 0) {
    return {StatusCode::kFailedPrecondition, "a bound step reads this memory: release the step first"};
  }
  if (region.in_flight != 0 && !agent_gone()) {
    const auto reads = [&](const Slot& slot) { return std::ranges::find(slot.regions, index) != slot.regions.end(); };
    return {StatusCode::kFailedPrecondition,
            fmt::format("{} offloads that read this memory are in flight: wait for their tickets first",
                        std::ranges::count_if(slots_, reads))};
  }
  const FabricLock lock(fabric_mutex_, shared());
  free_region(index);
  return ok_status();
}

void SessionCore::remove_region_waiting(std::uint32_t index, std::chrono::nanoseconds patience) {
  if (inherited()) return;  // the parent's
  const Deadline deadline(patience);
  Patience pause;
  while (!remove_region(index)) {
    RegionEntry& region = regions_[index];
    if (region.held != 0) {  // as long as its step: its owner knows, and nothing is wrong
      region.orphaned = true;
      return;
    }
    if (deadline.passed()) {
      region.orphaned = true;
      // Do not use fmt::print here: it throws if standard error is closed, and destructors call this.
      std::fputs(
          fmt::format("wherry: warning: offloads in flight still read {} buffers in the {} bytes at {:#x}, which "
                      "were given up: these stay registered until those are done\n",
                      region.in_flight, region.size, region.base)
              .c_str(),
          stderr);
      return;
    }
    progress();
    pause.pause();
  }
}

/// Releases the memory of an offload that has been read.
void SessionCore::let_go(Slot& slot) {
  const FabricLock lock(fabric_mutex_, shared());
  for (const std::uint32_t index : slot.regions) {
    --regions_[index].in_flight;
    free_if_done(index);
  }
  slot.regions.clear();
  slot.temporary.clear();
  if (slot.hold == kNoHold) return;
  const std::uint32_t index = std::exchange(slot.hold, kNoHold);
  Hold& hold = holds_[index];
  if (--hold.in_flight == 0 && hold.orphaned) free_hold(index);
}

void SessionCore::free_if_done(std::uint32_t index) {
  const RegionEntry& region = regions_[index];
  if (region.orphaned && region.in_flight == 0 && region.held == 0) free_region(index);
}

// ---------------------------------------------------------------- holds

Result<std::uint32_t> SessionCore::add_hold(std::span<const std::pair<std::uint64_t, std::uint64_t>> buffers,
                                            HotVector<std::uint32_t>& hints) {
  if (inherited() || closed() || agent_gone()) return broken_;
  auto index = static_cast<std::uint32_t>(std::ranges::find_if(holds_, [](const Hold& hold) { return !hold.used; }) -
                                          holds_.begin());
  if (index == holds_.size()) holds_.emplace_back();
  Hold& hold = holds_[index];
  hold = {};
  hold.used = true;
  hold.id = next_region_id_++;
  hints.assign(buffers.size(), kNoRegion);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto [address, bytes] = buffers[i];
    if (bytes == 0) continue;
    const auto known = std::ranges::find_if(
        registered_, [&](std::uint32_t region) { return regions_[region].offers(address, bytes); });
    if (known != registered_.end()) {
      hints[i] = *known;
    } else {
      auto made = register_memory(reinterpret_cast<void*>(address), bytes);
      if (!made) {
        drop_hold(index);
        return made;
      }
      hints[i] = *made;
      hold.own.push_back(*made);
    }
    ++regions_[hints[i]].held;
    hold.regions.push_back(hints[i]);
  }
  return index;
}

void SessionCore::drop_hold(std::uint32_t index) {
  if (inherited()) return;  // the parent's
  if (holds_[index].in_flight != 0) reap();
  const FabricLock lock(fabric_mutex_, shared());
  if (holds_[index].in_flight == 0) return free_hold(index);
  holds_[index].orphaned = true;
}

std::uint32_t SessionCore::hold_in_flight(std::uint32_t index) {
  if (holds_[index].in_flight != 0 && !inherited()) reap();
  return holds_[index].in_flight;
}

/// Called under the fabric lock.
void SessionCore::free_hold(std::uint32_t index) {
  const Hold hold = std::exchange(holds_[index], Hold());
  dropped_.push_back(hold.id);
  for (const std::uint32_t region : hold.own) regions_[region].orphaned = true;
  for (const std::uint32_t region : hold.regions) {
    --regions_[region].held;
    free_if_done(region);
  }
}

Result<std::uint32_t> SessionCore::resolve(std::uint64_t address, std::uint64_t bytes, std::uint32_t& hint,
                                           Slot& slot) {
  if (hint < regions_.size() && regions_[hint].offers(address, bytes)) return hint;
  for (const std::uint32_t i : registered_) {
    if (regions_[i].offers(address, bytes)) return hint = i;
  }
  return register_temporarily(address, bytes, slot);
}

/// Registers unregistered memory until the ticket completes. UCX's own cache makes that cheap for known memory, and
/// detects memory that was released and mapped again. The agent gets the key only if it differs from the last one. A
/// longer registration would save packing the key, but would keep memory pinned (RDMA) that the application has
/// released.
Result<std::uint32_t> SessionCore::register_temporarily(std::uint64_t address, std::uint64_t bytes, Slot& slot) {
  const FabricLock lock(fabric_mutex_, shared());
  WHERRY_ASSIGN(auto handle, context_->register_memory(reinterpret_cast<void*>(address), bytes));
  key_.clear();
  WHERRY_TRY(handle.pack_key(key_));
  for (auto [it, end] = automatic_.equal_range(address); it != end; ++it) {
    const RegionEntry& region = regions_[it->second];
    if (region.size == bytes && region.key == key_) {
      slot.temporary.push_back(std::move(handle));
      return it->second;
    }
  }
  const std::uint32_t index = free_entry();
  RegionEntry& region = regions_[index];
  region.base = address;
  region.size = bytes;
  region.id = next_region_id_++;
  region.used = true;
  region.automatic = true;
  region.key = key_;
  automatic_.emplace(address, index);
  slot.temporary.push_back(std::move(handle));
  return index;
}

/// Removes unused automatic entries when there are many. It visits all entries, so it next runs when their number has
/// doubled.
void SessionCore::limit_automatic() {
  if (automatic_.size() < automatic_limit_) return;
  reap();
  const FabricLock lock(fabric_mutex_, shared());
  std::erase_if(automatic_, [this](const auto& entry) {
    if (regions_[entry.second].in_flight != 0) return false;
    free_region(entry.second);
    return true;
  });
  automatic_limit_ = std::max(kAutomaticRegions, 2 * automatic_.size());
}

}  // namespace wherry::detail
