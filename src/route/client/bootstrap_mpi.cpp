// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "base/cpu.hpp"
#include "base/try.hpp"
#include "route/client/bootstrap_parts.hpp"
#include "route/mpi_plugin/plugin.hpp"

namespace wherry::route {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPluginVariable = "WHERRY_MPI_PLUGIN";
constexpr const char* kPerNodeVariable = "WHERRY_RANKS_PER_NODE";

struct Plugin {
  decltype(&wherry_mpi_version) version = nullptr;
  decltype(&wherry_mpi_family) family = nullptr;
  decltype(&wherry_mpi_init) init = nullptr;
  decltype(&wherry_mpi_allgatherv) allgatherv = nullptr;
  decltype(&wherry_mpi_error) error = nullptr;
};

/// Where the plugin may be: named, else beside the library or program that this code is in, else where the dynamic
/// linker looks.
std::vector<std::string> plugin_places() {
  if (auto named = variable(kPluginVariable)) return {*named};
  std::vector<std::string> places;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&number_nodes), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code error;
    const fs::path here = fs::canonical(info.dli_fname, error).parent_path();
    for (const char* place : {".", "../lib", "../src", "../../src", "../../build/release/src"}) {
      const fs::path candidate = (here / place / "libwherry_mpi.so").lexically_normal();
      if (access(candidate.c_str(), R_OK) == 0) places.push_back(candidate.string());
    }
  }
  places.emplace_back("libwherry_mpi.so");
  return places;
}

template <typename F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

/// The first line of what the MPI that this process is linked with says of itself; empty: there is none. May be asked
/// before MPI_Init (MPI 3.1, section 8.1.1).
std::string mpi_of_program() {
  using GetVersion = int (*)(char*, int*);
  const auto get = reinterpret_cast<GetVersion>(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  if (get == nullptr) return {};
  std::string text(8192, '\0');  // the longest of MPICH and Open MPI
  int length = 0;
  get(text.data(), &length);
  text.resize(std::min(text.find('\0'), text.size()));
  return text.substr(0, text.find('\n'));
}

/// Calls of two MPI libraries in one process end in each other's functions.
Status check_family(const std::string& program, std::string_view plugin, const std::string& place) {
  if (program.empty() || plugin.empty()) return {};
  const bool open_mpi = program.find("Open MPI") != std::string::npos;
  if (open_mpi == (plugin == "Open MPI")) return {};
  return {StatusCode::kVersionMismatch,
          fmt::format("this program is linked with another MPI ({}) than the plugin {} ({}): build the plugin with the "
                      "program's MPI (docs/route-launch.md) and name it with {}",
                      program, place, plugin, kPluginVariable)};
}

Result<Plugin> load_plugin(const MpiLauncher& launcher) {
  std::string tried;
  const std::string program = mpi_of_program();
  for (const std::string& place : plugin_places()) {
    if (!program.empty()) {
      // First without its functions becoming anybody else's, and without calling MPI.
      void* const candidate = dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL);
      decltype(&wherry_mpi_family) family = nullptr;
      if (candidate != nullptr && find(candidate, "wherry_mpi_family", family)) {
        WHERRY_TRY(check_family(program, family(), place));
      }
    }
    // Global: some MPI libraries load parts that expect to find the rest of it so. Never closed: MPI does not like
    // that.
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      if (const char* why = dlerror(); why != nullptr) tried += fmt::format("\n  {}", why);
      continue;
    }
    Plugin plugin;
    if (!find(library, "wherry_mpi_version", plugin.version) || !find(library, "wherry_mpi_init", plugin.init) ||
        (plugin.version() == WHERRY_MPI_PLUGIN_VERSION && !find(library, "wherry_mpi_family", plugin.family)) ||
        !find(library, "wherry_mpi_allgatherv", plugin.allgatherv) ||
        !find(library, "wherry_mpi_error", plugin.error)) {
      return Status(StatusCode::kVersionMismatch, fmt::format("{} is not Wherry's MPI plugin", place));
    }
    if (plugin.version() != WHERRY_MPI_PLUGIN_VERSION) {
      return Status(StatusCode::kVersionMismatch,
                    fmt::format("the MPI plugin {} is of version {}, the library wants {}: build both from one source",
                                place, plugin.version(), WHERRY_MPI_PLUGIN_VERSION));
    }
    return plugin;
  }
  return Status(
      StatusCode::kNotFound,
      fmt::format("an MPI launcher started this process ({} is set), but the MPI plugin libwherry_mpi.so cannot be "
                  "loaded, and without it the ranks cannot find each other. Build it with the MPI of that launcher "
                  "(docs/route-launch.md) and put it beside the library, or name it with {}; or use `wherry run`. "
                  "Tried:{}",
                  launcher.variable, kPluginVariable, tried));
}

class MpiBootstrap final : public Bootstrap {
 public:
  explicit MpiBootstrap(Plugin plugin) : plugin_(plugin) {}

  [[nodiscard]] Rank rank() const noexcept override { return rank_; }
  [[nodiscard]] Rank ranks() const noexcept override { return ranks_; }
  [[nodiscard]] std::uint32_t node() const noexcept override { return node_; }
  [[nodiscard]] std::uint64_t job() const noexcept override { return job_; }

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
  // health(): the MPI launcher ends the other processes when one of them dies.

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

  const Plugin plugin_;
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
    const std::uint32_t place = on_host[host]++;
    const std::uint32_t part = ranks_per_node == 0 ? 0 : place / ranks_per_node;
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
    const auto ranks = parse_number(trace.ranks, *text, 1, kMaxRanks);
    if (!ranks || *ranks > 1) return MpiLauncher{trace.ranks, ranks ? std::optional(*ranks) : std::nullopt};
    return std::nullopt;
  }
  return std::nullopt;
}

Result<std::unique_ptr<Bootstrap>> join_mpi(const MpiLauncher& launcher, const Deadline& deadline) {
  std::uint32_t ranks_per_node = 0;
  if (const auto text = variable(kPerNodeVariable)) {
    WHERRY_ASSIGN(ranks_per_node, parse_number(kPerNodeVariable, *text, 1, kMaxRanks));
  }
  WHERRY_ASSIGN(auto plugin, load_plugin(launcher));
  auto bootstrap = std::make_unique<MpiBootstrap>(plugin);
  WHERRY_TRY(bootstrap->join(launcher, ranks_per_node, deadline));
  return std::unique_ptr<Bootstrap>(std::move(bootstrap));
}

}  // namespace wherry::route
