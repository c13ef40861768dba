// SPDX-License-Identifier: Apache-2.0
// The list of services. A new one adds a line (and its library to CMakeLists.txt).
#include "agent/services.hpp"

#include "move/service/move_service.hpp"
#include "route/service/route_service.hpp"

namespace wherry {

Services make_services() {
  Services all;
  all.push_back(std::make_unique<move::MoveService>());
  all.push_back(std::make_unique<route::RouteService>());
  return all;
}

}  // namespace wherry
