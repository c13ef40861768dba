// SPDX-License-Identifier: Apache-2.0
// Fuzz target: for any file, the reader returns the announced number of entries, all within the announced matrix, or an
// error.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "common/matrix_market.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  apps::MatrixMarket matrix;
  std::uint64_t seen = 0;
  const Status status =
      apps::read_matrix_market(in, "input",
                               {.begin = [&](const apps::MatrixMarket& found) { matrix = found; },
                                .entry =
                                    [&](std::uint32_t row, std::uint32_t column, double value) {
                                      ++seen;
                                      if (row >= matrix.rows || column >= matrix.columns || !std::isfinite(value))
                                        std::abort();
                                      if (matrix.symmetric && column > row) std::abort();
                                    }});
  if (seen > matrix.entries) std::abort();
  if (status ? seen != matrix.entries || matrix.rows == 0 : status.message().empty()) std::abort();
  return 0;
}
