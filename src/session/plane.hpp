// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "fabric/fabric.hpp"

namespace wherry::session {

/// A transport of an agent. All clients that use it share it. The agent creates it when it is first needed.
struct Plane {
  std::shared_ptr<fabric::Context> context;
  std::unique_ptr<fabric::Worker> worker;
  fabric::Region arena;  ///< the agent's arena, registered with it: destination of gets
};

}  // namespace wherry::session
