// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job find each other before they are connected: by a few exchanges of bytes among all ranks.
#pragma once

#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "route/job_failure.hpp"
#include "wherry/route.hpp"

namespace wherry::route {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  [[nodiscard]] virtual Rank rank() const noexcept = 0;
  [[nodiscard]] virtual Rank ranks() const noexcept = 0;
  /// The number of this rank's node. Nodes are numbered from 0, without gaps.
  [[nodiscard]] virtual std::uint32_t node() const noexcept = 0;
  /// Identifies the job among all jobs of an agent. Equal on every rank.
  [[nodiscard]] virtual std::uint64_t job() const noexcept = 0;
  /// Whether each rank reads the path profile. False: the launcher has read it, or the profile is switched
  /// off.
  [[nodiscard]] virtual bool ranks_read_profile() const noexcept { return false; }
  /// Collective: blocks until every rank has called it. Element i is the contribution of rank i.
  virtual Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline& deadline) = 0;
  /// Ok, or why the job has failed: another rank or an agent died. Never blocks.
  [[nodiscard]] virtual Status health() noexcept { return {}; }
  /// Reports to the launcher that the job has failed; the launcher then names the cause. Never blocks.
  virtual void report(const JobFailure& /*failure*/) noexcept {}
};

/// The bootstrap of `wherry run`, else of a PMIx server, else of an MPI launcher. Null: this process is a job of one
/// rank. WHERRY_BOOTSTRAP is the socket of `wherry run`, or it is `pmix` or `mpi` and forces that kind.
Result<std::unique_ptr<Bootstrap>> find_bootstrap(const Deadline& deadline);

}  // namespace wherry::route
