// SPDX-License-Identifier: Apache-2.0
// Asks a node of this machine for its table's keys: the client side of key_window.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "kv/snapshot/key_stream.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// Reports progress: `done` of `all`. Returns false to end the work.
using Progress = std::function<bool(const char* what, std::uint64_t done, std::uint64_t all)>;

struct KeyListing {
  KeyGreeting greeting;
  std::vector<std::uint64_t> keys;  ///< sorted, each once
};

/// The keys of the node that listens at `path`. A key that is in the cluster during the whole call is in the list. Keys
/// added, removed or deleted during the call may be in it as well. kUnavailable: no process listens at `path`, or the
/// node ended; kFailedPrecondition: the node does not serve before the deadline, or left the cluster meanwhile;
/// kPermissionDenied: the socket belongs to another user, or this user may not connect; kCancelled: `progress` returned
/// false.
Result<KeyListing> list_keys(const std::string& path, const Deadline& deadline, const Progress& progress);

}  // namespace wherry::kv
