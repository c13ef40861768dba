// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/stream_engines.hpp"

#include <algorithm>
#include <array>

namespace wherry::sim::shell::load {
C2hStream::C2hStream(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
                     Descriptors& descriptors, Notices& notices)
    : queue_(queue),
      p_(p),
      descriptors_(descriptors),
      writer_(queue, requests, Source::kC2hStream, p.mps, 0,
              [this, &notices](Packet& packet, std::uint32_t bytes, bool last) {
                free_ += beats_of(bytes);
                if (last) notices.over(packet, RingKind::kC2hStream, Source::kC2hStream);
                if (on_room) on_room();
              }),
      free_(limits.c2h_fifo) {
  descriptors_.on_descriptor(RingKind::kC2hStream,
                             [this](std::uint32_t of, std::span<const std::byte> bytes) { descriptor(of, bytes); });
}

void C2hStream::part(const Part& part) {
  std::array<std::byte, kBeatBytes> data;
  const auto bytes = std::span(data).first(part.bytes());
  fill(part.packet->id, part.index * kBeatBytes, bytes);
  if (part.index == 0) {
    current_ = writer_.begin(*part.packet, part.packet->bytes);
    waiting_[part.packet->queue].push_back({part.packet, current_});
    writer_.add(current_, bytes);
    descriptors_.need(part.packet->queue);
    return;
  }
  writer_.add(current_, bytes);
}

void C2hStream::descriptor(std::uint32_t queue, std::span<const std::byte> bytes) {
  const Waiting first = waiting_[queue].front();
  waiting_[queue].pop_front();
  // The host posted its buffers in the order of the ring: from now on this one belongs to the packet.
  first.packet->host = word_at<std::uint64_t>(bytes, 0);
  placed(*first.packet);
  descriptors_.taken(RingKind::kC2hStream, queue);
  writer_.open(first.number, first.packet->host, queue_.now() + kShellClock.cycles(p_.c2h_stream));
}

H2cStream::H2cStream(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
                     Descriptors& descriptors, Notices& notices, Feeder& feeder)
    : queue_(queue), p_(p), limits_(limits), requests_(requests), descriptors_(descriptors), feeder_(feeder) {
  descriptors_.on_descriptor(RingKind::kH2cStream, [this](std::uint32_t of, std::span<const std::byte> bytes) {
    Packet* const packet = expected_[of].front();
    expected_[of].pop_front();
    jobs_.push_back({packet, word_at<std::uint64_t>(bytes, 8), word_at<std::uint16_t>(bytes, 4)});
    issue();
  });
  requests_.on_room_of(Source::kH2cStream, [this] { issue(); });
  feeder_.left = [this, &notices](const Part& part) {
    buffered_ -= part.bytes();
    if (part.last()) notices.over(*part.packet, RingKind::kH2cStream, Source::kStatus);
    issue();
  };
}

void H2cStream::issue() {
  while (!jobs_.empty()) {
    Job& job = jobs_.front();
    const auto page = static_cast<std::uint32_t>(kPageBytes - job.address % kPageBytes);
    const std::uint32_t part = std::min({job.left, p_.mrrs, page});
    if (readings_.size() >= limits_.h2c_requests || buffered_ + part > limits_.h2c_buffer ||
        !requests_.room(Source::kH2cStream))
      return;
    const std::uint64_t number = first_ + readings_.size();
    readings_.push_back({job.packet, job.packet->bytes - job.left, part});
    buffered_ += part;
    const std::uint64_t address = job.address;
    job.address += part;
    job.left -= part;
    if (job.left == 0) {
      const std::uint32_t of = job.packet->queue;
      jobs_.pop_front();
      descriptors_.taken(RingKind::kH2cStream, of);
    }
    requests_.read(
        Source::kH2cStream, address, part,
        [this, number](std::uint32_t offset, std::span<const std::byte> bytes) { data(number, offset, bytes); });
  }
}

void H2cStream::data(std::uint64_t number, std::uint32_t offset, std::span<const std::byte> bytes) {
  Reading& reading = readings_[number - first_];
  reading.packet->wrong += differing(reading.packet->id, reading.offset + offset, bytes);
  reading.came += static_cast<std::uint32_t>(bytes.size());
  if (number != first_) return;
  pass();
  issue();
}

/// "Data is issued to the user logic in order of the requests" (PG344, H2C Stream Engine): first request, whole beats.
void H2cStream::pass() {
  const Time ready = queue_.now() + kShellClock.cycles(p_.h2c_stream);
  while (!readings_.empty()) {
    const Reading reading = readings_.front();
    const std::uint32_t there = reading.offset + reading.came;
    Packet& packet = *reading.packet;
    while (passed_ < there && (there - passed_ >= kBeatBytes || there == packet.bytes)) {
      const Part part{&packet, passed_ / kBeatBytes};
      passed_ += part.bytes();
      feeder_.add(part, ready);
    }
    if (reading.came < reading.bytes) return;
    readings_.pop_front();
    ++first_;
    if (there == packet.bytes) passed_ = 0;
  }
}

}  // namespace wherry::sim::shell::load
