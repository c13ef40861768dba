// SPDX-License-Identifier: Apache-2.0
#include "sim/lives.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "kv/generated/registers.hpp"
#include "kv/sim/workload.hpp"

namespace wherry::kv::rtl {
namespace {

using namespace registers;

constexpr NodeMask kAll = (1U << World::kNodes) - 1;
constexpr std::array kLosable{Kind::replicate, Kind::replicated, Kind::commit, Kind::fetch,      Kind::entry,
                              Kind::enter,     Kind::entered,    Kind::lane,   Kind::lane_record};

/// Replaces a removal by the write of its kind, because both are lost alike.
Kind plain(Kind kind) {
  if (kind == Kind::replicate_remove) return Kind::replicate;
  return kind == Kind::replicated_remove ? Kind::replicated : kind;
}

Status status_of(const Letter& letter) { return kv::status_of(letter.header); }

std::string text_of(const Letter& letter) {
  const Kv& h = letter.header;
  std::uint32_t sum = 0;
  for (const std::byte byte : letter.value) sum = sum * 31 + std::to_integer<std::uint32_t>(byte);
  return fmt::format(
      "{} of {:08x}: node {}, detail {:#04x}, epoch {}, lane {}, request {}, version {}, key {:#x}, {} bytes, {:08x}",
      name_of(letter.kind()), letter.from.ip, h.node, h.detail, h.epoch, h.client, h.request, h.version, h.key,
      letter.value.size(), sum);
}

/// A set, because answers come in any order, and more than once.
std::set<std::string> texts_of(const std::vector<Letter>& letters) {
  std::set<std::string> texts;
  for (const Letter& letter : letters) texts.insert(text_of(letter));
  return texts;
}

}  // namespace

Life::Life(const LifeOptions& options)
    : options_(options),
      random_(options.seed),
      accept_(random_.below(2) == 0),
      core_(&options.core, accept_, options.bucket_bits),
      software_(nullptr, accept_, options.bucket_bits) {
  if (options.bucket_bits > 8) keys_ = sim::keys_of_one_bucket(kCrowd, options.bucket_bits, random_.next());
  for (std::uint64_t key = random_.next(); keys_.size() < kKeys; ++key) keys_.push_back(key);
  for (Asked& asked : lanes_) asked.header.request = static_cast<std::uint32_t>(random_.next());
  plan_.members = plan_.serving = kAll;
  plan_.leaders = first_leaders(kAll);
  for (World* world : {&core_, &software_})
    world->set_losses([this](const Letter& letter, std::uint32_t from, std::uint32_t to) {
      if (from < World::kNodes && has(dead_, from)) return true;
      return has(dead_, to) || rules_.contains({plain(letter.kind()), from, to});
    });
  plan_.epoch = 1;
  enter_all();
}

LifeCounts Life::run() {
  for (step_ = 0; step_ < options_.steps; ++step_) step();
  return counts_;
}

void Life::step() {
  const std::uint32_t choice = random_.below(16);
  const bool may_lose = random_.below(2) == 0;
  choose_losses(may_lose);
  if (choice < 4)
    writes();
  else if (choice < 6)
    ask_again();
  else if (choice < 11)
    unfinished();
  else if (choice >= 14 && dead_ != 0)
    come_back();
  else if (choice >= 14 && returning_ == 0)
    die();
  else
    next_epoch();
  pass(kStep);
  compare(doing_, true);
  compare_states();
  observe(rules_.empty() && !commits_lost_);
  if (!rules_.empty() && random_.below(2) == 0) return;
  // From here on nothing is lost: late frames come, and open questions are answered.
  rules_.clear();
  pass(kStep);
  (void)core_.take_answers(), (void)software_.take_answers();
  observe(false);
  pass(kStep);
  commits_lost_ = false;
  doing_ += ", then all is heard";
  observe(true);
  compare_states();
}

void Life::choose_losses(bool any) {
  rules_.clear();
  for (std::uint32_t count = any ? 1 + random_.below(4) : 0; count > 0; --count) {
    const std::uint32_t from = random_.below(World::kNodes);
    const std::uint32_t to = (from + 1 + random_.below(World::kNodes - 1)) % World::kNodes;
    const Kind kind = kLosable[random_.below(kLosable.size())];
    rules_.insert({kind, from, to});
    commits_lost_ = commits_lost_ || (kind == Kind::commit && to == 0);
  }
}

void Life::lose(Kind kind, std::uint32_t to) {
  for (std::uint32_t from = 0; from < World::kNodes; ++from)
    if (from != to) rules_.insert({kind, from, to});
  commits_lost_ = commits_lost_ || (kind == Kind::commit && to == 0);
}

/// Writes that are unfinished when an epoch ends: one member did not get them, or one did not get their commit.
void Life::unfinished() {
  rules_.clear();
  const std::uint32_t deaf = random_.below(World::kNodes);
  const bool stays = random_.below(2) == 0;
  lose(random_.below(3) == 0 ? Kind::commit : Kind::replicate, deaf);
  writes();
  pass(kStep);
  compare("writes that are not finished", true);
  observe(false);
  const std::set<Rule> rules = std::exchange(rules_, {});
  if (stays) rules_ = rules;
  if (random_.below(3) == 0) lose(Kind::entry, random_.below(World::kNodes));
  next_epoch();
  doing_ += " after writes that were not finished";
}

std::uint32_t Life::some_of(NodeMask mask) {
  std::uint32_t left = random_.below(static_cast<std::uint32_t>(std::popcount(mask)));
  for (std::uint32_t node = 0;; ++node)
    if (has(mask, node) && left-- == 0) return node;
}

void Life::send(std::uint32_t node, const Kv& header, ByteView value) {
  core_.send(World::client(), node, header, value);
  software_.send(World::client(), node, header, value);
}

/// Each write has its own bucket (and so its own slot) and its own lane, because two writes that meet may be ordered
/// differently.
void Life::writes() {
  doing_ = "writes";
  constexpr std::array kKinds{Kind::write, Kind::write, Kind::write_if, Kind::remove, Kind::remove_if};
  std::set<std::uint32_t> slots;
  for (std::uint32_t count = 1 + random_.below(4); count > 0; --count) {
    const std::uint64_t key = keys_[random_.below(kKeys)];
    const std::uint32_t lane = random_.below(kLanes);
    if (!slots.insert(slot_of(hash_of(key))).second) continue;
    Asked& asked = lanes_[lane];
    const Kind kind = kKinds[random_.below(kKinds.size())];
    asked.header = {.kind = static_cast<std::uint8_t>(kind),
                    .epoch = static_cast<std::uint16_t>(plan_.epoch),
                    .client = static_cast<std::uint16_t>(lane),
                    .request = asked.header.request + 1 + random_.below(2),
                    .key = key};
    if (kind == Kind::write_if || kind == Kind::remove_if) asked.header.version = random_.below(4);
    asked.value.clear();
    if (kind == Kind::write || kind == Kind::write_if) {
      asked.value.resize(random_.below(3) == 0 ? random_.below(1025) : random_.below(80));
      for (std::byte& byte : asked.value) byte = static_cast<std::byte>(random_.next());
    }
    asked.open = true;
    asked.refused = false;
    send(leader_of(key), asked.header, asked.value);
  }
}

/// Repeats requests, like a client that heard nothing, or whose answer was lost.
void Life::ask_again() {
  doing_ = "requests again";
  std::set<std::uint32_t> slots;
  for (Asked& asked : lanes_) {
    if (asked.header.kind == 0 || (!asked.open && random_.below(3) != 0)) continue;
    if (asked.refused && asked.header.epoch != static_cast<std::uint16_t>(plan_.epoch)) continue;
    if (!slots.insert(slot_of(hash_of(asked.header.key))).second) continue;
    asked.header.epoch = static_cast<std::uint16_t>(plan_.epoch);
    send(leader_of(asked.header.key), asked.header, asked.value);
  }
}

/// Begins an epoch: dead nodes are left out, complete nodes serve, and slots may change leaders.
void Life::next_epoch() {
  doing_ = "an epoch";
  const NodeMask alive = without(plan_.members, dead_);
  NodeMask serving = without(plan_.serving, dead_);
  for (std::uint32_t node = 0; node < World::kNodes; ++node) {
    if (!has(returning_, node)) continue;
    bool whole = true;
    for (World* world : {&core_, &software_})
      whole = whole && world->read(node, kSyncCountOffset) == 0 && world->read(node, kSyncLanesOffset) == 0 &&
              kStateLeftovers.get(world->read(node, kStateOffset)) == 0;
    if (!whole) continue;
    doing_ += fmt::format(" in which {} serves", node);
    serving = static_cast<NodeMask>(serving | mask_of(node));
    returning_ = without(returning_, mask_of(node));
    ++counts_.returns;
  }
  plan_.epoch = kv::next_epoch(plan_.epoch);
  plan_.members = alive;
  plan_.serving = serving;
  const Leaders before = plan_.leaders;
  switch (random_.below(4)) {
    case 0:
      plan_.leaders.fill(static_cast<std::uint8_t>(some_of(serving)));
      break;
    case 1:
      plan_.leaders = first_leaders(serving);
      break;
    default:
      spread_leaders(plan_.leaders, serving);
  }
  // The core completes its leftovers one after the other, and the software node completes all at once. If one cannot be
  // completed, their progress differs.
  std::set<std::uint32_t> taken_over;
  for (const std::uint64_t key : keys_)
    if (const std::uint32_t slot = slot_of(hash_of(key)); leader_of(key) == 0 && before[slot] != 0)
      taken_over.insert(slot);
  if (taken_over.size() > 1) rules_.clear();
  enter_all();
}

void Life::enter_all() {
  commits_lost_ = std::ranges::any_of(rules_, [](const Rule& r) { return r.kind == Kind::commit && r.to == 0; });
  for (std::uint32_t node = 0; node < World::kNodes; ++node) {
    if (!has(plan_.members, node)) continue;
    core_.enter(node, plan_);
    software_.enter(node, plan_);
  }
  ++counts_.epochs;
}

void Life::die() {
  const std::uint32_t node = random_.below(2) == 0 ? 0 : random_.below(World::kNodes);
  doing_ = fmt::format("the death of {}", node);
  dead_ = mask_of(node);
  rules_.clear();
  ++counts_.deaths;
  if (random_.below(2) == 0) return;  // it is not missed yet
  next_epoch();
  doing_ += fmt::format(" without {}", node);
}

void Life::come_back() {
  const std::uint32_t node = some_of(dead_);
  dead_ = 0;
  core_.clear(node);
  software_.clear(node);
  if (has(plan_.members, node)) {  // nobody missed it
    plan_.members = without(plan_.members, mask_of(node));
    plan_.serving = without(plan_.serving, mask_of(node));
    next_epoch();
    pass(kStep);
  }
  plan_.members = static_cast<NodeMask>(plan_.members | mask_of(node));
  next_epoch();
  returning_ = mask_of(node);
  doing_ = fmt::format("the return of {}", node);
  for (World* world : {&core_, &software_}) {
    world->write(node, kSyncFromOffset, 0);
    world->write(node, kSyncCountOffset, 1U << options_.bucket_bits);
    world->write(node, kSyncLanesOffset, kLanes);
  }
  pass(4 * kStep);
}

void Life::pass(Cycles cycles) {
  core_.run(cycles);
  software_.run(cycles);
}

/// Compares the lanes and keys of all serving nodes, and the whole locations that node 0 leads.
void Life::observe(bool strict) {
  const std::string before = doing_;
  for (std::uint32_t node = 0; node < World::kNodes; ++node) {
    if (!has(without(plan_.serving, dead_), node)) continue;
    for (std::uint16_t lane = 0; lane < kLanes; ++lane)
      send(node, {.kind = static_cast<std::uint8_t>(Kind::lane), .client = lane, .request = tag_++});
    for (const std::uint64_t key : keys_)
      send(node, {.kind = static_cast<std::uint8_t>(Kind::read), .request = tag_++, .key = key});
    pass(2 * World::kRetry);
  }
  compare(before + ", looked at", strict);
}

void Life::compare(const std::string& what, bool strict) {
  const std::vector<Letter> core = core_.take_answers(), software = software_.take_answers();
  counts_.answers += static_cast<std::uint32_t>(core.size());
  for (const Letter& letter : software) {
    Asked& asked = lanes_[letter.header.client % kLanes];
    if (letter.kind() == Kind::lane_record && status_of(letter) == Status::busy) ++counts_.unsettled;
    if (letter.kind() < Kind::write_done || letter.kind() > Kind::remove_if_done) continue;
    if (asked.header.request != letter.header.request || status_of(letter) >= Status::not_leader) continue;
    asked.open = false;
    asked.refused = status_of(letter) != Status::ok;
  }
  std::set<std::string> only_core = texts_of(core), only_software = texts_of(software);
  for (auto at = only_core.begin(); at != only_core.end();)
    at = only_software.erase(*at) != 0 ? only_core.erase(at) : std::next(at);
  if (only_core.empty() && only_software.empty()) return;
  // After lost commits, the core may know less than the software node, but never more.
  if (!strict && commits_lost_) {
    for (const Letter& c : core) {
      const bool less = (c.kind() == Kind::read_done && status_of(c) == Status::pending) ||
                        (c.kind() == Kind::lane_record && c.header.version == 0);
      if (!less || !only_core.contains(text_of(c))) continue;
      const auto same = std::ranges::find_if(software, [&](const Letter& s) {
        return s.header.request == c.header.request && s.from == c.from && only_software.contains(text_of(s));
      });
      if (same == software.end()) continue;
      if (c.kind() == Kind::lane_record && same->header.key != c.header.key + 1) continue;
      only_core.erase(text_of(c));
      only_software.erase(text_of(*same));
    }
    if (only_core.empty() && only_software.empty()) return;
  }
  std::string why = what + ": they say different things.";
  for (const std::string& text : only_core) why += "\n  with the core     " + text;
  for (const std::string& text : only_software) why += "\n  with software     " + text;
  differ(why);
}

void Life::compare_states() {
  for (std::uint32_t node = 0; node < World::kNodes; ++node) {
    if (has(dead_, node)) continue;
    // The software node does not report its last addressee, because it knows itself which nodes are silent.
    const std::uint32_t a = kStateUnanswered.set(core_.read(node, kStateOffset), 0);
    const std::uint32_t b = software_.read(node, kStateOffset);
    counts_.leftovers += kStateLeftovers.get(b);
    if (a != b) differ(fmt::format("{}: node {}'s state is {:#x} with the core, {:#x} without", doing_, node, a, b));
    for (const std::uint32_t offset : {kEpochOffset, kSyncCountOffset, kSyncLanesOffset}) {
      const std::uint32_t x = core_.read(node, offset), y = software_.read(node, offset);
      if (x != y && (rules_.empty() || offset == kEpochOffset))
        differ(fmt::format("{}: node {}'s register {:#x} is {} with the core, {} without", doing_, node, offset, x, y));
    }
  }
}

void Life::differ(const std::string& why) {
  fmt::print(stderr, "seed {}, step {}, epoch {}, members {:#x}, serving {:#x}, dead {:#x}, {}\n", options_.seed, step_,
             plan_.epoch, plan_.members, plan_.serving, dead_, why);
  for (const Rule& rule : rules_)
    fmt::print(stderr, "  lost: {} from {} to {}\n", name_of(rule.kind), rule.from, rule.to);
  std::exit(EXIT_FAILURE);
}

}  // namespace wherry::kv::rtl
