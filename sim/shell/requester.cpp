// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/requester.hpp"

#include <algorithm>
#include <utility>

#include "sim/shell/stream.hpp"

namespace wherry::sim::shell {

Time Requester::send(Place place, std::uint32_t bytes) {
  const Time begin = std::max(kShellClock.edge(queue_.now()), out_free_);
  trace_.see(place, begin);
  out_free_ = begin + kShellClock.cycles(beats_of(kRequestBytes + bytes));
  return out_free_;
}

void Requester::write(std::uint64_t address, std::vector<std::byte> data) {
  const Time at = send(Place::kHostWrite, static_cast<std::uint32_t>(data.size()));
  queue_.call(at, [this, address, data = std::move(data)] { port_->post_write(address, data); });
}

void Requester::read(Place place, std::uint64_t address, std::uint32_t bytes, Data data) {
  for (std::uint32_t done = 0; done < bytes;) {
    const auto page = static_cast<std::uint32_t>(kPageBytes - address % kPageBytes);
    const std::uint32_t part = std::min({bytes - done, mrrs_, page});
    const pcie::Token token = next_++;
    parts_.emplace(token, Part{place, done, data});
    queue_.call(send(place, 0), [this, address, part, token] {
      port_->post_read({.address = address, .bytes = part, .token = token});
    });
    done += part;
    address += part;
  }
}

void Requester::on_read_data(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data) {
  const Part& part = parts_.at(token);
  const auto bytes = static_cast<std::uint32_t>(data.size());
  in_free_ =
      std::max(kShellClock.edge(queue_.now()), in_free_) + kShellClock.cycles(beats_of(kCompletionBytes + bytes));
  queue_.call(in_free_, [this, &part, offset, kept = std::vector<std::byte>(data.begin(), data.end())] {
    trace_.see(part.place, queue_.now());
    part.data(part.offset + offset, kept);
  });
}

}  // namespace wherry::sim::shell
