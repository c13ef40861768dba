// SPDX-License-Identifier: Apache-2.0
#include "sim/differential.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "kv/generated/registers.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr Cycles kPatience = 1'000'000;
constexpr Cycles kRetryCycles = 1'000'000'000;  // time has no part in what is compared
constexpr Cycles kFirstTimer = 100'000;  // the core's began with another interval, and repeats leftovers when it ends
constexpr std::size_t kUdpChecksum = kUdpOffset + 6;
constexpr std::size_t kIpChecksum = kIpv4Offset + 10;

DriverOptions driver_options(const PairOptions& options) {
  return {.cluster = "pair",
          .bucket_bits = options.bucket_bits,
          .retry_cycles = kRetryCycles,
          .accept = options.accept,
          .sources = options.sources,
          .busy_interval = 1000};
}

Subnets subnets_of(const std::vector<Subnet>& all) {
  Subnets set;
  for (const Subnet& subnet : all) set.add(subnet);
  return set;
}

std::uint16_t word_at(const Frame& frame, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(frame[at]) << 8 |
                                    std::to_integer<unsigned>(frame[at + 1]));
}
std::uint32_t source_of(const Frame& frame) {
  return std::uint32_t{word_at(frame, kIpv4Offset + 12)} << 16 | word_at(frame, kIpv4Offset + 14);
}
void set_word(Frame& frame, std::size_t at, std::uint16_t word) {
  frame[at] = static_cast<std::byte>(word >> 8);
  frame[at + 1] = static_cast<std::byte>(word);
}

/// RFC 1624.
std::uint16_t corrected(std::uint16_t checksum, std::uint16_t before, std::uint16_t after) {
  std::uint32_t sum = static_cast<std::uint16_t>(~checksum);
  sum += static_cast<std::uint16_t>(~before);
  sum += after;
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

Kind kind_of(const Spoken& spoken) { return static_cast<Kind>(spoken.header.kind); }
bool is_replicate(Kind kind) { return kind == Kind::replicate || kind == Kind::replicate_remove; }
bool is_write_answer(Kind kind) {
  return (kind >= Kind::write_done && kind <= Kind::remove_if_done) || kind == Kind::replicated ||
         kind == Kind::replicated_remove;
}
bool is_replicated(Kind kind) { return kind == Kind::replicated || kind == Kind::replicated_remove; }

std::string text_of(const Spoken& s) {
  const Kv& h = s.header;
  return fmt::format(
      "to {:08x}:{}: {}, node {}, detail {:#04x}, epoch {}, lane {}, request {}, version {}, key {:#x}, {} bytes",
      s.to.ip, s.to.port, name_of(kind_of(s)), h.node, h.detail, h.epoch, h.client, h.request, h.version, h.key,
      s.value.size());
}

std::string hex_of(const Frame& frame) {
  std::string text = fmt::format("{:4} bytes ", frame.size());
  for (std::size_t i = 0; i < frame.size() && i < kHeaderBytes + 16; ++i)
    text += fmt::format("{:02x}", std::to_integer<unsigned>(frame[i]));
  return text;
}

/// Each leader chooses its own places, so these are not compared.
Spoken comparable(Spoken s) {
  if (is_replicate(kind_of(s)) || kind_of(s) == Kind::commit) s.header.detail &= 0xc0;
  // Switches may change MAC addresses, so an answer to a node may go to the question's source address or to the node's
  // own.
  const Kind kind = kind_of(s);
  if (kind < Kind::read_done || kind > Kind::pong) s.to.mac = 0;
  return s;
}
std::vector<Spoken> in_order(const std::vector<Spoken>& sent) {
  std::vector<Spoken> sorted;
  for (const Spoken& s : sent) sorted.push_back(comparable(s));
  std::ranges::sort(sorted, [](const Spoken& a, const Spoken& b) { return a.rank() < b.rank(); });
  return sorted;
}

/// Whether the core may redirect a read that the software node answered.
bool may_redirect(const Spoken& core, const Spoken& software) {
  const auto status = static_cast<Status>(software.header.detail);
  if (kind_of(core) != Kind::read_done || static_cast<Status>(core.header.detail) != Status::pending ||
      (status != Status::ok && status != Status::no_such_key))
    return false;
  Spoken same = software;
  same.header.detail = core.header.detail;
  same.header.version = 0;
  same.value.clear();
  return same == core;
}

}  // namespace

void patch(Frame& frame, std::size_t at, std::uint16_t word, bool in_ip_header, bool in_udp) {
  const std::uint16_t before = word_at(frame, at);
  set_word(frame, at, word);
  if (in_ip_header) set_word(frame, kIpChecksum, corrected(word_at(frame, kIpChecksum), before, word));
  if (in_udp && word_at(frame, kUdpChecksum) != 0) {
    const std::uint16_t sum = corrected(word_at(frame, kUdpChecksum), before, word);
    set_word(frame, kUdpChecksum, sum == 0 ? 0xffff : sum);
  }
}

Endpoint Pair::node(std::uint32_t number) {
  return {.mac = 0x020000000000U + number, .ip = 0x0a000000U + number, .port = static_cast<std::uint16_t>(kUdpPort)};
}

Pair::Pair(const PairOptions& options)
    : options_(options),
      allowed_(subnets_of(options.sources)),
      core_(options.core),
      software_({.channels = Core::kChannels, .most_doublings = 0}, static_cast<Output&>(*this)),
      core_registers_(core_, kEpoch, [this] { core_.preset_versions(options_.versions); }),
      software_registers_(software_, kEpoch, [this] { software_.preset_versions(options_.versions); }),
      core_driver_(driver_options(options), core_registers_, static_cast<DriverOutput&>(*this), 0),
      software_driver_(driver_options(options), software_registers_, static_cast<DriverOutput&>(*this), 0) {
  bring_up();
}

void Pair::bring_up() {
  Configuration c{.epoch = kEpoch,
                  .members = static_cast<NodeMask>((1U << options_.nodes) - 1),
                  .bucket_bits = options_.bucket_bits};
  c.serving = c.members;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot)
    c.leaders[slot] = static_cast<std::uint8_t>(slot % options_.nodes);
  for (std::uint32_t i = 0; i < options_.nodes; ++i) c.peers[i] = node(i);
  core_driver_.enter_static(c, 0);
  software_driver_.enter_static(c, 0);
  for (Cycles end = core_.now() + kPatience; core_driver_.epoch() == 0 || software_driver_.epoch() == 0;) {
    if (core_.now() > end) differ("the core does not enter its epoch");
    core_.step(2000);
    core_driver_.on_time(core_.now());
    software_driver_.on_time(core_.now());
  }
  // Each side sends `enter` to the other nodes, which have entered.
  (void)round();
  std::array<std::byte, kHeaderBytes> frame;
  for (std::uint32_t i = 1; i < options_.nodes; ++i) {
    const Kv entered{
        .kind = static_cast<std::uint8_t>(Kind::entered), .node = static_cast<std::uint8_t>(i), .epoch = kEpoch};
    (void)build(frame, node(i), node(0), {.header = entered, .value = {}});
    put({frame.begin(), frame.end()});
  }
  (void)round();
  core_.run(kFirstTimer);
  for (RegisterIo* io : {static_cast<RegisterIo*>(&core_), static_cast<RegisterIo*>(&software_)}) {
    const std::uint32_t state = io->read(registers::kStateOffset);
    if (registers::kStateServing.get(state) == 0 || registers::kStateOpened.get(state) == 0)
      differ(fmt::format("a node does not serve: state {:#x}", state));
  }
}

void Pair::put(const Frame& frame, Cycles wait) {
  ++frames_;
  given_.push_back(frame);
  core_.put(Side::kNet, for_core(frame), core_.now() + wait);
  for_software(frame);
}

void Pair::put_host(const Frame& frame) {
  core_.put(Side::kHost, frame);
  for_net_.push_back(frame);
  software_.count_passed_tx();
}

void Pair::for_software(const Frame& frame) {
  Received received;
  const Parsed parsed = parse(frame, node(0), &received);
  // The core looks at nothing else in a frame from an unknown source.
  if (parsed != Parsed::kForeign && !allowed_.has(source_of(frame)))
    return software_.count_dropped(Node::Drop::kSource);
  switch (parsed) {
    case Parsed::kOurs: {
      const std::uint32_t before = software_.counters().dropped_length;
      software_.receive(received.from, received.message, core_.now());
      form_ += software_.counters().dropped_length - before;
      return;
    }
    case Parsed::kForeign:
      software_.count_passed_rx();
      for_host_.push_back(frame);
      return;
    case Parsed::kBadChecksum:
      return software_.count_dropped(Node::Drop::kChecksum);
    case Parsed::kBadLength:
      if (word_at(frame, kUdpChecksum) != 0) ++either_;
      return software_.count_dropped(Node::Drop::kLength);
  }
}

/// An acknowledgement repeats the leader's place. For the core, this must be the place that the core chose.
Frame Pair::for_core(const Frame& frame) const {
  Received received;
  if (parse(frame, node(0), &received) != Parsed::kOurs) return frame;
  const Kv& h = received.message.header;
  const auto mine = software_details_.find(write_of(h));
  const auto cores = core_details_.find(write_of(h));
  if (!is_replicated(static_cast<Kind>(h.kind)) || mine == software_details_.end() || cores == core_details_.end())
    return frame;
  std::uint8_t detail = h.detail;
  if (detail == mine->second)
    detail = cores->second;
  else if (detail % kPlaces == cores->second % kPlaces)
    detail = mine->second;  // as wrong for the core
  Frame changed = frame;
  patch(changed, kKvOffset, static_cast<std::uint16_t>((word_at(frame, kKvOffset) & 0xff00) | detail), false, true);
  return changed;
}

void Pair::send(const Endpoint& to, const Message& message) {
  software_sent_.push_back({to, message.header, {message.value.begin(), message.value.end()}});
}

void Pair::collect() {
  while (const auto frame = core_.take(Side::kHost)) {
    if (for_host_.empty() || for_host_.front() != frame->bytes)
      differ("the host got another frame than the next one: " + hex_of(frame->bytes));
    for_host_.pop_front();
  }
  while (const auto frame = core_.take(Side::kNet)) {
    if (!for_net_.empty() && for_net_.front() == frame->bytes)
      for_net_.pop_front();
    else
      heard(*frame);
  }
}

/// It must equal what the software would have written, except for the UDP checksum. That must be right or absent.
void Pair::heard(const CoreFrame& frame) {
  if (frame.bytes.size() < kHeaderBytes) differ("the core sent " + hex_of(frame.bytes));
  const Endpoint to = destination_of(frame.bytes);
  Received received;
  if (parse(frame.bytes, to, &received) != Parsed::kOurs) differ("the core sent a wrong frame: " + hex_of(frame.bytes));
  Frame expected(frame.bytes.size());
  const std::size_t size = build(expected, node(0), to, received.message, UdpChecksum::kNone);
  set_word(expected, kUdpChecksum, word_at(frame.bytes, kUdpChecksum));
  if (size != frame.bytes.size() || expected != frame.bytes)
    differ(fmt::format("the core sent\n  {}\nand should have\n  {}", hex_of(frame.bytes), hex_of(expected)));
  const Message& m = received.message;
  core_sent_.push_back({to, m.header, {m.value.begin(), m.value.end()}});
}

void Pair::settle() {
  for (Cycles end = core_.now() + kPatience; !core_.idle() || core_.waiting(Side::kNet) != 0;) {
    if (core_.now() > end) differ("the core does not come to rest");
    core_.step(16);
  }
  collect();
}

/// The core answers `busy` to a write whose place in the window holds one of the core's own refreshes. The rig then
/// repeats the request with another place, like a client. True if it asked.
bool Pair::ask_core_again() {
  if (registers::kStateLeftovers.get(core_.read(registers::kStateOffset)) == 0) return false;
  const auto refused = std::ranges::find_if(core_sent_, [&](const Spoken& c) {
    return is_write_answer(kind_of(c)) && !is_replicated(kind_of(c)) &&
           static_cast<Status>(c.header.detail) == Status::busy &&
           std::ranges::any_of(software_sent_, [&](const Spoken& s) {
             return is_replicate(kind_of(s)) && s.header.client == c.header.client &&
                    s.header.request == c.header.request && s.header.key == c.header.key;
           });
  });
  if (refused == core_sent_.end()) return false;
  const auto asked = std::ranges::find_if(given_, [&](const Frame& frame) {
    Received r;
    return parse(frame, node(0), &r) == Parsed::kOurs && (r.message.header.kind | 16U) == refused->header.kind &&
           r.message.header.client == refused->header.client && r.message.header.request == refused->header.request;
  });
  if (asked == given_.end()) return false;
  core_sent_.erase(refused);
  core_.put(Side::kNet, *asked, core_.now());
  ++asked_again_;
  return true;
}

/// Records which place a new write has at each node.
void Pair::learn_details() {
  for (const Spoken& s : software_sent_)
    if (is_replicate(kind_of(s))) software_details_[write_of(s.header)] = s.header.detail;
  for (const Spoken& s : core_sent_)
    if (is_replicate(kind_of(s))) core_details_[write_of(s.header)] = s.header.detail;
}

std::vector<Spoken> Pair::round() {
  settle();
  while (ask_core_again()) settle();
  if (!for_host_.empty()) differ("the host did not get " + hex_of(for_host_.front()));
  if (!for_net_.empty()) differ("the network did not get the host's " + hex_of(for_net_.front()));
  learn_details();
  for (const Spoken& s : core_sent_)
    if (is_write_answer(kind_of(s))) answered_.insert(answer_of(s));
  compare_round();
  ++rounds_;
  given_.clear();
  core_sent_.clear();
  return std::exchange(software_sent_, {});
}

void Pair::compare_round() {
  std::vector<Spoken> core = in_order(core_sent_), software = in_order(software_sent_);
  std::set<std::uint32_t> caught_up;
  for (const Spoken& s : core)
    if (kind_of(s) == Kind::entered && late_.erase(s.to.ip) != 0) caught_up.insert(s.to.ip);
  if (core == software) return;
  // Messages that only one side sent.
  std::vector<Spoken> only_core, only_software;
  const auto before = [](const Spoken& a, const Spoken& b) { return a.rank() < b.rank(); };
  std::ranges::set_difference(core, software, std::back_inserter(only_core), before);
  std::ranges::set_difference(software, core, std::back_inserter(only_software), before);
  std::erase_if(only_software, [&](const Spoken& s) {
    // With `store`, a repeated frame may stay unanswered until memory has the first one's write, or a write near it.
    if (!options_.accept && is_write_answer(kind_of(s)) && answered_.contains(answer_of(s))) return true;
    const auto other = std::ranges::find_if(only_core, [&](const Spoken& c) {
      if (!may_redirect(c, s)) return false;
      for (std::uint32_t i = 0; i < candidates(options_.bucket_bits); ++i)
        if (lost_.contains(bucket_at_index(hash_of(c.header.key), i, options_.bucket_bits))) return true;
      return false;
    });
    if (other == only_core.end()) return false;
    only_core.erase(other);
    ++redirected_;
    return true;
  });
  // A refresh may begin directly after the one before, and so before the core reports that no leftover remains. The
  // core reports it after that refresh, and expect_nothing_late() checks that.
  std::erase_if(only_core, [&](const Spoken& s) { return kind_of(s) == Kind::entered && caught_up.contains(s.to.ip); });
  std::erase_if(only_software, [&](const Spoken& s) {
    return kind_of(s) == Kind::entered && software_.counters().refreshed > 1 && late_.insert(s.to.ip).second;
  });
  // A node that answers `pending` may repeat the acknowledgement of the pending write.
  const bool pending = std::ranges::any_of(core, [](const Spoken& s) {
    return kind_of(s) == Kind::read_done && static_cast<Status>(s.header.detail) == Status::pending;
  });
  std::erase_if(only_core, [&](const Spoken& s) {
    return pending && is_replicated(kind_of(s)) && answered_.contains(answer_of(s));
  });
  if (only_core.empty() && only_software.empty()) return;
  std::string why = "they say different things.";
  for (const Spoken& s : only_core) why += "\n  only the core  " + text_of(s);
  for (const Spoken& s : only_software) why += "\n  only software  " + text_of(s);
  differ(why);
}

void Pair::compare(const char* name, std::uint32_t offset, std::uint32_t slack) {
  const std::uint32_t core = core_.read(offset), software = software_.read(offset);
  const std::uint32_t distance = core > software ? core - software : software - core;
  if (distance > slack) differ(fmt::format("{}: {} in the core, {} in software", name, core, software));
}

void Pair::expect_nothing_late() {
  if (!late_.empty()) differ(fmt::format("the core has not said `entered` to {:08x} until the end", *late_.begin()));
}

void Pair::compare_counters() {
  using namespace registers;
  core_.step(256);  // they are carried in turn
  compare("frames_kv", kFramesKvOffset, asked_again_);
  compare("frames_passed_rx", kFramesPassedRxOffset);
  compare("frames_passed_tx", kFramesPassedTxOffset);
  compare("dropped_checksum", kDroppedChecksumOffset, either_);
  compare("dropped_source", kDroppedSourceOffset);
  compare("dropped_length", kDroppedLengthOffset, either_ + form_);
  compare("dropped_epoch", kDroppedEpochOffset, form_);
  const auto dropped = [](RegisterIo& io) {
    return io.read(kDroppedChecksumOffset) + io.read(kDroppedLengthOffset) + io.read(kDroppedEpochOffset);
  };
  if (const std::uint32_t core = dropped(core_), software = dropped(software_); core != software)
    differ(fmt::format("dropped as wrong: {} by the core, {} by software", core, software));
  if (options_.accept) compare("dropped_duplicate", kDroppedDuplicateOffset);
  for (std::uint32_t i = 0; i < kReceivedCount; ++i)
    compare(fmt::format("received[{}]", i).c_str(), received_offset(i), asked_again_);
}

void Pair::differ(const std::string& why) {
  fmt::print(stderr, "seed {}, round {}: {}\n", options_.seed, rounds_, why);
  for (const Frame& frame : given_) fmt::print(stderr, "  given {}\n", hex_of(frame));
  for (const Spoken& s : core_sent_) fmt::print(stderr, "  the core said  {}\n", text_of(s));
  for (const Spoken& s : software_sent_) fmt::print(stderr, "  software said  {}\n", text_of(s));
  std::exit(EXIT_FAILURE);
}

}  // namespace wherry::kv::rtl
