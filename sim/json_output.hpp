// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace wherry::sim {

/// Writes a program's results to `file`, or to standard output if `file` is empty. Returns false, and writes a line to
/// standard error, if not all of it could be written.
[[nodiscard]] inline bool write_document(const nlohmann::json& document, const std::string& file,
                                         std::string_view program) {
  const std::string text = document.dump(1) + "\n";
  bool written = false;
  if (file.empty()) {
    written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  } else {
    std::ofstream out(file);
    out << text;
    out.close();  // a full disk may show only here
    written = !out.fail();
  }
  if (!written) fmt::print(stderr, "{}: cannot write {}\n", program, file.empty() ? "standard output" : file);
  return written;
}

}  // namespace wherry::sim
