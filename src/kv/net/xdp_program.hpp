// SPDX-License-Identifier: Apache-2.0
// The program that an interface runs for each frame. It sends the node's frames to our socket, and all others to the
// kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "base/socket.hpp"
#include "kv/message.hpp"
#include "kv/net/bpf.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// Some thirty instructions, assembled here, so neither a compiler for BPF nor a loader of its object files is needed.
/// `map` is of type XSKMAP and says which socket gets the frames of a queue. Without a socket they go to the kernel.
[[nodiscard]] std::vector<bpf_insn> xdp_instructions(const Endpoint& self, int map);

class XdpProgram {
 public:
  using Mode = bpf::Mode;

  /// Loaded and verified, but in front of no interface.
  static Result<XdpProgram> load(const Endpoint& self, std::uint32_t queues);

  /// The program stays in front of the interface until the XdpProgram is destroyed, or the process ends in any way.
  wherry::Status attach(int interface, Mode mode);
  /// From now on `socket` gets the frames that arrive at `queue`.
  wherry::Status deliver(std::uint32_t queue, int socket);
  /// The program's decision about a frame, without an interface: XDP_PASS, XDP_REDIRECT.
  Result<std::uint32_t> try_out(ByteView frame) const;

 private:
  XdpProgram(Fd map, Fd program) : map_(std::move(map)), program_(std::move(program)) {}

  Fd map_, program_;
  Fd link_;  // closed first: that takes the program off the interface
};

}  // namespace wherry::kv
