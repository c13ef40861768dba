// SPDX-License-Identifier: Apache-2.0
// Programs in front of an interface, loaded by the bpf(2) system call. The programs are assembled here, so neither a
// BPF compiler nor an object loader is needed.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry::kv::bpf {

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

/// Makes a map from 32-bit numbers to 32-bit numbers, such as sockets or interfaces.
Result<Fd> make_map(bpf_map_type type, std::uint32_t entries, const std::string& what);
wherry::Status set(const Fd& map, std::uint32_t key, std::uint32_t value, const std::string& what);

/// Loads and verifies a program. It is not yet attached to an interface.
Result<Fd> load_program(std::span<const bpf_insn> code);

enum class Mode { native, generic };
/// Attaches the program to the interface until the descriptor is closed, or the process ends in any way.
Result<Fd> attach(const Fd& program, int interface, Mode mode);

/// Runs the program on a frame without an interface. Returns its verdict: XDP_PASS or XDP_REDIRECT.
Result<std::uint32_t> try_out(const Fd& program, ByteView frame);

}  // namespace wherry::kv::bpf
