// SPDX-License-Identifier: Apache-2.0
#include "pci/vfio_function.hpp"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/cpu.hpp"
#include "base/try.hpp"
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace wherry::pci {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kPageBytes = 4096;
constexpr auto kSpinTime = 50us;
constexpr std::size_t kLine = 64;

#ifdef __x86_64__
/// VFIO maps BARs uncached, so stores are not combined. Nevertheless MOVDIR64B writes 64 bytes at once (Intel SDM
/// volume 2, "MOVDIR64B").
[[gnu::target("movdir64b")]] void store_line(std::byte* to, const std::byte* from) { _movdir64b(to, from); }
bool has_line_store() {
  static const bool found = [] {
    unsigned a = 7, b = 0, c = 0, d = 0;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return (c >> 28 & 1) != 0;  // CPUID.(EAX=7,ECX=0):ECX[28]
  }();
  return found;
}
#else
void store_line(std::byte*, const std::byte*) {}
bool has_line_store() { return false; }
#endif

}  // namespace

Result<std::unique_ptr<VfioFunction>> VfioFunction::open(Kernel& kernel, BusAddress at, int group, unsigned doorbells,
                                                         std::uint64_t iova_from) {
  WHERRY_ASSIGN(Vfio vfio, Vfio::open(kernel, std::span(&at, 1), std::span(&group, 1)));
  std::unique_ptr<VfioFunction> made(new VfioFunction(std::move(vfio), nullptr, 0, doorbells, kSame, iova_from));
  WHERRY_TRY(made->device().forbid_relaxed_ordering());
  WHERRY_TRY(made->map_doorbells());
  return made;
}

Result<std::unique_ptr<VfioFunction>> VfioFunction::share(Vfio& vfio, std::size_t index, unsigned doorbells,
                                                          const Places& places, std::uint64_t iova_from) {
  std::unique_ptr<VfioFunction> made(new VfioFunction({}, &vfio, index, doorbells, places, iova_from));
  WHERRY_TRY(made->map_doorbells());
  return made;
}

Status VfioFunction::map_doorbells() {
  const Place& place = places_.at(doorbells_);
  auto mapped = vfio_.map_here(index_, place.bar);
  if (!mapped) return mapped.status().code() == StatusCode::kUnsupported ? Status() : std::move(mapped).status();
  if (place.offset < mapped->size()) mapped_ = mapped->subspan(place.offset);
  return {};
}

std::uint32_t VfioFunction::read32(unsigned bar, std::uint64_t offset) {
  const Place& place = places_.at(bar);
  return device().read32(place.bar, place.offset + offset);
}

void VfioFunction::write32(unsigned bar, std::uint64_t offset, std::uint32_t value) {
  const Place& place = places_.at(bar);
  device().write32(place.bar, place.offset + offset, value);
}

void VfioFunction::write_line(unsigned bar, std::uint64_t offset, std::span<const std::byte> data) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // the descriptors are in memory before the doorbell
  if (bar != doorbells_ || mapped_.empty() || offset + data.size() > mapped_.size()) {
    const Place& place = places_.at(bar);
    static_cast<void>(device().write(place.bar, place.offset + offset, data));  // a device that is gone takes nothing
    return;
  }
  std::byte* const to = mapped_.data() + offset;
  if (data.size() == kLine && offset % kLine == 0 && has_line_store()) return store_line(to, data.data());
  // Writes 4 bytes at a time. The engine uses only the piece that it needs (docs/design/dma.md, "Doorbells").
  for (std::size_t i = 0; i < data.size(); i += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, data.data() + i, sizeof word);
    *reinterpret_cast<volatile std::uint32_t*>(to + i) = word;
  }
}

Status VfioFunction::set_bus_master(bool on) { return device().set_bus_master(on); }

Status VfioFunction::reset() {
  if (!own_) return {StatusCode::kUnsupported, "a reset of the function would also reset what its other users drive"};
  return device().reset();
}

Result<DmaMemory> VfioFunction::allocate(std::size_t bytes) {
  const std::size_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  WHERRY_ASSIGN(const std::uint64_t iova, vfio_.free_iova(whole, iova_from_));
  WHERRY_ASSIGN(const std::span<std::byte> memory, vfio_.map_memory(whole, iova));
  return DmaMemory{.bytes = memory, .iova = iova};
}

Status VfioFunction::set_vectors(std::span<const int> eventfds) { return device().set_vectors(eventfds); }

std::chrono::nanoseconds VfioFunction::now() const { return std::chrono::steady_clock::now().time_since_epoch(); }

void VfioFunction::pause(std::chrono::nanoseconds most) {
  if (most < kSpinTime)
    cpu_relax();
  else
    std::this_thread::sleep_for(most);
}

bool VfioFunction::wait(int eventfd, std::chrono::nanoseconds most) {
  const auto end = now() + most;
  for (;;) {
    pollfd asked{.fd = eventfd, .events = POLLIN, .revents = 0};
    const auto left = std::max<std::chrono::nanoseconds>(end - now(), 0ns);
    const timespec time{.tv_sec = left / 1s, .tv_nsec = (left % 1s).count()};
    const int ready = ::ppoll(&asked, 1, &time, nullptr);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace wherry::pci
