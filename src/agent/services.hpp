// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "session/service.hpp"

namespace wherry {

using Services = std::vector<std::unique_ptr<session::Service>>;

/// Makes one instance of each service of the agent.
Services make_services();

}  // namespace wherry
