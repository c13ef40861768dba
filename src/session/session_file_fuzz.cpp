// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as a session file. They must be refused, or keep their meaning when written again.
#include <cstdlib>

#include "session/session_file.hpp"

using namespace wherry;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = parse_session({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!file) {
    if (file.status().code() != StatusCode::kProtocol && file.status().code() != StatusCode::kVersionMismatch)
      std::abort();
    return 0;
  }
  const auto again = parse_session(session_text(*file), "again");
  if (!again || *again != *file || file->pid <= 0 || (file->port == 0) != file->host.empty() ||
      (file->port == 0 && file->control.empty()))
    std::abort();
  return 0;
}
