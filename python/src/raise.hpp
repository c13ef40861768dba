// SPDX-License-Identifier: Apache-2.0
// What the compiled modules share: each has a copy.
#pragma once

#include <nanobind/nanobind.h>

#include "wherry/status.hpp"

namespace wherry::python {

/// The exception of wherry.errors for a Status, with its message.
nanobind::object exception_of(const Status& status);
/// The one place where a Status becomes a Python exception: wherry.<Name>, raised with the message.
[[noreturn]] void raise(const Status& status);

}  // namespace wherry::python
