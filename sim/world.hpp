// SPDX-License-Identifier: Apache-2.0
// Nodes in one virtual time, on a network that loses chosen frames. The first node may be the Verilated core.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "kv/control/configuration.hpp"
#include "kv/node/node.hpp"
#include "sim/core.hpp"

namespace wherry::kv::rtl {

/// A frame between nodes, or from or to a client.
struct Letter {
  Endpoint from;
  Endpoint to;
  Kv header;
  std::vector<std::byte> value;
  [[nodiscard]] Kind kind() const { return static_cast<Kind>(header.kind); }
  [[nodiscard]] Message message() const { return {header, value}; }
};

class World final {
 public:
  static constexpr std::uint32_t kNodes = 4;
  static constexpr Cycles kRetry = 2000;
  /// Whether a letter between nodes is lost.
  using Loses = std::function<bool(const Letter&, std::uint32_t from, std::uint32_t to)>;

  /// `core`: the options of node 0. Null: node 0 is a software node, too.
  World(const CoreOptions* core, bool accept, unsigned bucket_bits);
  World(const World&) = delete;  // its nodes have its address
  World& operator=(const World&) = delete;
  ~World() = default;

  [[nodiscard]] static Endpoint node(std::uint32_t number);
  [[nodiscard]] static Endpoint client();

  void set_losses(Loses loses) { loses_ = std::move(loses); }
  /// Clears a node, and takes it out of its epoch.
  void clear(std::uint32_t node);
  void enter(std::uint32_t node, const Configuration& configuration);
  void write(std::uint32_t node, std::uint32_t offset, std::uint32_t value) { io(node).write(offset, value); }
  [[nodiscard]] std::uint32_t read(std::uint32_t node, std::uint32_t offset) { return io(node).read(offset); }
  /// Sends a client's frame, or one that claims to come from another node.
  void send(const Endpoint& from, std::uint32_t to, const Kv& header, ByteView value = {});
  void run(Cycles cycles);
  /// The answers that have come for clients since the last call.
  [[nodiscard]] std::vector<Letter> take_answers() { return std::exchange(answers_, {}); }

 private:
  static constexpr Cycles kHop = 200;
  static constexpr Cycles kLook = 50;

  struct Port final : Output {
    World* world = nullptr;
    std::uint32_t number = 0;
    void send(const Endpoint& to, const Message& message) override;
  };

  [[nodiscard]] RegisterIo& io(std::uint32_t node);
  void post(Letter letter);
  void deliver(const Letter& letter);
  void hear_core();

  std::array<Port, kNodes> ports_;
  std::array<std::unique_ptr<Node>, kNodes> nodes_;
  std::array<Cycles, kNodes> due_{};
  std::unique_ptr<Core> core_;
  bool accept_;
  unsigned bucket_bits_;
  Cycles now_ = 1000;
  Loses loses_;
  std::multimap<Cycles, Letter> queue_;
  std::vector<Letter> answers_;
};

}  // namespace wherry::kv::rtl
