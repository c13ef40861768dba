// SPDX-License-Identifier: Apache-2.0
#include "wherry/status.hpp"

#include <cstdio>
#include <cstdlib>

namespace wherry {

std::string_view to_string(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kWouldBlock:
      return "would block";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kAlreadyExists:
      return "already exists";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kFailedPrecondition:
      return "failed precondition";
    case StatusCode::kDeadlineExceeded:
      return "deadline exceeded";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kSourceFault:
      return "source fault";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kPermissionDenied:
      return "permission denied";
    case StatusCode::kVersionMismatch:
      return "version mismatch";
    case StatusCode::kProtocol:
      return "protocol error";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown status";
}

std::string Status::to_string() const {
  std::string text(wherry::to_string(code_));
  if (!message_.empty()) text += ": " + message_;
  return text;
}

void Status::no_value() const noexcept {
  std::fprintf(stderr, "wherry: the value of a failed Result was used: %s\n", to_string().c_str());
  std::abort();
}

}  // namespace wherry
