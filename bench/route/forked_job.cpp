// SPDX-License-Identifier: Apache-2.0
#include "forked_job.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/secret.hpp"
#include "common/measure.hpp"
#include "route/client/bootstrap.hpp"
#include "route/client/runtime_access.hpp"

namespace wherry::bench {
namespace {

constexpr std::size_t kSlotBytes = 256 << 10;
constexpr std::size_t kMaxResults = 64 << 10;
constexpr int kRounds = 8;

/// One rank's slot in the shared memory.
struct Slot {
  std::atomic<std::uint32_t> contributed;  ///< rounds of exchange()
  std::uint32_t bytes[kRounds];
  std::byte data[kSlotBytes];
  std::size_t results;
  double result[kMaxResults];
  char error[1024];
};

template <typename T>
T* map_shared(std::size_t count) {
  if (count == 0) return nullptr;
  void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error(fmt::format("mmap: {}", std::strerror(errno)));
  return static_cast<T*>(memory);
}

class SharedBootstrap final : public route::Bootstrap {
 public:
  SharedBootstrap(Slot* slots, route::Rank rank, route::Rank ranks, std::uint32_t node, std::uint64_t job)
      : slots_(slots), rank_(rank), ranks_(ranks), node_(node), job_(job) {}
  [[nodiscard]] route::Rank rank() const noexcept override { return rank_; }
  [[nodiscard]] route::Rank ranks() const noexcept override { return ranks_; }
  [[nodiscard]] std::uint32_t node() const noexcept override { return node_; }
  [[nodiscard]] std::uint64_t job() const noexcept override { return job_; }
  Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline& deadline) override {
    Slot& slot = slots_[rank_];
    if (round_ == kRounds || used_ + mine.size() > kSlotBytes)
      return Status(StatusCode::kResourceExhausted, "the bench's shared memory is too small for this job");
    if (!mine.empty()) std::memcpy(slot.data + used_, mine.data(), mine.size());
    slot.bytes[round_] = static_cast<std::uint32_t>(mine.size());
    used_ += mine.size();
    slot.contributed.store(++round_, std::memory_order_release);
    std::vector<Bytes> all;
    for (route::Rank other = 0; other < ranks_; ++other) {
      while (slots_[other].contributed.load(std::memory_order_acquire) < round_) {
        if (deadline.passed()) return Status(StatusCode::kDeadlineExceeded, "another rank did not come");
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      std::size_t from = 0;
      for (std::uint32_t i = 0; i + 1 < round_; ++i) from += slots_[other].bytes[i];
      const std::byte* const data = slots_[other].data + from;
      all.emplace_back(data, data + slots_[other].bytes[round_ - 1]);
    }
    return all;
  }

 private:
  Slot* slots_;
  route::Rank rank_, ranks_;
  std::uint32_t node_;
  std::uint64_t job_;
  std::uint32_t round_ = 0;
  std::size_t used_ = 0;
};

std::unique_ptr<AgentPool> g_pool;

/// The agents of one job. After the job they return to the pool, or end.
class Agents {
 public:
  explicit Agents(const JobOptions& options) : fresh_(options.fresh_agents) {
    if (options.placement == route::Placement::kInline) return;
    if (g_pool == nullptr) g_pool = std::make_unique<AgentPool>();
    try {
      for (std::uint32_t node = 0; node < options.nodes; ++node) {
        const int core = options.agent_cores[node % options.agent_cores.size()];
        all_.push_back(&g_pool->take(core, options.routing_threads, fresh_));
      }
    } catch (...) {
      give_back();
      throw;
    }
  }
  Agents(const Agents&) = delete;
  Agents& operator=(const Agents&) = delete;
  ~Agents() { give_back(); }
  [[nodiscard]] const std::vector<RunningAgent*>& all() const noexcept { return all_; }
  [[nodiscard]] std::vector<AgentCounts> counts() const {
    std::vector<AgentCounts> counts;
    for (const RunningAgent* agent : all_) counts.push_back(agent->counts());
    return counts;
  }

 private:
  void give_back() noexcept {
    for (RunningAgent* agent : all_) {
      if (fresh_) {
        g_pool->end(*agent);
      } else {
        g_pool->give_back(*agent);
      }
    }
  }
  bool fresh_;
  std::vector<RunningAgent*> all_;
};

const Agents* g_agents = nullptr;  // for agent_memory() in the ranks

void run_rank(const JobOptions& options, const RankBody& body, Slot* slots, route::Rank rank, std::uint64_t job,
              const SharedMemory& shared) {
  Slot& slot = slots[rank];
  const auto give_up = [&](const std::string& why) {
    std::snprintf(slot.error, sizeof slot.error, "rank %u: %s", rank, why.c_str());
    _exit(1);
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int core = options.rank_cores[rank % options.rank_cores.size()];
  if (Status s = pin_thread({core}); !s) give_up(s.message());
  const route::Rank ranks = options.nodes * options.ranks_per_node;
  route::Options route = options.route;
  route.placement = options.placement;
  auto bootstrap = std::make_unique<SharedBootstrap>(slots, rank, ranks, rank / options.ranks_per_node, job);
  auto wiring = route::wire_processes(route, std::move(bootstrap), Deadline(std::chrono::seconds(30)));
  if (!wiring) give_up(wiring.status().message());
  try {
    route::Runtime runtime = route::detail::make_runtime(route, *std::move(wiring));
    const Results results = body(runtime, shared);
    if (!runtime.status()) give_up(runtime.status().message());
    if (results.size() > kMaxResults) give_up("too many results");
    std::memcpy(slot.result, results.data(), results.size() * sizeof(double));
    slot.results = results.size();
  } catch (const std::exception& error) {
    give_up(error.what());
  }
  _exit(0);
}

}  // namespace

std::vector<Results> run_job(const JobOptions& options, const RankBody& body, std::vector<AgentCounts>* counts) {
  const route::Rank ranks = options.nodes * options.ranks_per_node;
  Slot* const slots = map_shared<Slot>(ranks);
  std::byte* const extra = map_shared<std::byte>(options.shared_bytes);
  const SharedMemory shared{{extra, options.shared_bytes}};
  struct Unmap {
    void* memory;
    std::size_t bytes;
    ~Unmap() {
      if (memory != nullptr) munmap(memory, bytes);
    }
  };
  const Unmap unmap_slots{slots, ranks * sizeof(Slot)}, unmap_extra{extra, options.shared_bytes};

  const Agents agents(options);
  g_agents = &agents;
  const std::vector<AgentCounts> before = counts != nullptr ? agents.counts() : std::vector<AgentCounts>();

  const std::uint64_t job = random_u64();
  std::vector<pid_t> children;
  for (route::Rank rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (!agents.all().empty()) {
        const session::EmbeddedProcess& agent = agents.all()[rank / options.ranks_per_node]->process;
        setenv("WHERRY_AGENT", agent.session_file().c_str(), 1);
      }
      run_rank(options, body, slots, rank, job, shared);
    }
    children.push_back(pid);
  }
  const auto end_all = [&] {
    for (const pid_t pid : children) {
      if (pid > 0) kill(pid, SIGKILL);
    }
  };
  std::string failure;
  const Deadline deadline(options.timeout);
  for (std::size_t left = children.size(); left != 0;) {
    for (route::Rank rank = 0; rank < ranks; ++rank) {
      int how = 0;
      if (children[rank] < 0 || waitpid(children[rank], &how, WNOHANG) != children[rank]) continue;
      children[rank] = -1;
      --left;
      if (how != 0 && failure.empty()) {
        failure = slots[rank].error[0] != 0 ? slots[rank].error : fmt::format("rank {} died (status {})", rank, how);
      }
    }
    if (failure.empty() && deadline.passed()) failure = "the job took too long";
    if (!failure.empty()) end_all();
    try {
      check_interrupted();
    } catch (const Interrupted&) {
      end_all();
      for (const pid_t pid : children) {
        if (pid > 0) waitpid(pid, nullptr, 0);
      }
      throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!failure.empty()) throw std::runtime_error(failure);
  if (counts != nullptr) {
    *counts = agents.counts();
    for (std::size_t node = 0; node < counts->size(); ++node) {
      (*counts)[node].bytes -= before[node].bytes;
      (*counts)[node].transfers -= before[node].transfers;
      (*counts)[node].blocked -= before[node].blocked;
    }
  }
  std::vector<Results> all;
  for (route::Rank rank = 0; rank < ranks; ++rank)
    all.emplace_back(slots[rank].result, slots[rank].result + slots[rank].results);
  return all;
}

std::vector<AgentMemory> agent_memory() {
  std::vector<AgentMemory> all;
  for (const RunningAgent* agent : g_agents->all()) all.push_back(agent->memory());
  return all;
}

void end_agents() { g_pool.reset(); }

}  // namespace wherry::bench
