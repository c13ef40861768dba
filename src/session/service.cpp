// SPDX-License-Identifier: Apache-2.0
#include "session/service.hpp"

#include <fmt/core.h>

#include <string>

namespace wherry::session {

Result<Bytes> Service::on_request(Client& /*client*/, std::string_view method, ByteView /*payload*/) {
  return Status(StatusCode::kUnsupported,
                fmt::format("the service {} has no method '{}'", name(), std::string(method.substr(0, 32))));
}

}  // namespace wherry::session
