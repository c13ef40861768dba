// SPDX-License-Identifier: Apache-2.0
// Runs the same life of a cluster twice: in one world node 0 is the Verilated core, in the other a software node.
// Epochs begin, nodes die and return, frames of chosen kinds are lost, requests are repeated, and time passes. After
// each step, both worlds are asked for everything that can be seen from outside, and the answers are compared. The
// first difference ends the process.
#pragma once

#include <set>
#include <string>

#include "kv/sim/random.hpp"
#include "sim/world.hpp"

namespace wherry::kv::rtl {

struct LifeOptions {
  std::uint64_t seed = 1;
  std::uint32_t steps = 40;
  unsigned bucket_bits = 8;  ///< above, most keys share their first bucket, and are in others, too
  CoreOptions core;
};

/// The number of each kind of event in a life.
struct LifeCounts {
  std::uint32_t epochs = 0, deaths = 0, returns = 0, leftovers = 0, unsettled = 0, answers = 0;
};

class Life final {
 public:
  explicit Life(const LifeOptions& options);
  LifeCounts run();

 private:
  static constexpr std::uint32_t kLanes = 12;
  static constexpr std::uint32_t kKeys = 10;
  static constexpr std::uint32_t kCrowd = 6;  ///< keys of one bucket
  static constexpr Cycles kStep = 30 * World::kRetry;

  /// A lane's last request, which may be repeated.
  struct Asked {
    Kv header;
    std::vector<std::byte> value;
    bool open = false;     ///< not answered for good
    bool refused = false;  ///< for good, which only its leader knows: another one may say something else
  };
  struct Rule {
    Kind kind;
    std::uint32_t from, to;
    auto operator<=>(const Rule&) const = default;
  };

  void step();
  void choose_losses(bool any);
  void lose(Kind kind, std::uint32_t to);
  void writes();
  void ask_again();
  void unfinished();
  void next_epoch();
  void die();
  void come_back();
  void enter_all();
  void pass(Cycles cycles);
  void observe(bool strict);
  void compare(const std::string& what, bool strict);
  void compare_states();
  [[noreturn]] void differ(const std::string& why);
  void send(std::uint32_t node, const Kv& header, ByteView value = {});
  [[nodiscard]] std::uint32_t leader_of(std::uint64_t key) const { return plan_.leaders[slot_of(hash_of(key))]; }
  [[nodiscard]] std::uint32_t some_of(NodeMask mask);

  LifeOptions options_;
  sim::Random random_;
  bool accept_;
  World core_;
  World software_;
  Configuration plan_;
  NodeMask dead_ = 0;
  NodeMask returning_ = 0;
  std::set<Rule> rules_;
  bool commits_lost_ = false;  ///< to node 0, in this epoch
  std::vector<std::uint64_t> keys_;
  std::array<Asked, kLanes> lanes_;
  std::uint32_t tag_ = 1;
  std::uint32_t step_ = 0;
  std::string doing_;
  LifeCounts counts_;
};

}  // namespace wherry::kv::rtl
