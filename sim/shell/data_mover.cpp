// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/data_mover.hpp"

#include <utility>

namespace wherry::sim::shell {

void DataMover::beat(const Beat& beat) {
  const std::uint32_t bytes = std::exchange(bytes_, 0);  // of the first beat alone
  queue_.call(queue_.now() + kShellClock.cycles(parameters_.mover_write), [this, beat, bytes] {
    if (bytes != 0) card_.write(address_, bytes, [] {});
    card_.write_data({beat.data.data(), beat.bytes});
  });
}

void DataMover::read(std::uint64_t address, std::uint32_t bytes) {
  card_.read(address, bytes, [this, bytes](std::uint32_t offset, std::span<const std::byte> data) {
    packet_.insert(packet_.end(), data.begin(), data.end());
    const bool last = offset + data.size() == bytes;
    if (packet_.size() < kBeatBytes && !last) return;
    Beat beat = cut(packet_).front();
    beat.last = last;
    packet_.clear();
    queue_.call(queue_.now() + kShellClock.cycles(parameters_.mover_read), [this, beat] { out_->beat(beat); });
  });
}

}  // namespace wherry::sim::shell
