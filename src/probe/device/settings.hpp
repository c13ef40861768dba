// SPDX-License-Identifier: Apache-2.0
// The devices that the device paths use, and which of their memory may be overwritten. A path that writes to a device
// does nothing until a person has named the range, because probe cannot know the content.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "wherry/status.hpp"

namespace wherry::probe {

/// "0000:04:00.0/2:0x1000+64KiB": a device, and the bytes of it that probe may read and overwrite.
struct Target {
  std::string name;         ///< "0000:04:00.0/2", "xdma0"
  std::uint64_t base = 0;   ///< of the range, bytes
  std::uint64_t bytes = 0;  ///< > 0
};

/// kInvalidArgument names the error in `text`. The numbers are decimal or 0x. The size takes KiB, MiB, GiB.
Result<Target> parse_target(const std::string& text);

struct DeviceSettings {
  std::string sysfs = "/sys";  ///< trees of files like these stand in for them in tests
  std::string dev = "/dev";
  std::string cuda_library = "libcuda.so.1";
  std::string verbs_library = "libibverbs.so.1";
  std::string pci;                  ///< WHERRY_PROBE_PCI: function of pci.config; empty: the first
  std::optional<Target> bar;        ///< WHERRY_PROBE_BAR: FUNCTION/BAR:BASE+BYTES
  std::optional<Target> ivshmem;    ///< WHERRY_PROBE_IVSHMEM: FUNCTION/2:BASE+BYTES
  std::optional<Target> xdma;       ///< WHERRY_PROBE_XDMA: "xdma0:BASE+BYTES", of the card's memory
  std::optional<Target> xdma_user;  ///< WHERRY_PROBE_XDMA_USER: the same of the AXI-Lite window
  std::optional<Target> qdma;       ///< WHERRY_PROBE_QDMA: "qdma01000-MM-0:BASE+BYTES"
  int cuda_device = 0;              ///< WHERRY_PROBE_CUDA
  std::string verbs_device;         ///< WHERRY_PROBE_VERBS; empty: the first whose port is active
  /// The reason for refusing each variable. A path that would use it is absent, and gives this reason.
  std::map<std::string, std::string> refused;
  /// Why the variable was refused; `otherwise` if it was not.
  [[nodiscard]] std::string refusal(const std::string& variable, std::string otherwise) const {
    const auto found = refused.find(variable);
    return found == refused.end() ? std::move(otherwise) : variable + ": " + found->second;
  }
};

/// `get`: like getenv, for tests.
DeviceSettings settings_from(const std::function<const char*(const char*)>& get);

}  // namespace wherry::probe
