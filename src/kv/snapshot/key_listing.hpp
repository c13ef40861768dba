// SPDX-License-Identifier: Apache-2.0
// Asks a node of this machine for the keys of its table: the client side of key_window.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "kv/snapshot/key_stream.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// How far something is: `done` of `all`. False: it is to end.
using Progress = std::function<bool(const char* what, std::uint64_t done, std::uint64_t all)>;

struct KeyListing {
  KeyGreeting greeting;
  std::vector<std::uint64_t> keys;  ///< sorted, each once
};

/// The keys of the node that listens at `path`. If the cluster holds a key from before this call until it returns, the
/// key is in the list. The list also has other keys: those that were added, removed or deleted meanwhile. kUnavailable:
/// no process listens there, or the node ended; kFailedPrecondition: it does not serve before the deadline, or left the
/// cluster meanwhile; kPermissionDenied: the socket belongs to another user, or this user may not connect; kCancelled:
/// `progress` said so.
Result<KeyListing> list_keys(const std::string& path, const Deadline& deadline, const Progress& progress);

}  // namespace wherry::kv
