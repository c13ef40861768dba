// SPDX-License-Identifier: Apache-2.0
// A TAP device (Linux, Documentation/networking/tuntap.rst) as the far end of a NIC's cable: frames that the kernel
// sends to it reach the NIC, and the NIC's frames reach the kernel.
#pragma once

#include <string>

#include "base/fd.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

struct TapSetup {
  std::string name;     ///< 1 to 15 letters
  std::string address;  ///< IPv4 with the length of its prefix, as 10.90.0.1/24
};

/// Makes the device, gives it the address and switches it on, without IPv6, so that the kernel sends no unrequested
/// frames. The device disappears when its last descriptor is closed. kPermissionDenied: CAP_NET_ADMIN is missing;
/// kAlreadyExists: the name is taken; kInvalidArgument; kUnsupported: the kernel has no TAP devices.
Result<Fd> make_tap(const TapSetup& setup);

/// Switches on the loopback device, which is off in a new network namespace.
Status switch_loopback_on();

}  // namespace wherry::sim
