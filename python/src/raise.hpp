// SPDX-License-Identifier: Apache-2.0
// Code that the compiled modules share; each has a copy.
#pragma once

#include <nanobind/nanobind.h>

#include "wherry/status.hpp"

namespace wherry::python {

/// Returns the exception of wherry.errors for a Status, with its message.
nanobind::object exception_of(const Status& status);
/// Raises a Status as the Python exception wherry.<Name>, with its message. Only this function does so.
[[noreturn]] void raise(const Status& status);

}  // namespace wherry::python
