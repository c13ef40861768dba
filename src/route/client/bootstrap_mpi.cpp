// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>

#include "base/try.hpp"
#include "route/client/bootstrap_parts.hpp"
#include "route/client/environment.hpp"
#include "route/client/meeting.hpp"
#include "route/client/mpi_plugin_loader.hpp"

namespace wherry::route {
namespace {

class MpiBootstrap final : public Bootstrap {
 public:
  explicit MpiBootstrap(MpiPlugin plugin) : plugin_(plugin) {}

  [[nodiscard]] Rank rank() const noexcept override { return rank_; }
  [[nodiscard]] Rank ranks() const noexcept override { return ranks_; }
  [[nodiscard]] std::uint32_t node() const noexcept override { return node_; }
  [[nodiscard]] std::uint64_t job() const noexcept override { return job_; }
  [[nodiscard]] bool ranks_read_profile() const noexcept override { return true; }

  Status join(const MpiLauncher& launcher, std::uint32_t ranks_per_node, const Deadline& deadline) {
    if (const int code = plugin_.init(&rank_, &ranks_, left(deadline)); code != kWherryMpiOk) return failed(code);
    if (launcher.ranks && *launcher.ranks != ranks_) {
      return {
          StatusCode::kVersionMismatch,
          fmt::format("the launcher started {} ranks ({}), but the MPI of the plugin sees {}: either the plugin was "
                      "built with another MPI than the launcher's (build it with that one, name it with {}), or the "
                      "launcher must be told which MPI it serves (srun --mpi=list)",
                      *launcher.ranks, launcher.variable, ranks_, kPluginVariable)};
    }
    WHERRY_ASSIGN(const Meeting meeting, meet(*this, ranks_per_node, deadline));
    node_ = meeting.node;
    job_ = meeting.job;
    return {};
  }

  Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline& deadline) override {
    const std::uint64_t size = mine.size();
    std::vector<std::uint64_t> sizes(ranks_, sizeof size);
    std::vector<std::uint64_t> sizes_of_all(ranks_);
    if (const int code = plugin_.allgatherv(&size, sizes.data(), sizes_of_all.data(), left(deadline)); code != 0)
      return failed(code);
    std::uint64_t total = 0;
    for (const std::uint64_t bytes : sizes_of_all) total += bytes;
    Bytes gathered(total);
    if (const int code = plugin_.allgatherv(mine.data(), sizes_of_all.data(), gathered.data(), left(deadline));
        code != 0)
      return failed(code);
    std::vector<Bytes> all;
    auto at = gathered.begin();
    for (const std::uint64_t bytes : sizes_of_all) {
      all.emplace_back(at, at + static_cast<std::ptrdiff_t>(bytes));
      at += static_cast<std::ptrdiff_t>(bytes);
    }
    return all;
  }
  // No health(): the MPI launcher ends the other processes when one of them dies.

 private:
  static std::uint64_t left(const Deadline& deadline) {
    constexpr int kDay = 86'400'000;
    return static_cast<std::uint64_t>(deadline.left_ms(kDay));
  }
  [[nodiscard]] Status failed(int code) const {
    return {code == kWherryMpiLate ? StatusCode::kDeadlineExceeded : StatusCode::kUnavailable,
            fmt::format("MPI: {}", plugin_.error())};
  }

  const MpiPlugin plugin_;
  Rank rank_ = 0, ranks_ = 1;
  std::uint32_t node_ = 0;
  std::uint64_t job_ = 0;
};

}  // namespace

std::optional<MpiLauncher> find_mpi_launcher() {
  struct Trace {
    const char* rank;
    const char* ranks;  ///< null: the launcher does not say
  };
  // In order: MPICH and Intel MPI; Open MPI; Slurm; PMIx (Open MPI 5, Slurm).
  constexpr std::array<Trace, 4> kTraces{{{"PMI_RANK", "PMI_SIZE"},
                                          {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                          {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                          {"PMIX_RANK", nullptr}}};
  for (const Trace& trace : kTraces) {
    if (!variable(trace.rank)) continue;
    if (trace.ranks == nullptr) return MpiLauncher{trace.rank, std::nullopt};
    const auto text = variable(trace.ranks);
    if (!text) continue;
    const auto ranks = number_of(trace.ranks, *text, 1, kMaxRanks);
    if (!ranks || *ranks > 1) return MpiLauncher{trace.ranks, ranks ? std::optional(*ranks) : std::nullopt};
    return std::nullopt;
  }
  return std::nullopt;
}

Result<std::unique_ptr<Bootstrap>> join_mpi(const MpiLauncher& launcher, const Deadline& deadline) {
  WHERRY_ASSIGN(const std::uint32_t per_node, ranks_per_node());
  WHERRY_ASSIGN(auto plugin, load_plugin(launcher));
  auto bootstrap = std::make_unique<MpiBootstrap>(plugin);
  WHERRY_TRY(bootstrap->join(launcher, per_node, deadline));
  return std::unique_ptr<Bootstrap>(std::move(bootstrap));
}

}  // namespace wherry::route
