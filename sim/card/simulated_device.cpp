// SPDX-License-Identifier: Apache-2.0
#include "sim/card/simulated_device.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "dma/card.hpp"
#include "dma/generated/registers.hpp"

namespace wherry::sim::card {
namespace {

namespace reg = wherry::dma::registers;

/// x86 message addresses: 0xFEE00000 and the APIC's number (Intel SDM volume 3, 11.11). Each vector has its own data.
constexpr std::uint64_t kMessages = 0xFEE0'0000, kMessagesEnd = 0xFEF0'0000;
constexpr std::uint64_t kVectorStride = 0x1000;  // so that the address tells which one it is
/// A read without an answer returns all ones after the root's time-out. The processor never sees its
/// status.
constexpr pcie::Time kReadTime = 20 * pcie::kMillisecond;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + pcie::kPageBytes - 1) / pcie::kPageBytes * pcie::kPageBytes;
}

pcie::Time picoseconds(std::chrono::nanoseconds time) { return time.count() * pcie::kNanosecond; }

}  // namespace

SimulatedDevice::SimulatedDevice(pcie::Fabric& fabric, CardFunction& card, const DeviceOptions& options)
    : fabric_(fabric),
      card_(card),
      options_(options),
      host_(fabric.add_host(*this).value()),
      next_(options.memory_from) {
  fabric.memory().watch(kMessages, kMessagesEnd - kMessages, *this);
}

void SimulatedDevice::on_read_done(pcie::Token token, pcie::CompletionStatus status) {
  if (token != reads_) return;
  read_done_ = true;
  read_ok_ = status == pcie::CompletionStatus::kSuccess;
}

void SimulatedDevice::run_until(pcie::Time end, const bool& done) {
  pcie::EventQueue& queue = fabric_.queue();
  while (!done && queue.next() <= end && queue.step()) {
  }
  if (!done) queue.run(end);  // nothing happens before: the clock moves
}

std::uint32_t SimulatedDevice::read32(unsigned bar, std::uint64_t offset) {
  std::uint32_t value = 0;
  read_done_ = false;
  host_->post_read({.address = card_.port().bar_address(bar) + offset,
                    .bytes = sizeof value,
                    .into = reinterpret_cast<std::byte*>(&value),
                    .token = ++reads_});
  run_until(fabric_.queue().now() + kReadTime, read_done_);
  return read_done_ && read_ok_ ? value : ~std::uint32_t{0};
}

void SimulatedDevice::write32(unsigned bar, std::uint64_t offset, std::uint32_t value) {
  std::array<std::byte, sizeof value> data;
  std::memcpy(data.data(), &value, sizeof value);
  host_->post_write(card_.port().bar_address(bar) + offset, data);
}

void SimulatedDevice::write_line(unsigned bar, std::uint64_t offset, std::span<const std::byte> data) {
  host_->post_write(card_.port().bar_address(bar) + offset, data);
}

Status SimulatedDevice::set_bus_master(bool on) {
  card_.port().set_bus_master(on);
  card_.configuration_changed();
  return {};
}

Status SimulatedDevice::reset() {
  if (!options_.has_reset) return {StatusCode::kUnsupported, "the simulated card has no reset of its own"};
  const bool master = card_.port().bus_master();
  // The reset is a configuration request, and does not pass posted writes (PCIe 5.0, 2.4.1): earlier doorbells arrive
  // before it. The model resets at once, so a read flushes them first.
  static_cast<void>(read32(wherry::dma::kRegisterBar, reg::kIdOffset));
  card_.port().reset();
  const bool never = false;
  run_until(fabric_.queue().now() + options_.reset_time, never);
  if (card_.resetting()) return {StatusCode::kUnavailable, "the simulated card's reset does not end"};
  // Restores the function's configuration after the reset, as Linux does (pci_reset_function).
  write_table();
  return set_bus_master(master);
}

Result<pci::DmaMemory> SimulatedDevice::allocate(std::size_t bytes) {
  const std::size_t whole = whole_pages(bytes);
  if (next_ + whole > fabric_.memory().size())
    return Status(StatusCode::kResourceExhausted, "the simulated host has no more memory");
  // The driver needs a page boundary at the bus address, not at the address in this process.
  std::vector<std::byte>& memory = memories_.emplace_back(whole);
  fabric_.memory().back(next_, memory);
  const pci::DmaMemory made{.bytes = memory, .iova = next_};
  next_ += whole + options_.guard;
  return made;
}

Status SimulatedDevice::set_vectors(std::span<const int> eventfds) {
  eventfds_.assign(eventfds.begin(), eventfds.end());
  messages_.resize(std::max(messages_.size(), eventfds.size()));
  write_table();
  return {};
}

void SimulatedDevice::write_table() {
  for (std::uint32_t i = 0; i < eventfds_.size(); ++i) {
    write32(wherry::dma::kRegisterBar, reg::msix_address_low_offset(i),
            static_cast<std::uint32_t>(kMessages + i * kVectorStride));
    write32(wherry::dma::kRegisterBar, reg::msix_address_high_offset(i), 0);
    write32(wherry::dma::kRegisterBar, reg::msix_data_offset(i), i);
    write32(wherry::dma::kRegisterBar, reg::msix_control_offset(i), 0);
  }
  card_.msix_enable = !eventfds_.empty();
  card_.configuration_changed();
}

void SimulatedDevice::on_memory_write(std::uint64_t address, std::uint32_t bytes) {
  static_cast<void>(bytes);
  const std::uint64_t vector = (address - kMessages) / kVectorStride;
  if (vector >= eventfds_.size()) return;
  ++messages_[vector];
  const std::uint64_t one = 1;
  static_cast<void>(!::write(eventfds_[vector], &one, sizeof one));
}

std::chrono::nanoseconds SimulatedDevice::now() const {
  return std::chrono::nanoseconds(fabric_.queue().now() / pcie::kNanosecond);
}

void SimulatedDevice::pause(std::chrono::nanoseconds most) {
  const bool never = false;
  run_until(fabric_.queue().now() + picoseconds(most), never);
}

bool SimulatedDevice::wait(int eventfd, std::chrono::nanoseconds most) {
  const pcie::Time end = fabric_.queue().now() + picoseconds(most);
  pcie::EventQueue& queue = fabric_.queue();
  pollfd asked{.fd = eventfd, .events = POLLIN, .revents = 0};
  const auto total = [&] { return std::accumulate(messages_.begin(), messages_.end(), std::uint64_t{0}); };
  if (::poll(&asked, 1, 0) > 0) return true;
  for (std::uint64_t seen = total(); queue.next() <= end && queue.step();) {
    if (total() == seen) continue;
    seen = total();
    if (::poll(&asked, 1, 0) > 0) return true;
  }
  queue.run(end);
  return false;
}

}  // namespace wherry::sim::card
