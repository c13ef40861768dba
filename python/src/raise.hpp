// SPDX-License-Identifier: Apache-2.0
// What the parts of wherry._core share.
#pragma once

#include <nanobind/nanobind.h>

#include "wherry/status.hpp"

namespace wherry::python {

/// The exception of wherry.errors for a Status, with its message.
nanobind::object exception_of(const Status& status);
/// The one place where a Status becomes a Python exception: wherry.<Name>, raised with the message.
[[noreturn]] void raise(const Status& status);

/// kv.cpp: the client of the key-value store.
void register_kv(nanobind::module_& m);

}  // namespace wherry::python
