// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/tlp_writer.hpp"

#include <algorithm>
#include <utility>

#include "sim/shell/stream.hpp"

namespace wherry::sim::shell {

void TlpWriter::open(std::uint64_t address, Time from) {
  address_ = address;
  from_ = from;
  open_ = true;
  pump(flushed_);
}

void TlpWriter::add(std::span<const std::byte> data, Time delay) {
  delay_ = delay;
  flushed_ = false;
  data_.insert(data_.end(), data.begin(), data.end());
  pump(false);
}

void TlpWriter::flush() {
  flushed_ = true;
  pump(true);
}

void TlpWriter::pump(bool all) {
  if (!open_) return;
  for (;;) {
    const auto page = static_cast<std::uint32_t>(kPageBytes - address_ % kPageBytes);
    const std::uint32_t full = std::min(mps_, page);
    const auto part = std::min(full, static_cast<std::uint32_t>(data_.size()));
    if (part == 0 || (part < full && !all)) return;
    const Time ready = std::max({kShellClock.edge(queue_.now() + delay_), from_, free_});
    free_ = ready + kShellClock.cycles(beats_of(part));
    std::vector<std::byte> data(data_.begin(), data_.begin() + part);
    data_.erase(data_.begin(), data_.begin() + part);
    queue_.call(free_, [this, to = address_, data = std::move(data)] { requester_.write(to, data); });
    address_ += part;
  }
}

}  // namespace wherry::sim::shell
