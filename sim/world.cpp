// SPDX-License-Identifier: Apache-2.0
#include "sim/world.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kv/generated/registers.hpp"
#include "kv/net/frame_io.hpp"

namespace wherry::kv::rtl {
namespace {

using namespace registers;

constexpr Cycles kPatience = 1'000'000;

std::uint32_t number_of(const Endpoint& at) { return at.ip - World::node(0).ip; }

[[noreturn]] void fail(const char* why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(EXIT_FAILURE);
}

void await_epoch(RegisterIo& registers, std::uint64_t epoch) {
  for (Cycles waited = 0; registers.read(kEpochOffset) != epoch; ++waited)
    if (waited > kPatience) fail("the core does not enter its epoch");
}

}  // namespace

Endpoint World::node(std::uint32_t number) {
  return {.mac = 0x020000000000U + number, .ip = 0x0a000000U + number, .port = static_cast<std::uint16_t>(kUdpPort)};
}

Endpoint World::client() { return {.mac = 0x020000000064U, .ip = 0x0a000064U, .port = 40000}; }

World::World(const CoreOptions* core, bool accept, unsigned bucket_bits) : accept_(accept), bucket_bits_(bucket_bits) {
  if (core != nullptr) core_ = std::make_unique<Core>(*core);
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    ports_[i].world = this;
    ports_[i].number = i;
    if (i != 0 || !core_)
      nodes_[i] = std::make_unique<Node>(NodeOptions{.most_doublings = 0}, ports_[i]);  // as often as the core
    clear(i);
  }
}

RegisterIo& World::io(std::uint32_t node) {
  if (nodes_[node]) nodes_[node]->set_now(now_);
  due_[node] = 0;
  return nodes_[node] ? static_cast<RegisterIo&>(*nodes_[node]) : *core_;
}

void World::clear(std::uint32_t node) {
  RegisterIo& registers = io(node);
  registers.write(kEpochOffset, 0);
  await_epoch(registers, 0);
  registers.write(kBucketBitsOffset, bucket_bits_);
  registers.write(kRetryCyclesOffset, kRetry);
  for (std::uint32_t half = 0; half < 2; ++half) {  // everybody may ask
    registers.write(source_ip_offset(half), half << 31);
    registers.write(source_mask_offset(half), 1U << 31);
  }
  registers.write(value_base_offset(0), 64U << bucket_bits_);
  registers.write(lease_offset(0), ~0U);
  registers.write(lease_offset(1), ~0U);
  registers.write(kControlOffset,
                  kControlEnable.mask() | kControlClearTable.mask() | (accept_ ? kControlAccept.mask() : 0));
  for (Cycles waited = 0; kStateClearing.get(registers.read(kStateOffset)) != 0; ++waited)
    if (waited > kPatience) fail("the core does not empty its table");
  registers.write(lease_offset(0), ~0U);
  registers.write(lease_offset(1), ~0U);
}

void World::enter(std::uint32_t number, const Configuration& c) {
  RegisterIo& registers = io(number);
  registers.write(kNodeOffset, number);
  registers.write(kMembersOffset, kMembersAll.set(kMembersServing.set(0, c.serving), c.members));
  for (std::uint32_t word = 0; word < kLeaderCount; ++word) {
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < 8; ++i) value |= std::uint32_t{c.leaders[8 * word + i]} << 4 * i;
    registers.write(leader_offset(word), value);
  }
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    registers.write(peer_mac_low_offset(i), static_cast<std::uint32_t>(node(i).mac));
    registers.write(peer_mac_high_offset(i), static_cast<std::uint32_t>(node(i).mac >> 32));
    registers.write(peer_ip_offset(i), node(i).ip);
    registers.write(peer_port_offset(i), node(i).port);
  }
  registers.write(kEpochOffset, static_cast<std::uint32_t>(c.epoch));
  await_epoch(registers, c.epoch);
}

void World::Port::send(const Endpoint& to, const Message& message) {
  world->post({node(number), to, message.header, {message.value.begin(), message.value.end()}});
}

void World::send(const Endpoint& from, std::uint32_t to, const Kv& header, ByteView value) {
  queue_.emplace(now_ + kHop, Letter{from, node(to), header, {value.begin(), value.end()}});
}

void World::post(Letter letter) {
  if (number_of(letter.to) >= kNodes) return answers_.push_back(std::move(letter));
  if (loses_ && loses_(letter, number_of(letter.from), number_of(letter.to))) return;
  queue_.emplace(now_ + kHop, std::move(letter));
}

void World::deliver(const Letter& letter) {
  const std::uint32_t to = number_of(letter.to);
  if (nodes_[to]) {
    nodes_[to]->receive(letter.from, letter.message(), now_);
    due_[to] = 0;
    return;
  }
  std::vector<std::byte> frame(kHeaderBytes + letter.value.size());
  (void)build(frame, letter.from, letter.to, letter.message());
  core_->put(Side::kNet, frame);
}

void World::hear_core() {
  while (const auto frame = core_->take(Side::kNet)) {
    if (frame->bytes.size() < kHeaderBytes) fail("the core sent a wrong frame");
    const Endpoint to = destination_of(frame->bytes);
    Received received;
    if (parse(frame->bytes, to, &received) != Parsed::kOurs) fail("the core sent a wrong frame");
    const auto& [header, value] = received.message;
    post({node(0), to, header, {value.begin(), value.end()}});
  }
}

void World::run(Cycles cycles) {
  for (const Cycles end = now_ + cycles; now_ < end;) {
    while (!queue_.empty() && queue_.begin()->first <= now_) {
      const Letter letter = std::move(queue_.begin()->second);
      queue_.erase(queue_.begin());
      deliver(letter);
    }
    Cycles next = queue_.empty() ? end : std::min(end, queue_.begin()->first);
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      if (!nodes_[i]) continue;
      if (due_[i] <= now_) due_[i] = nodes_[i]->tick(now_);
      next = std::min(next, due_[i]);
    }
    if (core_) next = std::min(next, now_ + kLook);
    next = std::max(next, now_ + 1);
    if (core_) core_->run(next - now_);
    now_ = next;
    if (core_) hear_core();
  }
}

}  // namespace wherry::kv::rtl
