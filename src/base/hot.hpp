// SPDX-License-Identifier: Apache-2.0
// Code of the host's hot path, kept together so that it can be fetched at once.
//
// Between two offloads an application streams through its data. This evicts our code, and the page tables that map it,
// from all caches. Serial misses then cost several microseconds of a call (measured: 6 of 8 us). Functions marked
// WHERRY_HOT lie in one section, and prefetch_hot_code() fetches all of it.
#pragma once

#include "base/prefetch.hpp"

#define WHERRY_HOT [[gnu::section("wherry_hot"), gnu::noinline]]

// The linker defines these symbols for a section whose name is a C identifier.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __start_wherry_hot[];  // NOLINT(bugprone-reserved-identifier)
[[gnu::visibility("hidden")]] extern const char __stop_wherry_hot[];   // NOLINT(bugprone-reserved-identifier)
}

namespace wherry {

inline void prefetch_hot_code() noexcept {
  prefetch(__start_wherry_hot, static_cast<std::size_t>(__stop_wherry_hot - __start_wherry_hot));
}

}  // namespace wherry
