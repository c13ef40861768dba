// SPDX-License-Identifier: Apache-2.0
// The experiments of designs_bench: figures 8 to 18 of paper 000, and measurements that explain them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace wherry::sim::designs {

using Say = std::function<void(const std::string&)>;

/// Each function returns its rows as docs/design/designs.md describes them. The figures of a row whose `error` is not
/// empty are invalid.
[[nodiscard]] nlohmann::json figures(bool quick, const Say& say);
[[nodiscard]] nlohmann::json turns(const Say& say);
[[nodiscard]] nlohmann::json interconnect(const Say& say);
[[nodiscard]] nlohmann::json linux_beside(const Say& say);
[[nodiscard]] nlohmann::json firmwares(const Say& say);

}  // namespace wherry::sim::designs
