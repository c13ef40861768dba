// SPDX-License-Identifier: Apache-2.0
// Every parameter of the PCIe model, in one table: value, unit, source and mark. A parameter is
//   given:  a specification, a datasheet or a public measurement says so;
//   chosen: nobody says, or it is the user's to say: what stands here is reasonable, and no published result was used;
//   fitted: made to meet a published result, which the model therefore does not predict.
// docs/design/pcie-model.md explains them. No other file of sim/pcie contains numbers of its own.
//
// Spec: PCI Express Base Specification, revision 5.0. Paper: paper 002, "Host Bypassing"
// (published/host_bypassing.csv). PB18: R. Neugebauer et al., "Understanding PCIe performance for end host networking",
// SIGCOMM 2018.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/pcie/time.hpp"
#include "sim/pcie/tlp.hpp"

namespace wherry::sim::pcie {

inline constexpr std::uint32_t kCreditBytes = 16;  ///< given: the unit of data credits (Spec 2.6.1)
inline constexpr std::uint32_t kInfinite = 0;      ///< no limit
/// Buffer space that a receiver offers, in TLPs and in units of 16 bytes.
struct Credits {
  std::uint32_t headers = kInfinite;
  std::uint32_t data = kInfinite;
};
struct ReceiveBuffer {
  Credits posted{127, 750};      ///< given: Intel L- and H-tile PCIe user guide (683111), table 51
  Credits non_posted{115, 230};  ///< given: the same
  Credits completion{};          ///< given: endpoints and root complexes must advertise no limit (Spec 2.6.1)
};

/// Bytes of a link that do not carry payload.
struct LinkOverhead {
  /// given: Gen1/2 STP 1 + sequence 2 + LCRC 4 + END 1; Gen3+ STP token 4 + LCRC 4 (Spec 3.6.2, 4.2.1, 4.2.2)
  std::uint32_t framing = 8;
  std::uint32_t ecrc = 0;  ///< given: 4 if both ends use end-to-end checks (Spec 2.7.1), which few do
  /// given: ACK or UpdateFC: 6 bytes, framed by SDP and END or by a two-byte token (Spec 3.5.1, 4.2)
  std::uint32_t dllp = 8;
  bool skip = true;   ///< given: SKP ordered sets (Spec 4.2.7): 4 of 1538 symbols, from Gen3 on one of 375 blocks
  bool dllps = true;  ///< chosen: count ACKs and UpdateFCs on the link. Off: what a formula without them says
  /// Parts per million of the link that remain unused. chosen: 0. PB18's model uses 78,818 for Gen3 x8 and MPS 256: two
  /// DLLPs of 8 bytes in 203 bytes. The Spec's 203 are symbol times, in each of which x8 carries 8 bytes.
  std::uint32_t reserved_ppm = 0;
};

struct LinkOptions {
  /// given: 1 to 5: 2.5, 5, 8, 16, 32 GT/s; 8b/10b to Gen2, then 128b/130b (Spec 4.2)
  std::uint32_t generation = 3;
  std::uint32_t lanes = 8;  ///< given: 1, 2, 4, 8, 12, 16, 32 (Spec 1.3)
  /// From the last bit sent to the last bit received: wire, both PHYs, data link layers. fitted: two links, a switch
  /// (100 ns) and an FPGA's hard block and bridge (130 ns) make the 350 ns one way of research section 4.
  Time propagation = 60 * kNanosecond;
  LinkOverhead overhead{};
  /// One TLP in this many is damaged on the wire and sent again (Spec 3.6.2). The transaction layer sees a delay.
  /// chosen: none
  std::uint32_t replay_one_in = 0;
};

struct SwitchOptions {
  /// First bit in to first bit out. given: "cut-thru with a maximum latency of 100 ns (x16 to x16)", PEX 8747 product
  /// brief, version 1.0
  Time latency = 100 * kNanosecond;
  bool cut_through = true;  ///< given: the same brief. false: store and forward: the last bit in to the first bit out
  ReceiveBuffer buffer{.completion = {127, 750}};  ///< chosen: of each port; a switch must limit completions, too
};

/// How a root complex treats a request between two of its ports (peer to peer; Spec 1.3.1 leaves it open).
enum class PeerToPeer : std::uint8_t {
  kForwarded,
  kRefused,      ///< unsupported request
  kReadsVanish,  ///< writes pass, reads are never answered: Intel client processors (PEERS.md section 4)
  kReadsWrong,   ///< reads succeed with wrong bytes: Rocket Lake, forced (intel/compute-runtime#935)
};

struct RootOptions {
  std::string name = "ideal";
  ReceiveBuffer buffer{};  ///< chosen: as endpoints
  std::uint32_t rcb = 64;  ///< given: read completion boundary, bytes: 64 or 128 (Spec 2.3.1.1)
  /// Completions for reads of host memory carry at most this many bytes (and at most MPS). given: PB18 section 4:
  /// 64-byte cache lines are combined up to MPS; 64 on older Xeons
  std::uint32_t completion_bytes = 256;
  /// From a read at the root port to its first data; writes take it, too, but nothing waits for them. chosen: with the
  /// links some 335 ns for 64 bytes, to which a device adds its own; PB18 measures 400 to 550 ns from within devices.
  Time memory_latency = 200 * kNanosecond;
  Time memory_jitter = 0;  ///< chosen: uniformly so much more; completions of different reads then pass each other
  PeerToPeer peer_to_peer = PeerToPeer::kForwarded;  ///< chosen
  Time peer_latency = 0;  ///< chosen, or see below: first bit in to first bit out; never before the last bit is in
  std::uint32_t peer_cut =
      0;  ///< chosen, or see below: peer requests are cut to so many bytes at such boundaries; 0: not
  Time peer_interval =
      0;  ///< chosen, or see below: one such (cut) request each; all ports together; completions are free
  std::uint32_t peer_tags = 256;  ///< chosen: cut reads that may be unanswered
  /// When an unanswered cut read is forgotten. given: 50 ms, the default range's end (Spec 7.5.3.16)
  Time peer_timeout = 50 * kMillisecond;
  Time iommu_hit = 0;                   ///< chosen: more for a request whose page is in the IOTLB
  Time iommu_miss = 330 * kNanosecond;  ///< given: PB18 section 6.5, about 330 ns for a page walk
  std::uint32_t iotlb_entries = 64;     ///< given: PB18 section 6.5, about 64
};

/// No limit, and no latency except that of the links.
[[nodiscard]] RootOptions ideal_root();
/// Paper, Fig. 8: requests cut to 64 bytes (given: "largest packets seen from the NIC"), one each 19.256 ns (fitted to
/// 8.42 Gbit/s at 15 requests for a packet of 304 bytes on the wire: docs/design/pcie-model.md). Latency: chosen, equal
/// to the switch's.
[[nodiscard]] RootOptions intel_xeon_4110();
/// Paper, Table I: each crossing takes 128 ns more than the switch (fitted to 13.89 - 13.12 us over 6 crossings). The
/// paper's latency at low rates (minimum at 5.5 Gbit/s) is not modelled.
[[nodiscard]] RootOptions amd_epyc_7402();

/// The device's end of a link.
struct EndpointOptions {
  ReceiveBuffer buffer{};  ///< see there
  /// Between the link and the functions: hard block and bridge. chosen: none; research section 4 has 130 ns for an
  /// FPGA; a NIC's model contains its own.
  Time receive_latency = 0;
  Time send_latency = 0;  ///< chosen: the same the other way
};

inline constexpr std::size_t kBars = 6;
struct BarOptions {
  std::uint64_t bytes = 0;    ///< given: a power of two, 128 at least (Spec 7.5.1.2.1); 0: not there
  bool prefetchable = false;  ///< chosen: 64-bit, in the prefetchable window (beyond 4 GiB); otherwise below 4 GiB
};

struct FunctionOptions {
  std::string name;
  std::array<BarOptions, kBars> bars{};
  /// The most requests without an answer. given: 32, 256 with extended tags, 768 with 10-bit tags (Spec 2.2.6.2)
  std::uint32_t tags = 256;
  std::uint32_t mrrs = 0;  ///< chosen: bytes; 0: the fabric's
  /// Its completions carry at most this many bytes (and at most MPS) and end at multiples of them. chosen: 0, MPS.
  /// given: multiples of 128 (Spec 2.3.1.1)
  std::uint32_t completion_bytes = 0;
  /// given: 50 us to 50 ms is the default range (Spec 7.5.3.16); 10 ms recommended at least
  Time completion_timeout = 10 * kMillisecond;
  std::uint32_t queue_bytes = 16384;  ///< chosen: may wait to be sent before try_write() and try_read() say no
};

/// Which of the allowed orders occurs. With chance 0: first come, first served, unless the rules demand that one passes
/// another (a TLP with credits passes one without).
struct Reordering {
  std::uint32_t per_mille = 0;            ///< chosen: of TLPs that each buffer holds back, so that others pass
  Time longest_hold = 500 * kNanosecond;  ///< chosen: uniformly up to this
  bool split_anywhere = false;            ///< chosen: completions end at any boundary that the rules allow
};

struct FabricOptions {
  RootOptions root = ideal_root();
  /// Bytes: one value for the whole hierarchy, because peers need it (Linux: pci=pcie_bus_peer2peer sets 128). chosen:
  /// what servers commonly have (PB18, Fig. 1)
  std::uint32_t mps = 256;
  std::uint32_t mrrs = 512;  ///< bytes. chosen: as PB18, Fig. 1
  Reordering reordering{};
  std::uint64_t seed = 1;  ///< chosen
  /// Host memory: from address 0 to 3 GiB, the rest from 4 GiB on. chosen
  std::uint64_t memory_bytes = std::uint64_t{1} << 32;
};

// Derived.

/// Picoseconds that a byte takes on the link, in units of 2^-20 ps, including the SKP ordered sets' share.
[[nodiscard]] std::int64_t byte_time(const LinkOptions& link) noexcept;
/// The bytes of a TLP on the link.
[[nodiscard]] constexpr std::uint32_t link_bytes(const Tlp& tlp, const LinkOverhead& overhead) noexcept {
  return tlp.header_bytes() + tlp.payload_bytes() + overhead.framing + overhead.ecrc;
}
/// The longest time that a receiver may delay an ACK or an UpdateFC (Spec 3.6.3.1 and 2.6.1.2, with the same formula:
/// (MPS + 28) x factor / lanes + internal delay, in symbol times).
[[nodiscard]] Time dllp_latency(const LinkOptions& link, std::uint32_t mps) noexcept;

}  // namespace wherry::sim::pcie
