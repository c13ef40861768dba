// SPDX-License-Identifier: Apache-2.0
// Clients that load a kv cluster, each in its own thread, and their results.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kv/latencies.hpp"
#include "wherry/kv.hpp"

namespace wherry::kv::bench {

enum class Verb : std::uint8_t { read, write, write_if };
inline constexpr std::size_t kVerbs = 3;
inline constexpr std::array<std::string_view, kVerbs> kVerbNames{"read", "write", "write_if"};
inline constexpr std::size_t kOutcomes = 10;

struct LoadOptions {
  ClientOptions client;  ///< first_lane, if any: of the first thread; the others have the lanes behind
  unsigned clients = 1;
  unsigned depth = 1;  ///< operations in flight of each client
  double seconds = 3;
  double warm_up = 0.3;
  std::array<unsigned, kVerbs> mix{90, 10, 0};  ///< shares
  std::uint32_t value_bytes = 64;
  std::uint64_t keys = 10'000;
  double zipf = 0;  ///< 0: uniform; else the exponent
  int led_by = -1;  ///< a node: only the keys of 1 to `keys` that it leads in mode static
  std::uint64_t seed = 1;
};

struct VerbResult {
  Latencies latencies;  ///< of those that ended kOk
  std::array<std::uint64_t, kOutcomes> outcomes{};
};

struct LoadResult {
  double seconds = 0;
  std::array<VerbResult, kVerbs> verbs;
  ClientStatistics statistics;
};

/// Writes every key once, so that reads find something. An error names the first key that could not be written.
wherry::Status fill(const LoadOptions& options);
/// Blocks for warm_up + seconds. Operations count if they began after the warm-up.
Result<LoadResult> load(const LoadOptions& options);

}  // namespace wherry::kv::bench
