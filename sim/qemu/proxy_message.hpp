// SPDX-License-Identifier: Apache-2.0
// Messages of multi-process QEMU (docs/system/multi-process.rst and include/hw/remote/mpqemu-link.h of QEMU 7.2 to 10):
// what its x-pci-proxy-dev sends to the device's process. They are structs of the machine's ABI, 64 bit, little-endian:
// a header {int command; size_t size;} and `size` bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

enum class ProxyCommand : std::uint32_t {
  kSyncMemory = 0,  ///< the machine's memory; no answer
  kReturn = 1,      ///< our answer
  kConfigWrite = 2,
  kConfigRead = 3,
  kBarWrite = 4,
  kBarRead = 5,
  kInterrupts = 6,  ///< two event descriptors for INTx; no answer
  kReset = 7,
};

struct ProxyMessage {
  ProxyCommand command = ProxyCommand::kReset;
  std::uint64_t address = 0;  ///< configuration register, or bus address
  std::uint64_t value = 0;    ///< of writes
  std::uint32_t bytes = 0;    ///< of the access: 1, 2, 4 or 8
  [[nodiscard]] bool wants_answer() const noexcept {
    return command != ProxyCommand::kSyncMemory && command != ProxyCommand::kInterrupts;
  }
};

inline constexpr std::size_t kProxyHeaderBytes = 16;
inline constexpr std::size_t kProxyMaxBody = 192;  ///< kSyncMemory's: eight addresses, sizes and offsets

/// Returns the first message of `in` and its number of bytes, or nothing while it is incomplete. kProtocol: this is not
/// such a message, and what follows cannot be understood either.
struct ParsedProxyMessage {
  ProxyMessage message;
  std::size_t bytes = 0;
};
Result<std::optional<ParsedProxyMessage>> parse_proxy_message(ByteView in);

/// The answer to any message that wants one: a value, or 0 for writes.
[[nodiscard]] Bytes proxy_answer(std::uint64_t value);

}  // namespace wherry::sim
