// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/pcie/parameters.hpp"
#include "sim/shell/load/load.hpp"
#include "sim/shell/stream.hpp"

namespace wherry::sim::shell::load {
namespace {

constexpr double kCycleNs = 4;     ///< ns, of 250 MHz
constexpr double kTlp = 12 + 8;    ///< link bytes beside a TLP's payload: header below 4 GiB, framing and LCRC
constexpr double kCardBytes = 32;  ///< a cycle, each way, of the memory's port

/// The time of a byte on Gen3 x16 in ns: 8 GT/s, 128b/130b, SKP.
double link_byte() { return static_cast<double>(pcie::byte_time({.generation = 3, .lanes = 16})) / (1 << 20) / 1000; }

/// Calls `visit` for each piece: at most `most` bytes, and within one page.
template <typename Visit>
void pieces(std::uint32_t bytes, std::uint32_t most, std::uint32_t offset, Visit&& visit) {
  for (std::uint32_t done = 0; done < bytes;) {
    const std::uint32_t page = kPageBytes - (offset + done) % kPageBytes;
    const std::uint32_t part = std::min({bytes - done, most, page});
    visit(part);
    done += part;
  }
}

}  // namespace

std::vector<Bound> bounds_of(Path path, std::uint32_t bytes, const Parameters& p, const Limits& limits) {
  std::vector<Bound> found;
  const auto stage = [&](std::string_view name, double time) { found.push_back({name, bytes / time}); };
  const bool from_wire = path == Path::kWireToHost || path == Path::kWireToHbm;
  const bool to_wire = path == Path::kHostToWire || path == Path::kHbmToWire;
  const bool to_host = path == Path::kWireToHost || path == Path::kHbmToHost;
  const bool from_host = path == Path::kHostToWire || path == Path::kHostToHbm;
  const bool mover = path == Path::kWireToHbm || path == Path::kHbmToWire;
  if (from_wire || to_wire) {
    stage("wire", 8.0 * (bytes + limits.wire_overhead) / limits.wire_gbits);
    stage("stream of 512 bit at 250 MHz", kCycleNs * (beats_of(bytes) + (mover ? limits.mover_gap - 1 : 0)));
  }
  if (to_host) {
    double beats = 0, link = 0;
    pieces(bytes, p.mps, p.host_offset, [&](std::uint32_t part) {
      beats += beats_of(kRequestBytes + part);
      link += kTlp + part;
    });
    if (path == Path::kWireToHost) {
      beats += beats_of(kRequestBytes + limits.completion);
      link += kTlp + limits.completion;
    }
    stage("RQ", kCycleNs * beats);
    stage("PCIe link, to the host", link * link_byte());
  }
  if (from_host) {
    double beats = 0, link = 0;
    pieces(bytes, p.mrrs, p.host_offset, [&](std::uint32_t request) {
      pieces(request, p.completion, 0, [&](std::uint32_t part) {
        beats += beats_of(kCompletionBytes + part);
        link += kTlp + part;
      });
    });
    stage("RC", kCycleNs * beats);
    stage("PCIe link, to the card", link * link_byte());
  }
  if (path != Path::kWireToHost && path != Path::kHostToWire) stage("memory's port", kCycleNs * bytes / kCardBytes);
  return found;
}

Bound bound_of(Path path, std::uint32_t bytes, const Parameters& p, const Limits& limits) {
  const std::vector<Bound> all = bounds_of(path, bytes, p, limits);
  return *std::ranges::min_element(all, {}, &Bound::gbytes_per_s);
}

}  // namespace wherry::sim::shell::load
