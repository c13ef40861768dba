// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job find each other before there are lanes: everybody's bytes to everybody, a few times.
#pragma once

#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "route/breakdown.hpp"
#include "wherry/route.hpp"

namespace wherry::route {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  [[nodiscard]] virtual Rank rank() const noexcept = 0;
  [[nodiscard]] virtual Rank ranks() const noexcept = 0;
  /// Number of this rank's node, from 0, none left out.
  [[nodiscard]] virtual std::uint32_t node() const noexcept = 0;
  /// Identifies the job among all that an agent may serve; the same on every rank.
  [[nodiscard]] virtual std::uint64_t job() const noexcept = 0;
  /// Collective: element i is what rank i gave.
  virtual Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline& deadline) = 0;
  /// Ok, or why the job cannot go on: another rank or an agent died. Never blocks.
  [[nodiscard]] virtual Status health() noexcept { return {}; }
  /// This rank has found the job broken: tells the launcher, which then knows whose end to name. Never blocks.
  virtual void report(const Breakdown& /*breakdown*/) noexcept {}
};

/// That of `wherry run` (WHERRY_BOOTSTRAP is set) or of an MPI launcher; null: this process is a job of its own.
Result<std::unique_ptr<Bootstrap>> find_bootstrap(const Deadline& deadline);

}  // namespace wherry::route
