// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/requests.hpp"

#include <algorithm>
#include <utility>

#include "sim/shell/stream.hpp"

namespace wherry::sim::shell::load {

void Requests::write(Source source, std::uint64_t address, std::vector<std::byte> data) {
  const auto bytes = static_cast<std::uint32_t>(data.size());
  add(source, {address, bytes, true, std::move(data), 0});
}

void Requests::read(Source source, std::uint64_t address, std::uint32_t bytes, Data data) {
  reads_.emplace(next_, Read{std::move(data), bytes});
  add(source, {address, bytes, false, {}, next_++});
}

void Requests::add(Source source, Tlp tlp) {
  of(source).waiting.push_back(std::move(tlp));
  choose();
}

/// Gives RQ to the next engine in turn that has a TLP, for the beats of that TLP.
void Requests::choose() {
  if (busy_) return;
  for (std::size_t step = 1; step <= engines_.size(); ++step) {
    const std::size_t next = (turn_ + step) % engines_.size();
    if (engines_[next].waiting.empty()) continue;
    turn_ = next;
    busy_ = true;
    const Tlp& tlp = engines_[next].waiting.front();
    const std::uint32_t beats = beats_of(kRequestBytes + (tlp.write ? tlp.bytes : 0));
    queue_.call(kShellClock.edge(queue_.now()) + kShellClock.cycles(beats), [this] { post(); });
    return;
  }
}

/// The last beat has been taken, so the TLP goes to the link, if there is room.
void Requests::post() {
  const Tlp& tlp = engines_[turn_].waiting.front();
  const bool taken = tlp.write ? port_->try_write(tlp.address, tlp.data)
                               : port_->try_read({.address = tlp.address, .bytes = tlp.bytes, .token = tlp.token});
  stalled_ = !taken;
  if (!taken) return;
  ++tlps[turn_];
  Engine& engine = engines_[turn_];
  engine.waiting.pop_front();
  busy_ = false;
  choose();
  if (engine.waiting.size() >= kAhead) return;
  for (const auto& call : engine.on_room) call();
}

void Requests::on_room() {
  if (stalled_) post();
}

void Requests::on_read_data(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data) {
  const auto bytes = static_cast<std::uint32_t>(data.size());
  in_free_ =
      std::max(kShellClock.edge(queue_.now()), in_free_) + kShellClock.cycles(beats_of(kCompletionBytes + bytes));
  queue_.call(in_free_, [this, token, offset, kept = std::vector<std::byte>(data.begin(), data.end())] {
    const auto found = reads_.find(token);
    found->second.left -= static_cast<std::uint32_t>(kept.size());
    const Data call = found->second.data;
    if (found->second.left == 0) reads_.erase(found);
    call(offset, kept);
  });
}

void Requests::on_read_done(pcie::Token token, pcie::CompletionStatus status) {
  static_cast<void>(token);
  if (status != pcie::CompletionStatus::kSuccess) ++failed;
}

}  // namespace wherry::sim::shell::load
