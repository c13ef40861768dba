// SPDX-License-Identifier: Apache-2.0
#include "raise.hpp"

#include <string>

namespace nb = nanobind;

namespace wherry::python {

nb::object exception_of(const Status& status) {
  const char* name = "Error";
  switch (status.code()) {
    case StatusCode::kWouldBlock:
      name = "WouldBlock";
      break;
    case StatusCode::kInvalidArgument:
      name = "InvalidArgument";
      break;
    case StatusCode::kNotFound:
      name = "NotFound";
      break;
    case StatusCode::kAlreadyExists:
      name = "AlreadyExists";
      break;
    case StatusCode::kUnsupported:
      name = "Unsupported";
      break;
    case StatusCode::kFailedPrecondition:
      name = "FailedPrecondition";
      break;
    case StatusCode::kDeadlineExceeded:
      name = "DeadlineExceeded";
      break;
    case StatusCode::kResourceExhausted:
      name = "ResourceExhausted";
      break;
    case StatusCode::kSourceFault:
      name = "SourceFault";
      break;
    case StatusCode::kCancelled:
      name = "Cancelled";
      break;
    case StatusCode::kUnavailable:
      name = "Unavailable";
      break;
    case StatusCode::kPermissionDenied:
      name = "PermissionDenied";
      break;
    case StatusCode::kVersionMismatch:
      name = "VersionMismatch";
      break;
    default:
      break;
  }
  const nb::object type = nb::module_::import_("wherry.errors").attr(name);
  const std::string text = status.message().empty() ? std::string(to_string(status.code())) : status.message();
  return type(nb::str(text.c_str(), text.size()));
}

void raise(const Status& status) {
  const nb::object error = exception_of(status);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

}  // namespace wherry::python
