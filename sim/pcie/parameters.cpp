// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/parameters.hpp"

namespace wherry::sim::pcie {
namespace {
constexpr std::int64_t kUnit = std::int64_t{1} << 20;
constexpr Time kAcrossSwitch = 100 * kNanosecond;  // SwitchOptions::latency
static_assert(kAcrossSwitch == SwitchOptions{}.latency);

/// Picoseconds that a lane takes for eight bits, without the encoding.
constexpr std::int64_t symbol_bits(std::uint32_t generation) {
  constexpr std::array<std::int64_t, 5> kSymbol{3200, 1600, 1000, 500, 250};  // Spec 4.2, 8.4: 2.5, 5, 8, 16, 32 GT/s
  return kSymbol[generation - 1];
}
constexpr bool old_encoding(std::uint32_t generation) { return generation <= 2; }
}  // namespace

std::int64_t byte_time(const LinkOptions& link) noexcept {
  const std::int64_t bits = symbol_bits(link.generation) * kUnit;
  std::int64_t time = old_encoding(link.generation) ? bits * 10 / 8 : bits * 130 / 128;
  if (link.overhead.skip) time = old_encoding(link.generation) ? time * 1538 / 1534 : time * 375 / 374;
  time = time * 1'000'000 / (1'000'000 - link.overhead.reserved_ppm);
  return time / link.lanes;
}

Time dllp_latency(const LinkOptions& link, std::uint32_t mps) noexcept {
  // Tenths. Spec, tables 2-46 to 2-48 (UpdateFC) and 3-7 to 3-9 (ACK); wide links let more TLPs pass in between.
  std::int64_t factor = 10;
  if (mps <= 256) {
    factor = link.lanes <= 4 ? 14 : link.lanes <= 8 ? 25 : 30;
  } else if (link.lanes > 8) {
    factor = 20;
  }
  constexpr std::array<std::int64_t, 5> kInternalDelay{19, 70, 115, 115, 115};
  const std::int64_t symbols =
      (std::int64_t{mps} + 28) * factor / (10 * link.lanes) + kInternalDelay[link.generation - 1];
  const std::int64_t bits = symbol_bits(link.generation);
  return symbols * (old_encoding(link.generation) ? bits * 10 / 8 : bits);
}

RootOptions ideal_root() { return {}; }

RootOptions intel_xeon_4110() {
  RootOptions root;
  root.name = "Intel Xeon 4110";
  root.peer_latency = kAcrossSwitch;
  root.peer_cut = 64;
  root.peer_interval = 19'256 * kPicosecond;  // 304 B x 8 / 8.42 Gbit/s / 15
  return root;
}

RootOptions amd_epyc_7402() {
  RootOptions root;
  root.name = "AMD EPYC 7402";
  root.peer_latency = kAcrossSwitch + 128 * kNanosecond;
  return root;
}

}  // namespace wherry::sim::pcie
