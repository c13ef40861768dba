// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/memory.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace wherry::sim::pcie {
namespace {
/// Calls `visit(page number, offset in it, offset in the range, bytes)` for each page that a range touches.
template <typename Visit>
void by_pages(std::uint64_t address, std::size_t bytes, Visit&& visit) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t in_page = (address + done) % kPageBytes;
    const std::size_t now = std::min<std::size_t>(bytes - done, kPageBytes - in_page);
    visit((address + done) / kPageBytes, in_page, done, now);
    done += now;
  }
}
}  // namespace

void HostMemory::read(std::uint64_t address, std::span<std::byte> into) const {
  assert(address <= bytes_ && into.size() <= bytes_ - address);
  by_pages(address, into.size(), [&](std::uint64_t page, std::size_t in_page, std::size_t done, std::size_t bytes) {
    if (const std::byte* place = backed(page * kPageBytes)) {
      std::memcpy(into.data() + done, place + in_page, bytes);
      return;
    }
    const auto found = pages_.find(page);
    if (found == pages_.end()) {
      std::memset(into.data() + done, 0, bytes);
    } else {
      std::memcpy(into.data() + done, found->second->data() + in_page, bytes);
    }
  });
}

void HostMemory::write(std::uint64_t address, std::span<const std::byte> data) {
  assert(address <= bytes_ && data.size() <= bytes_ - address);
  by_pages(address, data.size(), [&](std::uint64_t page, std::size_t in_page, std::size_t done, std::size_t bytes) {
    if (std::byte* theirs = backed(page * kPageBytes)) {
      std::memcpy(theirs + in_page, data.data() + done, bytes);
      return;
    }
    std::unique_ptr<Page>& place = pages_[page];
    if (!place) place = std::make_unique<Page>();  // zeros
    std::memcpy(place->data() + in_page, data.data() + done, bytes);
  });
}

void HostMemory::back(std::uint64_t address, std::span<std::byte> by) {
  assert(address % kPageBytes == 0 && by.size() % kPageBytes == 0 && address <= bytes_ &&
         by.size() <= bytes_ - address);
  backed_.push_back({address, address + by.size(), by.data()});
}

std::byte* HostMemory::backed(std::uint64_t address) const noexcept {
  for (const Backed& range : backed_)
    if (address >= range.begin && address < range.end) return range.memory + (address - range.begin);
  return nullptr;
}

void HostMemory::watch(std::uint64_t address, std::uint64_t bytes, MemoryWatcher& watcher) {
  watches_.push_back({address, address + bytes, &watcher});
}

void HostMemory::device_write(std::uint64_t address, std::span<const std::byte> data) {
  write(address, data);
  for (const Watch& watch : watches_) {
    if (address < watch.end && address + data.size() > watch.begin) {
      watch.watcher->on_memory_write(address, static_cast<std::uint32_t>(data.size()));
    }
  }
}

}  // namespace wherry::sim::pcie
