// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <random>

#include "base/cpu.hpp"
#include "base/try.hpp"
#include "route/client/bootstrap_parts.hpp"
#include "route/client/environment.hpp"
#include "route/client/mpi_plugin_loader.hpp"

namespace wherry::route {
namespace {

constexpr const char* kPerNodeVariable = "WHERRY_RANKS_PER_NODE";

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
    Writer mine;
    mine.put(ranks_per_node);
    mine.put(random_word());
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    mine.put_string(host_identity() + '/' + name.data());
    WHERRY_ASSIGN(auto all, exchange(mine.bytes(), deadline));
    std::vector<std::string> host_of_rank;
    for (const Bytes& bytes : all) {
      Reader in(bytes);
      const auto theirs = in.get<std::uint32_t>();
      const auto job = in.get<std::uint64_t>();
      if (host_of_rank.empty()) job_ = job;
      host_of_rank.push_back(in.get_string());
      if (!in.at_end()) return {StatusCode::kProtocol, "a rank runs another version of Wherry"};
      if (theirs != ranks_per_node) {
        return {StatusCode::kInvalidArgument,
                fmt::format("{} is {} on rank {}, and {} on rank {}: give all the same", kPerNodeVariable,
                            ranks_per_node, rank_, theirs, host_of_rank.size() - 1)};
      }
    }
    node_ = number_nodes(host_of_rank, ranks_per_node)[rank_];
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
  static std::uint64_t random_word() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
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

std::vector<std::uint32_t> number_nodes(const std::vector<std::string>& host_of_rank, std::uint32_t ranks_per_node) {
  std::map<std::string, std::uint32_t> on_host;
  std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> numbers;
  std::vector<std::uint32_t> node_of_rank;
  for (const std::string& host : host_of_rank) {
    const std::uint32_t index = on_host[host]++;
    const std::uint32_t part = ranks_per_node == 0 ? 0 : index / ranks_per_node;
    const auto next = static_cast<std::uint32_t>(numbers.size());
    node_of_rank.push_back(numbers.try_emplace({host, part}, next).first->second);
  }
  return node_of_rank;
}

std::optional<MpiLauncher> find_mpi_launcher() {
  struct Trace {
    const char* rank;
    const char* ranks;  ///< null: the launcher does not say
  };
  // Process managers of MPICH and Intel MPI, Open MPI, PMIx (Open MPI 5, Slurm), Slurm without either.
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
  std::uint32_t ranks_per_node = 0;
  if (const auto text = variable(kPerNodeVariable)) {
    WHERRY_ASSIGN(ranks_per_node, number_of(kPerNodeVariable, *text, 1, kMaxRanks));
  }
  WHERRY_ASSIGN(auto plugin, load_plugin(launcher));
  auto bootstrap = std::make_unique<MpiBootstrap>(plugin);
  WHERRY_TRY(bootstrap->join(launcher, ranks_per_node, deadline));
  return std::unique_ptr<Bootstrap>(std::move(bootstrap));
}

}  // namespace wherry::route
