// SPDX-License-Identifier: Apache-2.0
// Runs the Verilated core and the software node side by side, with the same registers and the same frames. Their
// outputs are compared. The first difference ends the process, and prints both sides' messages.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "kv/net/frame_io.hpp"
#include "kv/node/driver/driver.hpp"
#include "kv/node/node.hpp"
#include "kv/sim/preset.hpp"
#include "sim/core.hpp"

namespace wherry::kv::rtl {

using Frame = std::vector<std::byte>;

/// What a node sent. Frames of a round may come in any order, so they are sorted.
struct Spoken {
  Endpoint to;
  Kv header;
  Frame value;
  [[nodiscard]] auto rank() const {
    return std::tie(to.ip, to.port, to.mac, header.kind, header.key, header.client, header.request, header.version,
                    header.detail, header.node, header.epoch, header.candidate, value);
  }
  friend bool operator==(const Spoken& a, const Spoken& b) { return a.rank() == b.rank(); }
};

struct PairOptions {
  std::uint64_t seed = 1;
  std::uint32_t nodes = 3;  ///< of the cluster; these two are node 0, the slots are led in turn
  bool accept = false;
  std::uint8_t bucket_bits = 8;
  sim::Versions versions{};         ///< of each bucket's ways, to begin with
  std::vector<Subnet> sources{{}};  ///< whom both answer: everybody
  CoreOptions core;
};

class Pair final : DriverOutput, Output {
 public:
  static constexpr std::uint16_t kEpoch = 3;

  /// Both nodes serve and are open.
  explicit Pair(const PairOptions& options);

  [[nodiscard]] static Endpoint node(std::uint32_t number);
  [[nodiscard]] const sim::Versions& versions() const { return options_.versions; }
  [[nodiscard]] unsigned bucket_bits() const { return options_.bucket_bits; }
  [[nodiscard]] std::uint32_t leader_of(std::uint64_t key) const { return slot_of(hash_of(key)) % options_.nodes; }

  /// Adds a frame to this round, after earlier ones. `wait`: before it, the core gets nothing for this many cycles.
  void put(const Frame& frame, Cycles wait = 0);
  /// Adds a frame from the core's host to the network.
  void put_host(const Frame& frame);
  /// A commit was lost here: from now on the core may know a pending write that the software has forgotten.
  void lose_commit(std::uint32_t bucket) { lost_.insert(bucket); }
  /// Lets both finish, compares them, and returns what the software node sent. `detail` of `replicate` is the software
  /// node's own; put() converts it to the core's.
  std::vector<Spoken> round();
  /// At the end, checks that the core has sent every message that the software node sent earlier.
  void expect_nothing_late();
  /// Compares the counters over all rounds so far.
  void compare_counters();

  /// The number of answers to clients with this status.
  [[nodiscard]] std::uint32_t replies(Status status) const {
    return software_.counters().replies[static_cast<std::size_t>(status)];
  }
  /// Locations that the software node refreshed because their version lagged.
  [[nodiscard]] std::uint32_t refreshed() const { return software_.counters().refreshed; }
  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }
  /// Reads that the core's filter sent to the leader, as it may, while the software node answered them.
  [[nodiscard]] std::uint64_t redirected() const noexcept { return redirected_; }

 private:
  /// Names a write.
  using Write = std::tuple<std::uint16_t, std::uint32_t, std::uint32_t, std::uint64_t>;
  [[nodiscard]] static Write write_of(const Kv& h) { return {h.client, h.request, h.version, h.key}; }

  /// The same for any sender and any kind of write, because a write that is repeated as another kind is also answered
  /// from the lane's record.
  using Answer = std::tuple<Write, std::uint8_t, std::uint8_t>;
  [[nodiscard]] static Answer answer_of(const Spoken& s) {
    const auto kind = static_cast<Kind>(s.header.kind);
    const bool of_client = kind >= Kind::write_done && kind <= Kind::remove_if_done;
    return {write_of(s.header), static_cast<std::uint8_t>(of_client ? Kind::write_done : kind), s.header.detail};
  }

  void send(const ToKeeper&) override {}
  std::uint64_t draw_boot() override { return 1; }
  void send(const Endpoint& to, const Message& message) override;

  void bring_up();
  void settle();
  bool ask_core_again();
  void collect();
  void heard(const CoreFrame& frame);
  void for_software(const Frame& frame);
  [[nodiscard]] Frame for_core(const Frame& frame) const;
  void learn_details();
  void compare_round();
  void compare(const char* name, std::uint32_t offset, std::uint32_t slack = 0);
  [[noreturn]] void differ(const std::string& why);

  PairOptions options_;
  Subnets allowed_;
  Core core_;
  Node software_;
  sim::PresetRegisters core_registers_;
  sim::PresetRegisters software_registers_;
  Driver core_driver_;
  Driver software_driver_;
  std::vector<Frame> given_;  ///< in this round
  std::deque<Frame> for_host_;
  std::deque<Frame> for_net_;
  std::vector<Spoken> core_sent_;
  std::vector<Spoken> software_sent_;
  std::map<Write, std::uint8_t> core_details_;  ///< of `replicate`: each node has its own places
  std::map<Write, std::uint8_t> software_details_;
  std::set<std::uint32_t> lost_;  ///< buckets
  std::set<std::uint32_t> late_;  ///< nodes that the core will say `entered` to
  std::set<Answer> answered_;     ///< by the core, about writes
  std::uint64_t frames_ = 0;
  std::uint64_t rounds_ = 0;
  std::uint64_t redirected_ = 0;
  std::uint32_t asked_again_ = 0;  ///< frames that only the core got once more
  std::uint32_t either_ = 0;       ///< frames with two faults: each node may count what it sees first
  std::uint32_t form_ = 0;  ///< between nodes, with a value where none belongs: of a wrong length, or of no member
};

/// Sets a word at an even offset of a frame, and corrects each checksum that covers it by the difference: a right
/// checksum stays right, a wrong one wrong, and an absent one absent.
void patch(Frame& frame, std::size_t at, std::uint16_t word, bool in_ip_header, bool in_udp);

}  // namespace wherry::kv::rtl
