// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::bench {

/// Serves DoPut on a free loopback port, which it writes to `port_pipe` as an int, until SIGTERM. Every batch is
/// acknowledged with one metadata message once it has been read in full, and kept until the next one has.
int serve_flight(int port_pipe);

}  // namespace wherry::bench
