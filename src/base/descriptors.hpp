// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "wherry/status.hpp"

namespace wherry {

/// Whether this process can open `count` more file descriptors. kResourceExhausted if it cannot: the message names
/// `who` ("the agent"), the limit and the remedy. Thread-safe; takes microseconds.
Status check_descriptors(const char* who, std::size_t count);

}  // namespace wherry
