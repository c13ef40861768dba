// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads small files of settings as a whole.
#include <cstddef>
#include <string>

#include "wherry/status.hpp"

namespace wherry {

/// Returns the content of a file of at most `limit` bytes. `what` is for the message: "the configuration file".
/// kNotFound: no such file. kPermissionDenied. kInvalidArgument: it is a directory, it cannot be read, or it is larger.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, const std::string& what,
                                                 std::size_t limit = std::size_t{1} << 20);

}  // namespace wherry
