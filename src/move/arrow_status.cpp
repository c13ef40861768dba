// SPDX-License-Identifier: Apache-2.0
#include "move/arrow_status.hpp"

#include <arrow/status.h>

namespace wherry::move {

std::string with_cause(const arrow::Status& status) {
  return status.detail() == nullptr ? status.message() : status.message() + ": " + status.detail()->ToString();
}

Status from_arrow(const arrow::Status& status, std::string_view what) {
  if (status.ok()) return ok_status();
  StatusCode code = StatusCode::kInternal;
  switch (status.code()) {
    case arrow::StatusCode::Invalid:
    case arrow::StatusCode::TypeError:
      code = StatusCode::kInvalidArgument;
      break;
    case arrow::StatusCode::KeyError:
      code = StatusCode::kNotFound;
      break;
    case arrow::StatusCode::NotImplemented:
      code = StatusCode::kUnsupported;
      break;
    case arrow::StatusCode::Cancelled:
      code = StatusCode::kCancelled;
      break;
    case arrow::StatusCode::IOError:
      code = StatusCode::kUnavailable;
      break;
    case arrow::StatusCode::OutOfMemory:
    case arrow::StatusCode::CapacityError:
      code = StatusCode::kResourceExhausted;
      break;
    default:
      break;
  }
  return {code, std::string(what) + ": " + with_cause(status)};
}

}  // namespace wherry::move
