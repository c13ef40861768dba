// SPDX-License-Identifier: Apache-2.0
#include "base/version.hpp"
#include "bindings.hpp"

NB_MODULE(_core, m) {
  m.attr("__version__") = wherry::kVersion;
  auto session = wherry::python::bind_session(m);
  wherry::python::bind_move(m, session);
}
