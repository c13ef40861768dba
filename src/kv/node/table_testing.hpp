// SPDX-License-Identifier: Apache-2.0
// The content of a table, read from every location, without look-ups.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "kv/node/table.hpp"

namespace wherry::kv::testing {

/// The location of each key. Throws std::logic_error if a key is at two locations, or not in one of its buckets.
inline std::map<std::uint64_t, Location> all_keys(const Table& table) {
  std::map<std::uint64_t, Location> found;
  for (std::uint32_t bucket = 0; bucket < table.buckets(); ++bucket)
    for (std::uint32_t way = 0; way < kWays; ++way) {
      const Way& w = table.line(bucket).ways[way];
      if (w.present == 0) continue;
      if (!found.emplace(w.key, location_of(bucket, way)).second)
        throw std::logic_error("key " + std::to_string(w.key) + " is at two locations");
      const std::uint32_t hash = hash_of(w.key);
      std::uint32_t i = 0;
      while (i < candidates(table.bits()) && bucket_at_index(hash, i, table.bits()) != bucket) ++i;
      if (i == candidates(table.bits()))
        throw std::logic_error("key " + std::to_string(w.key) + " is in none of its buckets");
    }
  return found;
}
/// Returns whether both tables have the same content, with versions, in all locations.
inline bool same_tables(const Table& a, const Table& b) {
  for (std::uint32_t bucket = 0; bucket < a.buckets(); ++bucket)
    for (std::uint32_t way = 0; way < kWays; ++way) {
      const Location at = location_of(bucket, way);
      const Way &x = a.way(at), &y = b.way(at);
      if (x.version != y.version || x.present != y.present || (x.present != 0 && x.key != y.key)) return false;
      if (x.present != 0 && !std::ranges::equal(a.value(at), b.value(at))) return false;
    }
  return true;
}

}  // namespace wherry::kv::testing
