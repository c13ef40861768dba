// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "wherry/status.hpp"

namespace wherry {

/// Whether this process can open `count` more file descriptors. If not: kResourceExhausted, which names `who` ("the
/// agent"), the limit and what to do. Thread-safe; takes microseconds.
Status check_descriptors(const char* who, std::size_t count);

}  // namespace wherry
