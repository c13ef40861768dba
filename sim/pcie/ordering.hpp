// SPDX-License-Identifier: Apache-2.0
// Whether one TLP may pass another. Spec 2.4.1, table "Ordering Rules Summary", within one traffic class.
#pragma once

#include "sim/pcie/tlp.hpp"

namespace wherry::sim::pcie {

enum class Passing : std::uint8_t {
  kNo,    ///< "No"
  kMay,   ///< "Y/N"
  kMust,  ///< "Yes": when the earlier one is blocked, to avoid deadlock
};

/// Whether `later`, which came to a buffer after `earlier`, may leave it first.
[[nodiscard]] constexpr Passing passing(const Tlp& later, const Tlp& earlier) noexcept {
  const bool ido = later.attributes.id_ordering;
  const auto issuer = [](const Tlp& tlp) { return tlp.kind == TlpKind::kCompletion ? tlp.completer : tlp.requester; };
  if (earlier.kind == TlpKind::kWrite) {  // column 2: A2, B2, D2
    const bool relaxed = later.attributes.relaxed_ordering && later.kind != TlpKind::kRead;
    return relaxed || (ido && issuer(later) != issuer(earlier)) ? Passing::kMay : Passing::kNo;
  }
  if (earlier.kind == TlpKind::kRead) {  // column 3: A3, B3, D3
    return later.kind == TlpKind::kRead ? Passing::kMay : Passing::kMust;
  }
  // Column 5: A5a, B5, D5. Completions of one request keep their order (D5b).
  const bool same =
      later.kind == TlpKind::kCompletion && later.requester == earlier.requester && later.tag == earlier.tag;
  return same ? Passing::kNo : Passing::kMay;
}

}  // namespace wherry::sim::pcie
