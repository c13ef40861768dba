// SPDX-License-Identifier: Apache-2.0
// The settings that all members of a cluster must share: docs/guide/kv.md, the cluster file.
#pragma once

#include <array>
#include <string>

#include "kv/control/control.hpp"

namespace wherry::kv {

struct ClusterTerms {
  std::string cluster;
  std::array<Endpoint, kMaxNodes> nodes{};  ///< port 0: there is none
  std::uint32_t bucket_bits = 0;
  std::uint32_t lanes = 0;
  AckPolicy policy = AckPolicy::store;
};

/// Whether `judge` ("the keeper", "node 2") may accept this hello. Empty: it may. Otherwise a sentence with both
/// values.
[[nodiscard]] std::string mismatch(const ClusterTerms& ours, const Hello& theirs, const std::string& judge);

}  // namespace wherry::kv
