// SPDX-License-Identifier: Apache-2.0
// wherry._native._core: the C++ API for Python. This layer is thin: the Python package has the names, defaults and
// conversions that are easier in Python. Each service has one file with its bindings.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>

#include "raise.hpp"
#include "wherry/session.hpp"

namespace wherry::python {

namespace nb = nanobind;

using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.status());
  return *std::move(result);
}
inline void ok_or_raise(const Status& status) {
  if (!status) raise(status);
}

/// A session's Python objects keep it alive through their member `owner`.
struct PySession {
  explicit PySession(Session s) : session(std::move(s)) {}
  Session session;
};

/// Binds SessionInfo, Memory, Region, Session, open_session().
nb::class_<PySession> bind_session(nb::module_& m);
/// Binds Ticket, Stream, Session.open_stream().
void bind_move(nb::module_& m, nb::class_<PySession>& session);

}  // namespace wherry::python
