// SPDX-License-Identifier: Apache-2.0
// The devices of the device paths, and the parts of their memory that may be overwritten. A path that writes
// to a device stays absent until a user names the range, because probe cannot know if its contents matter.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "wherry/status.hpp"

namespace wherry::probe {

/// A device, and the bytes of it that probe may read and overwrite: "0000:04:00.0/2:0x1000+64KiB".
struct Target {
  std::string name;         ///< "0000:04:00.0/2", "xdma0"
  std::uint64_t base = 0;   ///< of the range, bytes
  std::uint64_t bytes = 0;  ///< > 0
};

/// Numbers are decimal or 0x; the size may have KiB, MiB, GiB. kInvalidArgument names the error in `text`.
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
  /// By variable: why it was refused. A path that needs it is absent, with this reason.
  std::map<std::string, std::string> refused;
  /// The reason for refusing the variable, or `otherwise` if it was not refused.
  [[nodiscard]] std::string refusal(const std::string& variable, std::string otherwise) const {
    const auto found = refused.find(variable);
    return found == refused.end() ? std::move(otherwise) : variable + ": " + found->second;
  }
};

/// `get`: a function like getenv, for tests.
DeviceSettings settings_from(const std::function<const char*(const char*)>& get);

}  // namespace wherry::probe
