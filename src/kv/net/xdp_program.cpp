// SPDX-License-Identifier: Apache-2.0
#include "kv/net/xdp_program.hpp"

#include <fmt/core.h>

#include <array>
#include <cstddef>

#include "base/try.hpp"
#include "kv/net/bpf.hpp"

namespace wherry::kv {
namespace {

using bpf::load, bpf::operation;

/// A field of a frame, as a little-endian load reads it.
struct Check {
  unsigned size;
  std::size_t offset;
  std::uint32_t expected;
  std::uint32_t mask = ~std::uint32_t{0};
};

constexpr std::uint32_t swap16(std::uint32_t value) { return (value >> 8 & 0xff) | (value & 0xff) << 8; }
constexpr std::uint32_t swap32(std::uint32_t value) { return __builtin_bswap32(value); }

}  // namespace

std::vector<bpf_insn> xdp_instructions(const Endpoint& self, int map) {
  constexpr unsigned kResult = BPF_REG_0, kContext = BPF_REG_1, kData = BPF_REG_2, kEnd = BPF_REG_3,
                     kScratch = BPF_REG_4;
  // The same checks as Parsed::kOurs in frame_io.cpp: docs/design/kv-protocol.md, section 3.
  const std::array checks{
      Check{BPF_W, kEthernetOffset, swap32(static_cast<std::uint32_t>(self.mac >> 16))},
      Check{BPF_H, kEthernetOffset + 4, swap16(static_cast<std::uint32_t>(self.mac & 0xffff))},
      Check{BPF_H, kEthernetOffset + 12, swap16(kEthertypeIpv4)},
      Check{BPF_B, kIpv4Offset, kIpVersionIhl},
      Check{BPF_H, kIpv4Offset + 6, 0, swap16(kIpFragmentMask)},
      Check{BPF_B, kIpv4Offset + 9, kIpProtocolUdp},
      Check{BPF_W, kIpv4Offset + 16, swap32(self.ip)},
      Check{BPF_H, kUdpOffset + 2, swap16(self.port)},
  };
  std::vector<bpf_insn> code;
  std::vector<std::size_t> to_pass;  // jumps to the end, whose distance is known there
  code.push_back(load(BPF_W, kData, kContext, offsetof(xdp_md, data)));
  code.push_back(load(BPF_W, kEnd, kContext, offsetof(xdp_md, data_end)));
  code.push_back(operation(BPF_ALU64 | BPF_MOV | BPF_X, kScratch, kData, 0));
  code.push_back(operation(BPF_ALU64 | BPF_ADD, kScratch, kUdpOffset + Udp::kBytes));
  to_pass.push_back(code.size());
  code.push_back(operation(BPF_JMP | BPF_JGT | BPF_X, kScratch, kEnd, 0));
  for (const Check& check : checks) {
    code.push_back(load(check.size, kScratch, kData, check.offset));
    if (~check.mask != 0) code.push_back(operation(BPF_ALU | BPF_AND, kScratch, check.mask));
    to_pass.push_back(code.size());
    code.push_back(operation(BPF_JMP32 | BPF_JNE, kScratch, check.expected));
  }
  // return bpf_redirect_map(map, queue, XDP_PASS). The last argument is the result if there is no socket.
  code.push_back(load(BPF_W, BPF_REG_2, kContext, offsetof(xdp_md, rx_queue_index)));
  // NOLINTNEXTLINE(misc-redundant-expression): two of the three are 0, and belong there
  code.push_back(operation(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, map));
  code.push_back({});  // the upper half of that 64-bit constant
  code.push_back(operation(BPF_ALU64 | BPF_MOV, BPF_REG_3, XDP_PASS));
  code.push_back(operation(BPF_JMP | BPF_CALL, 0, BPF_FUNC_redirect_map));
  code.push_back(operation(BPF_JMP | BPF_EXIT, 0, 0));
  for (const std::size_t jump : to_pass) code[jump].off = static_cast<std::int16_t>(code.size() - jump - 1);
  code.push_back(operation(BPF_ALU64 | BPF_MOV, kResult, XDP_PASS));
  code.push_back(operation(BPF_JMP | BPF_EXIT, 0, 0));
  return code;
}

Result<XdpProgram> XdpProgram::load(const Endpoint& self, std::uint32_t queues) {
  WHERRY_ASSIGN(auto map, bpf::make_map(BPF_MAP_TYPE_XSKMAP, queues, "sockets"));
  WHERRY_ASSIGN(auto program, bpf::load_program(xdp_instructions(self, map.get())));
  return XdpProgram(std::move(map), std::move(program));
}

wherry::Status XdpProgram::attach(int interface, Mode mode) {
  WHERRY_ASSIGN(link_, bpf::attach(program_, interface, mode));
  return {};
}

wherry::Status XdpProgram::deliver(std::uint32_t queue, int socket) {
  return bpf::set(map_, queue, static_cast<std::uint32_t>(socket), fmt::format("no socket for queue {}", queue));
}

Result<std::uint32_t> XdpProgram::try_out(ByteView frame) const { return bpf::try_out(program_, frame); }

}  // namespace wherry::kv
