// SPDX-License-Identifier: Apache-2.0
// The transaction layer packet (TLP) of PCI Express, as in this model. "Spec" is the PCI Express Base Specification,
// revision 5.0, whose section numbers are given.
//
// Addresses and lengths are in bytes; the model derives doublewords (DW, 4 bytes) and byte enables. Byte enables are
// contiguous. Not modelled: messages (errors are counted instead), I/O and configuration requests, atomic operations,
// address translation services, prefixes, other traffic classes than 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/pcie/time.hpp"

namespace wherry::sim::pcie {

inline constexpr std::uint32_t kPageBytes = 4096;  ///< no request crosses such a boundary (Spec 2.2.7)
inline constexpr std::uint32_t kDwBytes = 4;

/// Requester or completer ID: bus 8 bits, device 5, function 3 (Spec 2.2.4.2). Assigned by Fabric::enumerate().
using FunctionId = std::uint16_t;
inline constexpr FunctionId kHostId = 0;  ///< the root complex itself: host memory and the processor
[[nodiscard]] constexpr std::uint8_t bus_of(FunctionId id) noexcept { return static_cast<std::uint8_t>(id >> 8); }

enum class TlpKind : std::uint8_t {
  kWrite,       ///< memory write: posted
  kRead,        ///< memory read: non-posted
  kCompletion,  ///< with data (CplD), or without (Cpl) if the status is an error
};
/// The three classes of flow control and of ordering, which are the same, in the words of Spec 2.4 and 2.6.
enum class FlowClass : std::uint8_t { kPosted, kNonPosted, kCompletion };
inline constexpr std::size_t kFlowClasses = 3;
[[nodiscard]] constexpr FlowClass flow_class(TlpKind kind) noexcept { return static_cast<FlowClass>(kind); }

/// Spec 2.2.9, and other results that a requester may see.
enum class CompletionStatus : std::uint8_t {
  kSuccess,
  kUnsupportedRequest,  ///< UR: nobody has that address, or the IOMMU refused it
  kCompleterAbort,      ///< CA
  kPoisoned,            ///< data came marked as wrong (EP); they were delivered all the same
  kTimeout,             ///< no completion in time: the requester's own finding
  kAborted,             ///< the requester was reset, removed, or lost bus mastering before the answer came
};

/// Spec 2.2.6.3 to 2.2.6.5.
struct Attributes {
  bool relaxed_ordering = false;  ///< RO
  bool id_ordering = false;       ///< IDO
  bool no_snoop = false;          ///< carried, without effect
};

struct Tlp {
  TlpKind kind = TlpKind::kWrite;
  CompletionStatus status = CompletionStatus::kSuccess;  ///< of a completion: kSuccess, UR or CA
  bool poisoned = false;
  bool last = false;        ///< the last completion of its request
  bool redirected = false;  ///< ACS sent it up on purpose; the root has not seen it yet
  bool translated = false;  ///< the IOMMU has been asked already
  Attributes attributes{};
  std::uint16_t tag = 0;  ///< up to 10 bits
  FunctionId requester = 0;
  FunctionId completer = 0;     ///< of a completion
  std::uint64_t address = 0;    ///< of the first byte; of a completion: of its first byte, whole (the wire has 7 bits)
  std::uint32_t bytes = 0;      ///< of a write or completion: its payload. Of a read: what is asked for; 0: a flush
  std::uint32_t offset = 0;     ///< of a completion: of its first byte in the request
  std::uint32_t remaining = 0;  ///< of a completion: bytes of the request that are due, these included ("byte count")
  std::uint64_t number = 0;     ///< unique in the fabric: for observers; not on the wire
  std::byte* payload = nullptr;

  [[nodiscard]] constexpr FlowClass flow() const noexcept { return flow_class(kind); }
  [[nodiscard]] constexpr bool has_data() const noexcept { return kind != TlpKind::kRead && bytes != 0; }
  [[nodiscard]] std::span<const std::byte> data() const noexcept { return {payload, has_data() ? bytes : 0}; }
  /// Doublewords that the bytes touch; a flush asks for one (Spec 2.2.5).
  [[nodiscard]] constexpr std::uint32_t dw() const noexcept {
    const auto first = static_cast<std::uint32_t>(address % kDwBytes);
    return bytes == 0 ? 1 : (first + bytes + kDwBytes - 1) / kDwBytes;
  }
  /// Payload bytes on the link, in whole doublewords. The completion of a flush has one doubleword (Spec 2.2.5).
  [[nodiscard]] constexpr std::uint32_t payload_bytes() const noexcept {
    const bool empty = kind == TlpKind::kRead || status != CompletionStatus::kSuccess;
    return empty ? 0 : dw() * kDwBytes;
  }
  /// Header: 3 DW, or 4 for a request to an address beyond 4 GiB (Spec 2.2.4.1).
  [[nodiscard]] constexpr std::uint32_t header_bytes() const noexcept {
    return kind != TlpKind::kCompletion && address >> 32 != 0 ? 16 : 12;
  }
};

}  // namespace wherry::sim::pcie
