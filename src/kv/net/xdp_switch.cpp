// SPDX-License-Identifier: Apache-2.0
#include "kv/net/xdp_switch.hpp"

#include <fmt/core.h>

#include <array>
#include <cstddef>

#include "base/try.hpp"
#include "kv/net/bpf.hpp"
#include "kv/net/neighbour.hpp"

namespace wherry::kv {
namespace {

using bpf::load, bpf::operation;

// A map's key has 32 bits, but a MAC 48. So the first two bytes are compared, and the other four looked up.
std::uint16_t first_two(std::uint64_t mac) { return static_cast<std::uint16_t>(mac >> 32); }
std::uint32_t last_four(std::uint64_t mac) { return static_cast<std::uint32_t>(mac); }

/// `map` gives the interface for the last four bytes of a MAC.
auto instructions(std::uint64_t mac, int map) {
  constexpr unsigned kContext = BPF_REG_1, kKey = BPF_REG_2, kOtherwise = BPF_REG_3, kEnd = BPF_REG_4,
                     kData = BPF_REG_5, kScratch = BPF_REG_0;
  constexpr std::size_t kMacBytes = 6;
  std::array code{
      load(BPF_W, kData, kContext, offsetof(xdp_md, data)),
      load(BPF_W, kEnd, kContext, offsetof(xdp_md, data_end)),
      operation(BPF_ALU64 | BPF_MOV | BPF_X, kScratch, kData, 0),
      operation(BPF_ALU64 | BPF_ADD, kScratch, kMacBytes),
      operation(BPF_JMP | BPF_JGT | BPF_X, kScratch, kEnd, 0),
      load(BPF_H, kScratch, kData, 0),
      operation(BPF_JMP32 | BPF_JNE, kScratch, __builtin_bswap16(first_two(mac))),
      load(BPF_W, kKey, kData, 2),
      operation(BPF_ALU | BPF_END | BPF_TO_BE, kKey, 32U),
      // NOLINTNEXTLINE(misc-redundant-expression): two of the three are 0, and belong there
      operation(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, map),
      bpf_insn{},  // the upper half of that 64-bit constant
      operation(BPF_ALU64 | BPF_MOV, kOtherwise, XDP_PASS),
      operation(BPF_JMP | BPF_CALL, 0, BPF_FUNC_redirect_map),
      operation(BPF_JMP | BPF_EXIT, 0, 0),
      operation(BPF_ALU64 | BPF_MOV, BPF_REG_0, XDP_PASS),
      operation(BPF_JMP | BPF_EXIT, 0, 0),
  };
  constexpr std::size_t kPass = code.size() - 2;
  for (const std::size_t jump : {std::size_t{4}, std::size_t{6}})
    code[jump].off = static_cast<std::int16_t>(kPass - jump - 1);
  return code;
}

}  // namespace

Result<XdpSwitch> XdpSwitch::open(std::span<const Station> stations) {
  if (stations.empty()) return wherry::Status(StatusCode::kInvalidArgument, "a switch without interfaces");
  for (const Station& station : stations)
    if (first_two(station.mac) != first_two(stations[0].mac))
      return wherry::Status(
          StatusCode::kInvalidArgument,
          fmt::format("{}: its MAC begins with {:04x}, that of {} with {:04x}: want the same", station.interface,
                      first_two(station.mac), stations[0].interface, first_two(stations[0].mac)));
  WHERRY_ASSIGN(auto map,
                bpf::make_map(BPF_MAP_TYPE_DEVMAP_HASH, static_cast<std::uint32_t>(stations.size()), "interfaces"));
  WHERRY_ASSIGN(auto program, bpf::load_program(instructions(stations[0].mac, map.get())));
  XdpSwitch made(std::move(map), std::move(program));
  for (const Station& station : stations) {
    WHERRY_ASSIGN(const auto interface, find_interface(station.interface));
    if (auto status = bpf::set(made.map_, last_four(station.mac), static_cast<std::uint32_t>(interface.index),
                               station.interface + " cannot be redirected to");
        !status)
      return status;
    auto link = bpf::attach(made.program_, interface.index, bpf::Mode::native);
    if (!link)
      return wherry::Status(link.status().code(), fmt::format("{}: {}", station.interface, link.status().message()));
    made.links_.push_back(*std::move(link));
  }
  return made;
}

}  // namespace wherry::kv
