// SPDX-License-Identifier: Apache-2.0
// The measurements of kv_rtl_bench. docs/reference/bench-json.md describes the rows.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace wherry::kv::rtl {

/// Latencies of single operations on an idle core, divided as in the thesis.
nlohmann::json measure_latencies(bool quick);
/// Sustained rates on a 100 Gbit/s link.
nlohmann::json measure_rates(bool quick);

}  // namespace wherry::kv::rtl
