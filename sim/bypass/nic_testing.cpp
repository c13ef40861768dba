// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/nic_testing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

namespace wherry::sim {
namespace {

constexpr std::uint32_t kWord = 4;
constexpr std::uint32_t kStatus = 8;   ///< the word of a receive descriptor that has DD
constexpr std::uint32_t kPage = 4096;  ///< no PCIe request crosses it
constexpr std::uint64_t kDoneBit = 1;  ///< DD, in the second quad word of all formats

}  // namespace

TestingNic::TestingNic(DmaTarget& card, const bypass::Personality& nic, const Place& place, const NicHabits& habits,
                       std::uint64_t seed)
    : card_(card),
      nic_(nic),
      place_(place),
      habits_(habits),
      random_(seed),
      rx_{.base = 0, .entries = place.rx_entries, .bytes = nic.rx_descriptor_bytes, .cache = {}},
      tx_{.base = kTxRing, .entries = place.tx_entries, .bytes = nic.tx_descriptor_bytes, .cache = {}} {}

void TestingNic::complain(const std::string& what) {
  if (complaint_.empty()) complaint_ = what;
}

void TestingNic::turn(std::uint32_t ticks) {
  for (; ticks > 0; --ticks) {
    card_.tick();
    while (const auto tail = card_.next_tail()) {
      ++tails_;
      if (tail->address == place_.nic_bar + nic_.rx_tail_offset)
        told(rx_, tail->value);
      else if (tail->address == place_.nic_bar + nic_.tx_tail_offset)
        told(tx_, tail->value);
      else
        complain(fmt::format("a tail is written to {:#x}", tail->address));
    }
  }
}

void TestingNic::told(Ring& ring, std::uint32_t value) {
  if (value >= ring.entries) return complain(fmt::format("tail {} of a ring of {}", value, ring.entries));
  const auto ahead = [&ring](std::uint32_t at) { return (at + ring.entries - ring.done) % ring.entries; };
  if (ahead(value) < ahead(ring.tail))
    complain(fmt::format("tail {} after {}, with the head at {}", value, ring.tail, ring.done));
  // A NIC that rounds the tail down does not see the descriptors above it.
  ring.tail = &ring == &rx_ ? value / nic_.rx_tail_granule * nic_.rx_tail_granule : value;
}

void TestingNic::write(std::uint32_t offset, const Bytes& data, std::uint32_t piece) {
  for (std::size_t at = 0; at < data.size();) {
    const auto here = static_cast<std::uint32_t>(offset + at);
    std::size_t count = std::min<std::size_t>({data.size() - at, piece - here % piece, kPage - here % kPage});
    if (habits_.words) count = std::bit_floor(count);
    card_.write(here, std::span(data).subspan(at, count));
    at += count;
  }
}

void TestingNic::read(std::uint32_t offset, std::span<std::byte> data, std::uint32_t piece) {
  struct Part {
    std::uint32_t at, count;
  };
  std::vector<Part> parts;
  for (std::uint32_t at = 0; at < data.size();) {
    const std::uint32_t here = offset + at;
    std::uint32_t count =
        std::min({static_cast<std::uint32_t>(data.size()) - at, piece - here % piece, kPage - here % kPage});
    if (habits_.words) count = std::bit_floor(count);
    parts.push_back({at, count});
    at += count;
  }
  if (habits_.shuffle)
    for (std::size_t i = parts.size(); i > 1; --i)
      std::swap(parts[i - 1], parts[random_.below(static_cast<std::uint32_t>(i))]);
  for (const Part& part : parts) card_.read(offset + part.at, data.subspan(part.at, part.count));
}

/// Reads known descriptors, at most habits_.fetch of them. False: there are none.
bool TestingNic::fetch(Ring& ring) {
  const std::uint32_t offset = ring.base + ring.fetched * ring.bytes;
  const std::uint32_t count =
      std::min({ring.known(), habits_.fetch, ring.entries - ring.fetched, (kPage - offset % kPage) / ring.bytes});
  if (count == 0) return false;
  Bytes raw(std::size_t{count} * ring.bytes);
  const std::uint32_t piece = habits_.words ? kWord : kPage;
  for (std::uint32_t at = 0; at < raw.size(); at += piece)
    card_.read(offset + at, std::span(raw).subspan(at, std::min<std::size_t>(piece, raw.size() - at)));
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto from = std::span<const std::byte>(raw).subspan(std::size_t{i} * ring.bytes, ring.bytes);
    ring.cache.push_back(bypass::load(from.first<bypass::kDescriptorBytes>()));
    if (std::any_of(from.begin() + bypass::kDescriptorBytes, from.end(),
                    [](std::byte one) { return one != std::byte{0}; }))
      complain("the second half of a descriptor is not 0");
  }
  ring.fetched = (ring.fetched + count) % ring.entries;
  return true;
}

std::uint32_t TestingNic::in_window(std::uint64_t address, std::uint32_t bytes) {
  if (address >= place_.card_bar && address - place_.card_bar <= kBarBytes - bytes)
    return static_cast<std::uint32_t>(address - place_.card_bar);
  complain(fmt::format("a buffer of {} bytes at {:#x}", bytes, address));
  return 0;
}

bool TestingNic::can_receive(std::size_t bytes) {
  while (rx_.cache.size() * kSlotBytes < bytes)
    if (!fetch(rx_)) return false;
  return true;
}

/// Descriptor bits without a meaning in this format get arbitrary values.
bypass::Descriptor TestingNic::made(const bypass::RxDone& done) {
  const bypass::Descriptor wanted = bypass::make_rx_done(nic_, done);
  bypass::Descriptor fixed;  // bits that mean something
  bypass::set_field(fixed, nic_.rx_length_low, nic_.rx_length_bits, ~0ULL);
  bypass::set_field(fixed, nic_.rx_done_bit, 1, 1);
  bypass::set_field(fixed, nic_.rx_eop_bit, 1, 1);
  fixed.high |= nic_.rx_error_mask;
  const bypass::Descriptor noise{random_(), random_()};
  return {(noise.low & ~fixed.low) | wanted.low, (noise.high & ~fixed.high) | wanted.high};
}

void TestingNic::receive(const Bytes& frame, bool bad) {
  for (std::size_t at = 0; at < frame.size(); at += kSlotBytes) {
    const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(kSlotBytes, frame.size() - at));
    const bypass::Descriptor descriptor = rx_.cache.front();
    rx_.cache.pop_front();
    if (descriptor.high != 0) complain("a receive descriptor has more than an address");
    const auto from = frame.begin() + static_cast<std::ptrdiff_t>(at);
    write(in_window(descriptor.low, part), Bytes(from, from + part), habits_.words ? kWord : habits_.piece);
    const bool end = at + part == frame.size();
    bypass::RxDone done{.bytes = part, .errors = 0, .end = end};
    if (bad && end) {
      std::uint32_t errors = nic_.rx_error_mask;  // one of them
      for (std::uint32_t skip = random_.below(static_cast<std::uint32_t>(std::popcount(errors))); skip > 0; --skip)
        errors &= errors - 1;
      done.errors = errors & (~errors + 1);
    }
    unwritten_.push_back({rx_.done, made(done)});
    rx_.done = (rx_.done + 1) % rx_.entries;
    if (rx_.done % habits_.line == 0) write_back();
  }
}

void TestingNic::write_descriptors(std::uint32_t index, const std::vector<bypass::Descriptor>& all) {
  const std::uint32_t offset = rx_.base + index * rx_.bytes;
  Bytes raw(all.size() * rx_.bytes);
  for (std::size_t i = 0; i < all.size(); ++i)
    bypass::store(all[i], std::span(raw).subspan(i * rx_.bytes).first<bypass::kDescriptorBytes>());
  if (!habits_.words) return write(offset, raw, kPage);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto one = raw.begin() + static_cast<std::ptrdiff_t>(i * rx_.bytes);
    Bytes early(one, one + rx_.bytes);
    early[kStatus] &= ~std::byte{kDoneBit};
    const auto here = static_cast<std::uint32_t>(offset + i * rx_.bytes);
    write(here, early, kWord);
    write(here + kStatus, Bytes(one + kStatus, one + kStatus + kWord), kWord);
  }
}

void TestingNic::write_back() {
  while (!unwritten_.empty()) {
    const std::uint32_t first = unwritten_.front().index;
    std::vector<bypass::Descriptor> together;
    while (!unwritten_.empty() && unwritten_.front().index == first + together.size() &&
           together.size() < habits_.line) {
      together.push_back(unwritten_.front().descriptor);
      unwritten_.pop_front();
    }
    write_descriptors(first, together);
  }
}

bool TestingNic::write_back_out_of_turn() {
  write_back();
  while (rx_.cache.size() < 2)
    if (!fetch(rx_)) return false;
  write_descriptors((rx_.done + 1) % rx_.entries, {made({.bytes = 60, .errors = 0, .end = true})});
  return true;
}

std::optional<Bytes> TestingNic::transmit() {
  // Transmits a frame only if all of its descriptors are known.
  std::size_t parts = 0;
  for (bool end = false; !end; ++parts) {
    if (parts == tx_.cache.size() && !fetch(tx_)) return std::nullopt;
    end = bypass::read_tx(nic_, tx_.cache[parts]).end;
  }
  Bytes frame;
  for (std::size_t i = 0; i < parts; ++i) {
    const bypass::Descriptor descriptor = tx_.cache.front();
    const bypass::TxPart part = bypass::read_tx(nic_, descriptor);
    const std::uint32_t index = tx_.done;
    tx_.cache.pop_front();
    tx_.done = (tx_.done + 1) % tx_.entries;
    const bool may_report = nic_.tx_rs_interval != 0;
    if (part.kind != bypass::TxKind::kData || part.bytes == 0 || (part.report && !may_report) ||
        bypass::make_tx(nic_, part) != descriptor)
      complain(fmt::format("a transmit descriptor is {:#x} {:#x}", descriptor.low, descriptor.high));
    Bytes buffer(part.bytes);
    read(in_window(part.address, part.bytes), buffer, habits_.words ? kWord : habits_.piece);
    frame.insert(frame.end(), buffer.begin(), buffer.end());
    if (part.report) {
      Bytes done(bypass::kDescriptorBytes);
      bypass::store(bypass::make_tx_done(nic_), std::span(done).first<bypass::kDescriptorBytes>());
      write(tx_.base + index * tx_.bytes, done, habits_.words ? kWord : kPage);
    }
    if (nic_.tx_total_bits != 0 && i + 1 == parts && part.total != frame.size())
      complain(fmt::format("a frame of {} bytes says that it has {}", frame.size(), part.total));
  }
  return frame;
}

}  // namespace wherry::sim
