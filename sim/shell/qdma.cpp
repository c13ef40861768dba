// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/qdma.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace wherry::sim::shell {
namespace {

template <typename Word>
Word word_at(std::span<const std::byte> bytes, std::size_t at) {
  Word word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

std::uint32_t to_boundary(std::uint64_t address) {
  return static_cast<std::uint32_t>(kPageBytes - address % kPageBytes);
}

}  // namespace

template <typename Then>
void Qdma::fetch(std::uint64_t ring, std::uint32_t bytes, Then then) {
  auto got = std::make_shared<std::vector<std::byte>>();
  requester_.read(Place::kFetch, ring, bytes, [got, bytes, then](std::uint32_t, std::span<const std::byte> data) {
    got->insert(got->end(), data.begin(), data.end());
    if (got->size() == bytes) then(std::span<const std::byte>(*got));
  });
}

/// PG302, table "AXI Memory Mapped Descriptor": source, 28 bits of length, destination.
Qdma::Transfer Qdma::memory_descriptor(std::span<const std::byte> bytes) {
  return {word_at<std::uint64_t>(bytes, 0), word_at<std::uint64_t>(bytes, 16),
          word_at<std::uint32_t>(bytes, 8) & 0xfffffffU};
}

void Qdma::host_to_stream(std::uint64_t ring) {
  fetch(ring, kH2cStreamDescriptor, [this](std::span<const std::byte> descriptor) {
    const std::uint32_t bytes = word_at<std::uint16_t>(descriptor, 4);
    requester_.read(Place::kHostRead, word_at<std::uint64_t>(descriptor, 8), bytes,
                    [this, bytes](std::uint32_t offset, std::span<const std::byte> data) {
                      stream(data, bytes - offset - static_cast<std::uint32_t>(data.size()));
                    });
  });
}

/// Data arrive; `left`: the packet's bytes after them. They go on after the pipeline's delay, without waiting for more.
void Qdma::stream(std::span<const std::byte> data, std::uint32_t left) {
  out_bytes_.insert(out_bytes_.end(), data.begin(), data.end());
  const Time ready = queue_.now() + kShellClock.cycles(parameters_.h2c_stream);
  while (out_bytes_.size() >= kBeatBytes || (left == 0 && !out_bytes_.empty())) {
    const std::size_t bytes = std::min<std::size_t>(kBeatBytes, out_bytes_.size());
    Beat beat = cut(std::span(out_bytes_).first(bytes)).front();
    out_bytes_.erase(out_bytes_.begin(), out_bytes_.begin() + static_cast<std::ptrdiff_t>(bytes));
    beat.last = left == 0 && out_bytes_.empty();
    out_free_ = std::max(ready, out_free_) + kShellClock.cycles(1);
    queue_.call(out_free_, [this, beat] { out_->beat(beat); });
  }
}

/// "Once completion data for a read request is received, an AXI write is generated" (PG302, H2C MM Engine). Each
/// request makes a write when all of its data are there.
void Qdma::host_to_card(std::uint64_t ring) {
  fetch(ring, kMemoryDescriptor, [this](std::span<const std::byte> descriptor) {
    Transfer left = memory_descriptor(descriptor);
    while (left.bytes != 0) {
      const std::uint32_t part = std::min({left.bytes, parameters_.mrrs, to_boundary(left.source)});
      auto got = std::make_shared<std::vector<std::byte>>();
      requester_.read(Place::kHostRead, left.source, part,
                      [this, part, got, to = left.destination](std::uint32_t, std::span<const std::byte> data) {
                        got->insert(got->end(), data.begin(), data.end());
                        if (got->size() < part) return;
                        const Time pass = kShellClock.cycles(parameters_.h2c_memory + beats_of(part));
                        queue_.call(queue_.now() + pass, [this, part, got, to] {
                          card_->write(to, part, [] {});
                          card_->write_data(*got);
                        });
                      });
      left = {left.source + part, left.destination + part, left.bytes - part};
    }
  });
}

void Qdma::beat(const Beat& beat) {
  writer_.add({beat.data.data(), beat.bytes}, 0);
  if (beat.last) writer_.flush();
  if (std::exchange(asked_, true)) return;
  fetch(ring_, kC2hStreamDescriptor, [this](std::span<const std::byte> descriptor) {
    writer_.open(word_at<std::uint64_t>(descriptor, 0), queue_.now() + kShellClock.cycles(parameters_.c2h_stream));
  });
}

void Qdma::card_to_host(std::uint64_t ring) {
  fetch(ring, kMemoryDescriptor, [this](std::span<const std::byte> descriptor) {
    to_host_ = memory_descriptor(descriptor);
    writer_.open(to_host_.destination, queue_.now());
    transaction();
  });
}

/// Descriptors are split at 4 KiB boundaries of the card's addresses (PG302 and PG347, C2H MM Engine). Here they are
/// also split at those of the host's addresses, because no write may cross them. The parts are transactions one after
/// the other: see Parameters::one_at_a_time.
void Qdma::transaction() {
  const Transfer now = to_host_;
  if (now.bytes == 0) return;
  const std::uint32_t part = std::min({now.bytes, to_boundary(now.source), to_boundary(now.destination)});
  to_host_ = {now.source + part, now.destination + part, now.bytes - part};
  to_host_end_ += part;
  card_->read(now.source, part, [this, part](std::uint32_t offset, std::span<const std::byte> data) {
    writer_.add(data, kShellClock.cycles(parameters_.c2h_memory));
    if (offset + data.size() == part) writer_.flush();
  });
  if (parameters_.one_at_a_time == 0) transaction();
}

void Qdma::host_has(std::uint64_t bytes) {
  if (parameters_.one_at_a_time != 0 && bytes == to_host_end_) transaction();
}

}  // namespace wherry::sim::shell
