// SPDX-License-Identifier: Apache-2.0
#include "probe/host/memory.hpp"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "probe/pattern.hpp"

namespace wherry::probe {
namespace {

constexpr std::size_t kPage = 4096;

Status wrong(const char* what, unsigned slot, std::size_t at) {
  return {StatusCode::kInternal, fmt::format("{} (slot {}, byte {})", what, slot, at)};
}

}  // namespace

Result<Mapping> Mapping::make(std::size_t bytes, Kind kind) {
  const std::size_t size = (bytes + kPage - 1) / kPage * kPage;
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_ANONYMOUS | (kind == Kind::kShared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
  if (at == MAP_FAILED)
    return Status(StatusCode::kResourceExhausted, fmt::format("no memory of {} bytes: {}", size, std::strerror(errno)));
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  if (size >= kHuge) (void)madvise(at, size, MADV_HUGEPAGE);  // where the machine has none, pages are small
  Mapping mapping;
  mapping.data_ = {static_cast<std::byte*>(at), size};
#if defined(MADV_POPULATE_WRITE)
  if (madvise(at, size, MADV_POPULATE_WRITE) == 0) return mapping;  // since Linux 5.14
#endif
  for (std::size_t i = 0; i < size; i += kPage) mapping.data_[i] = std::byte{1};
  return mapping;
}

void Mapping::reset() noexcept {
  if (!data_.empty()) munmap(data_.data(), data_.size());
  data_ = {};
}

void fill_source(std::span<std::byte> memory, const Layout& layout, std::uint64_t seed) noexcept {
  for (unsigned slot = 0; slot < layout.slots; ++slot)
    fill_pattern(memory.subspan(layout.offset(slot), layout.bytes), seed, layout.offset(slot) - layout.align);
}

void fill_destination(std::span<std::byte> memory, const Layout& layout, std::uint64_t seed) noexcept {
  std::ranges::fill(memory, kGuard);
  for (unsigned slot = 0; slot < layout.slots; ++slot)
    fill_poison(memory.subspan(layout.offset(slot), layout.bytes), seed, layout.offset(slot) - layout.align);
}

Status check_destination(std::span<const std::byte> memory, const Layout& layout, std::uint64_t seed,
                         unsigned written) noexcept {
  const auto guarded = [&](std::size_t from, std::size_t to) {
    return std::ranges::all_of(memory.subspan(from, to - from), [](std::byte b) { return b == kGuard; });
  };
  if (!guarded(0, layout.offset(0))) return wrong("the guard before the data was written to", 0, 0);
  for (unsigned slot = 0; slot < layout.slots; ++slot) {
    const std::size_t at = layout.offset(slot);
    const auto data = memory.subspan(at, layout.bytes);
    const std::uint64_t place = at - layout.align;
    if (slot < written) {
      if (const auto byte = find_wrong(data, seed, place)) return wrong("wrong data", slot, *byte);
    } else if (const auto byte = find_touched(data, seed, place)) {
      return wrong("data where none was sent", slot, *byte);
    }
    const std::size_t end = at + layout.bytes;
    const std::size_t next = slot + 1 < layout.slots ? layout.offset(slot + 1) : memory.size();
    if (!guarded(end, next)) return wrong("the guard behind the data was written to", slot, layout.bytes);
  }
  return ok_status();
}

std::span<std::byte> landing_of(std::span<std::byte> memory, const Layout& layout) noexcept {
  if (memory.empty()) return {};
  // Only the first slot: the bytes between slots are guards, and verification checks them as guards.
  return memory.subspan(layout.offset(0), layout.bytes);
}

}  // namespace wherry::probe
