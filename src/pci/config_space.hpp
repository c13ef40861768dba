// SPDX-License-Identifier: Apache-2.0
// The configuration space of a PCI function, as bytes written by a device, so every pointer in it may be wrong. Offsets
// and bits are those of Linux' include/uapi/linux/pci_regs.h, which follows the PCI Express Base Specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace wherry::pci {

inline constexpr std::size_t kConfigHeader = 64;      ///< bytes that any user may read (sysfs)
inline constexpr std::size_t kConfigClassic = 256;    ///< bytes of conventional PCI
inline constexpr std::size_t kConfigExtended = 4096;  ///< bytes of PCI Express

/// Bits of the ACS capability register (what a port can do) and of the ACS control register (what is switched on).
enum AcsBits : std::uint16_t {
  kAcsSourceValidation = 1U << 0,     ///< SV
  kAcsTranslationBlocking = 1U << 1,  ///< TB
  kAcsRequestRedirect = 1U << 2,      ///< RR: requests between devices below the switch go up to the root complex
  kAcsCompletionRedirect = 1U << 3,   ///< CR: the same for completions
  kAcsUpstreamForwarding = 1U << 4,   ///< UF
  kAcsEgressControl = 1U << 5,        ///< EC: a bit vector forbids single ports
  kAcsDirectTranslated = 1U << 6,     ///< DT
};
/// Bits that send peer-to-peer traffic through the root complex. Linux checks the same three (drivers/pci/p2pdma.c,
/// pci_bridge_has_acs_redir).
inline constexpr std::uint16_t kAcsRedirects = kAcsRequestRedirect | kAcsCompletionRedirect | kAcsEgressControl;

struct Acs {
  std::uint16_t offset = 0;      ///< of the capability in configuration space
  std::uint16_t capability = 0;  ///< AcsBits
  std::uint16_t control = 0;     ///< AcsBits
};

/// Device/Port Type of the PCI Express Capabilities register.
enum class PortType : std::uint8_t {
  kEndpoint = 0,
  kLegacyEndpoint = 1,
  kRootPort = 4,
  kSwitchUpstream = 5,
  kSwitchDownstream = 6,
  kToPciBridge = 7,
  kFromPciBridge = 8,
  kRootComplexEndpoint = 9,
  kRootComplexCollector = 10,
};

struct Express {
  std::uint8_t offset = 0;  ///< of the capability
  PortType type = PortType::kEndpoint;
  std::uint16_t device_control = 0;
};
inline constexpr std::uint8_t kExpressDeviceControl = 8;    ///< of the register, from the capability's offset
inline constexpr std::uint16_t kRelaxedOrdering = 1U << 4;  ///< Enable Relaxed Ordering, in device_control

/// Addresses that a bridge forwards downward, both ends included. Empty if first > last.
struct Window {
  std::uint64_t first = 1, last = 0;
  [[nodiscard]] bool covers(std::uint64_t from, std::uint64_t bytes) const noexcept {
    return bytes != 0 && from >= first && from <= last && bytes - 1 <= last - from;
  }
};

/// The content of a base address register: an address on the bus, not of the CPU.
struct BarRegister {
  std::uint64_t address = 0;
  bool memory = false;  ///< else I/O ports
  bool wide = false;    ///< 64-bit: takes the next register, too
  bool prefetchable = false;
};

class ConfigSpace {
 public:
  ConfigSpace() = default;
  /// `bytes`: all that could be read: kConfigHeader, kConfigClassic or kConfigExtended bytes, or any other number.
  explicit ConfigSpace(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  /// Beyond the bytes that were read, returns all ones, as for a function that does not exist.
  [[nodiscard]] std::uint8_t u8(std::size_t offset) const noexcept;
  [[nodiscard]] std::uint16_t u16(std::size_t offset) const noexcept;
  [[nodiscard]] std::uint32_t u32(std::size_t offset) const noexcept;

  [[nodiscard]] bool is_bridge() const noexcept { return size() >= kConfigHeader && (u8(0x0E) & 0x7F) == 1; }
  /// Whether the capabilities after the header could be read. sysfs shows them only to root.
  [[nodiscard]] bool sees_capabilities() const noexcept { return size() >= kConfigClassic; }
  [[nodiscard]] bool sees_extended() const noexcept { return size() >= kConfigExtended; }

  /// Offset of the first capability with this number. A list that has a loop or leaves its bounds ends at that point.
  [[nodiscard]] std::optional<std::uint8_t> find(std::uint8_t id) const noexcept;
  [[nodiscard]] std::optional<std::uint16_t> find_extended(std::uint16_t id) const noexcept;
  /// No value: the function lacks the capability, or it could not be read (sees_extended(), sees_capabilities()).
  [[nodiscard]] std::optional<Acs> acs() const noexcept;
  [[nodiscard]] std::optional<Express> express() const noexcept;

  /// For a function that is not a bridge. No value: the BAR is not set, or is the upper half of a 64-bit one.
  [[nodiscard]] std::optional<BarRegister> bar(unsigned index) const noexcept;
  /// For a bridge: the window for 32-bit memory, and the window for prefetchable memory.
  [[nodiscard]] Window memory_window() const noexcept;
  [[nodiscard]] Window prefetchable_window() const noexcept;

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace wherry::pci
