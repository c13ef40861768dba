// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: for any line, parse_request must return a request with values in range, or an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "move/service/local_request.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  const auto request = move::parse_request({reinterpret_cast<const char*>(data), size});
  if (!request) {
    if (request.status().code() != StatusCode::kInvalidArgument || request.status().message().empty()) std::abort();
  } else if (request->timeout < std::chrono::milliseconds(0) || request->timeout > move::kMaxLocalWait) {
    std::abort();
  }
  return 0;
}
