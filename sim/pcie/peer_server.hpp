// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: how the root complex handles traffic between its ports.
#pragma once

#include <deque>
#include <vector>

#include "sim/pcie/ordered_buffer.hpp"
#include "sim/pcie/switch.hpp"

namespace wherry::sim::pcie {

/// The requester ID of reads that the root complex cut, because it gathers their completions.
inline constexpr FunctionId kPeerProxyId = 1;

/// Serves one request of at most RootOptions::peer_cut bytes per peer_interval. All ports wait in one line; the
/// ordering rules hold within each port. A cut read takes tags of the root's own. Its completions go on in the order of
/// addresses, under the requester's tag.
class PeerServer final : EventHandler {
 public:
  PeerServer(Context& context, std::vector<DownPort>& ports);

  /// Call it after all ports exist.
  void start();
  /// Takes a request or completion for port `packet->target`, which came in at `packet->port`.
  void enter(Packet* packet);
  /// A completion for kPeerProxyId.
  void gather(Packet* packet);

 private:
  struct Ingress {
    OrderedBuffer waiting;
    std::uint32_t place;
    Time last_sent = 0;  ///< nothing that came after leaves before
  };
  /// A read that was cut.
  struct Parent {
    std::uint16_t tag = 0;
    FunctionId requester = 0;
    std::uint32_t bytes = 0;
    std::uint32_t port = 0;   ///< where the requester is
    std::uint32_t open = 0;   ///< parts without their last completion
    std::uint16_t front = 0;  ///< the part whose completions may go on
    bool failed = false;
  };
  struct Part {
    bool used = false;
    bool done = false;  ///< all of its completions came
    std::uint32_t parent = 0;
    std::uint32_t offset = 0;
    std::uint16_t next = 0;  ///< part of the same read
    std::uint16_t older = 0, younger = 0;
    Time deadline = 0;
    Packet* held = nullptr;  ///< completions that came too early, the first of them
    Packet* held_last = nullptr;
  };
  static constexpr std::uint16_t kNone = 0xffff;

  void on_event(std::uint64_t argument) override;
  void serve();
  void serve_request(Packet* packet);
  void forward(Packet* packet, Time at);
  [[nodiscard]] std::uint32_t pieces(const Packet& packet) const noexcept;
  void cut_write(Packet* packet, Time begin);
  void cut_read(Packet* packet, Time begin);
  void pass_on(Parent& parent, Packet* packet, std::uint32_t part_offset, bool last_part);
  void advance(std::uint32_t parent);
  void free_part(std::uint16_t number);
  void forget_unanswered();
  void wake_at(Time at);
  /// When a request may leave its ingress if it is served at `at`.
  [[nodiscard]] Time leave_time(const Packet& packet, Time at);

  Context& context_;
  const RootOptions& options_;
  std::vector<DownPort>& ports_;
  std::deque<Ingress> ingress_;
  std::uint64_t turns_ = 0;
  Time free_at_ = 0;
  Time wake_ = kNever;
  std::vector<Part> parts_;
  std::vector<std::uint16_t> free_parts_;
  std::uint16_t oldest_ = kNone, youngest_ = kNone;
  Timer deadline_timer_;
  std::deque<Parent> parents_;  ///< references stay valid
  std::vector<std::uint32_t> free_parents_;
};

}  // namespace wherry::sim::pcie
