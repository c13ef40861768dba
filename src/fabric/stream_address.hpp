// SPDX-License-Identifier: Apache-2.0
// The address of a worker's listener, and its secret. Processes of a job exchange both.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/socket.hpp"
#include "fabric/stream_auth.hpp"

namespace wherry::fabric {

struct StreamAddress {
  std::uint64_t id = 0;  ///< of the worker; not a secret
  Secret secret;
  std::vector<HostPort> candidates;  ///< one of them reaches it
};
Bytes encode(const StreamAddress& address);
/// kProtocol if it does not parse.
Result<StreamAddress> decode_stream_address(ByteView in);

/// Numeric addresses of this machine: those of the given interface, the given address, or all (loopback only if there
/// is no other). kInvalidArgument: there is no such address.
Result<std::vector<std::string>> addresses_of(const std::string& interface_or_address);
/// Opens a listener: on the given address if there is only one, else on every address of the machine.
Result<Fd> listen_on(const std::vector<std::string>& hosts);
/// Sorts candidates: addresses in a network of this machine come first.
void nearest_first(std::vector<HostPort>& candidates);

}  // namespace wherry::fabric
