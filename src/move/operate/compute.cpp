// SPDX-License-Identifier: Apache-2.0
#include "move/operate/compute.hpp"

#include <arrow/compute/initialize.h>

#include "move/arrow_status.hpp"

namespace wherry::move {

Status start_compute() {
  static const Status started = from_arrow(arrow::compute::Initialize(), "starting Arrow's compute functions");
  return started;
}

}  // namespace wherry::move
