// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/content.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::sim::memory {
namespace {

std::size_t index_of(std::uint64_t address) { return address % kPageBytes / kBeatBytes; }

}  // namespace

const Content::Page* Content::find(std::uint64_t number) const {
  if (number == last_number_) return last_;
  const auto found = pages_.find(number);
  if (found == pages_.end()) return nullptr;
  last_number_ = number;
  last_ = found->second.get();
  return last_;
}

Content::Page& Content::make(std::uint64_t number) {
  if (number == last_number_) return *last_;
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) page = std::make_unique<Page>();
  last_number_ = number;
  last_ = page.get();
  return *last_;
}

Beat Content::read(std::uint64_t address) const {
  const Page* page = find(address / kPageBytes);
  return page == nullptr ? Beat{} : (*page)[index_of(address)];
}

void Content::write(std::uint64_t address, const Beat& beat, Strobes strobes) {
  Beat& there = make(address / kPageBytes)[index_of(address)];
  if (strobes == kAllBytes) {
    there = beat;
    return;
  }
  for (std::size_t i = 0; i < beat.size(); ++i) {
    std::uint32_t mask = 0;
    for (unsigned byte = 0; byte < 4; ++byte)
      if ((strobes >> (4 * i + byte) & 1) != 0) mask |= 0xffU << 8 * byte;
    there[i] = (there[i] & ~mask) | (beat[i] & mask);
  }
}

void Content::load(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const std::size_t at = address % kPageBytes, some = std::min<std::size_t>(bytes.size(), kPageBytes - at);
    std::memcpy(reinterpret_cast<std::uint8_t*>(make(address / kPageBytes).data()) + at, bytes.data(), some);
    address += some;
    bytes = bytes.subspan(some);
  }
}

void Content::dump(std::uint64_t address, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const std::size_t at = address % kPageBytes, some = std::min<std::size_t>(bytes.size(), kPageBytes - at);
    if (const Page* page = find(address / kPageBytes); page != nullptr)
      std::memcpy(bytes.data(), reinterpret_cast<const std::uint8_t*>(page->data()) + at, some);
    else
      std::fill_n(bytes.begin(), some, std::uint8_t{0});
    address += some;
    bytes = bytes.subspan(some);
  }
}

}  // namespace wherry::sim::memory
