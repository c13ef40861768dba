// SPDX-License-Identifier: Apache-2.0
#include "kv/xdp_program.hpp"

#include <fmt/core.h>
#include <linux/if_link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

namespace wherry::kv {
namespace {

int bpf(bpf_cmd command, bpf_attr& attributes) noexcept {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

std::uint64_t address(const void* at) noexcept { return reinterpret_cast<std::uintptr_t>(at); }

wherry::Status program_error(const std::string& what) {
  const int error = errno;
  const bool forbidden = error == EPERM || error == EACCES;
  const bool taken = error == EBUSY || error == EEXIST;
  return {forbidden ? StatusCode::kPermissionDenied
          : taken   ? StatusCode::kAlreadyExists
                    : StatusCode::kUnavailable,
          fmt::format("XDP: {}: {}{}", what, std::strerror(error),
                      forbidden ? " (be root, or have CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF)"
                      : taken   ? " (another XDP program is in front of this interface)"
                                : "")};
}

constexpr unsigned kResult = BPF_REG_0, kContext = BPF_REG_1, kData = BPF_REG_2, kEnd = BPF_REG_3, kScratch = BPF_REG_4;

constexpr bpf_insn operation(unsigned code, unsigned to, unsigned from, std::int32_t constant) {
  return {.code = static_cast<std::uint8_t>(code),
          .dst_reg = static_cast<std::uint8_t>(to & 15),
          .src_reg = static_cast<std::uint8_t>(from & 15),
          .off = 0,
          .imm = constant};
}
constexpr bpf_insn operation(unsigned code, unsigned to, std::uint32_t constant) {
  return operation(code | BPF_K, to, 0, static_cast<std::int32_t>(constant));
}
constexpr bpf_insn load(unsigned size, unsigned to, unsigned from, std::size_t offset) {
  bpf_insn made = operation(BPF_LDX | BPF_MEM | size, to, from, 0);
  made.off = static_cast<std::int16_t>(offset);
  return made;
}

/// Fields of a frame, as a little-endian load reads them.
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
  // As Parsed::kOurs in frame_io.cpp: docs/kv-protocol.md, section 3.
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
  // return bpf_redirect_map(map, queue, XDP_PASS), whose last argument is the answer if nobody is there.
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
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_XSKMAP;
  attributes.key_size = sizeof(std::uint32_t);
  attributes.value_size = sizeof(int);
  attributes.max_entries = queues;
  Fd map(bpf(BPF_MAP_CREATE, attributes));
  if (!map) return program_error("cannot make a map of sockets");

  const std::vector<bpf_insn> code = xdp_instructions(self, map.get());
  attributes = {};
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.insns = address(code.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(code.size());
  attributes.license = address("Apache-2.0");
  std::memcpy(attributes.prog_name, "wherry_kv", sizeof "wherry_kv");
  Fd program(bpf(BPF_PROG_LOAD, attributes));
  if (!program) return program_error("the kernel does not take the program");
  return XdpProgram(std::move(map), std::move(program));
}

wherry::Status XdpProgram::attach(int interface, Mode mode) {
  bpf_attr attributes{};
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program_.get());
  attributes.link_create.target_ifindex = static_cast<std::uint32_t>(interface);
  attributes.link_create.attach_type = BPF_XDP;
  attributes.link_create.flags = mode == Mode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  Fd link(bpf(BPF_LINK_CREATE, attributes));
  if (!link) return program_error(mode == Mode::native ? "native mode" : "generic mode");
  link_ = std::move(link);
  return {};
}

wherry::Status XdpProgram::deliver(std::uint32_t queue, int socket) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<std::uint32_t>(map_.get());
  attributes.key = address(&queue);
  attributes.value = address(&socket);
  if (bpf(BPF_MAP_UPDATE_ELEM, attributes) != 0) return program_error(fmt::format("no socket for queue {}", queue));
  return {};
}

Result<std::uint32_t> XdpProgram::try_out(ByteView frame) const {
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<std::uint32_t>(program_.get());
  attributes.test.data_in = address(frame.data());
  attributes.test.data_size_in = static_cast<std::uint32_t>(frame.size());
  if (bpf(BPF_PROG_TEST_RUN, attributes) != 0) return program_error("cannot try the program");
  return attributes.test.retval;
}

}  // namespace wherry::kv
