// SPDX-License-Identifier: Apache-2.0
// The program that an interface runs for each frame. It sends the node's frames to our socket and all others to the
// kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "base/socket.hpp"
#include "kv/message.hpp"
#include "kv/net/bpf.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// About thirty instructions, assembled here, so neither a BPF compiler nor an object loader is needed. `map` has type
/// XSKMAP and gives the socket for the frames of a queue. If a queue has no socket, its frames go to the kernel.
[[nodiscard]] std::vector<bpf_insn> xdp_instructions(const Endpoint& self, int map);

class XdpProgram {
 public:
  using Mode = bpf::Mode;

  /// Loads and verifies the program. It is not yet attached to an interface.
  static Result<XdpProgram> load(const Endpoint& self, std::uint32_t queues);

  /// Attaches the program to the interface until the XdpProgram is destroyed, or the process ends in any way.
  wherry::Status attach(int interface, Mode mode);
  /// From now on, frames that arrive at `queue` go to `socket`.
  wherry::Status deliver(std::uint32_t queue, int socket);
  /// The program's verdict on a frame, without an interface: XDP_PASS or XDP_REDIRECT.
  Result<std::uint32_t> try_out(ByteView frame) const;

 private:
  XdpProgram(Fd map, Fd program) : map_(std::move(map)), program_(std::move(program)) {}

  Fd map_, program_;
  Fd link_;  // closed first: that takes the program off the interface
};

}  // namespace wherry::kv
