// SPDX-License-Identifier: Apache-2.0
// kv_rtl_bench: its measurements. Rows as docs/reference/bench-json.md has them.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace wherry::kv::rtl {

/// Latencies of single operations of an idle core, split as the thesis splits them.
nlohmann::json measure_latencies(bool quick);
/// Sustained rates on a 100 Gbit/s link.
nlohmann::json measure_rates(bool quick);

}  // namespace wherry::kv::rtl
