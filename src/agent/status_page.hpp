// SPDX-License-Identifier: Apache-2.0
// The agent's page for browsers: files of src/agent/page, built into the program.
#pragma once

#include <array>

namespace wherry {

struct PageFile {
  const char* path;  ///< as a browser asks for it
  const char* type;  ///< of its content
  const char* content;
};

extern const std::array<PageFile, 3> kStatusPage;

}  // namespace wherry
