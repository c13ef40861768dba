// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/stream.hpp"

#include <algorithm>

namespace wherry::sim::shell {

std::vector<Beat> cut(std::span<const std::byte> packet) {
  std::vector<Beat> beats;
  for (std::size_t at = 0; at < packet.size(); at += kBeatBytes) {
    Beat beat;
    const auto part = packet.subspan(at, std::min<std::size_t>(kBeatBytes, packet.size() - at));
    std::ranges::copy(part, beat.data.begin());
    beat.bytes = static_cast<std::uint32_t>(part.size());
    beat.last = at + kBeatBytes >= packet.size();
    beats.push_back(beat);
  }
  return beats;
}

void Pipe::beat(const Beat& beat) {
  queue_.call(queue_.now() + delay_, [this, beat] { next_.beat(beat); });
}

void PacketStore::beat(const Beat& beat) {
  packet_.push_back(beat);
  if (!beat.last) return;
  const Time begin = out_.edge(queue_.now() + delay_);
  for (std::size_t i = 0; i < packet_.size(); ++i)
    queue_.call(out_.edge(begin + out_.cycles(static_cast<std::int64_t>(i) + 1)),
                [this, one = packet_[i]] { next_.beat(one); });
  packet_.clear();
}

}  // namespace wherry::sim::shell
