// SPDX-License-Identifier: Apache-2.0
#include "forked_job.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/socket.hpp"
#include "common/measure.hpp"
#include "fabric/control.hpp"
#include "fabric/embedded.hpp"
#include "route/client/bootstrap.hpp"
#include "route/client/runtime_core.hpp"

namespace wherry::bench {
namespace {

constexpr std::size_t kSlotBytes = 256 << 10;
constexpr std::size_t kMostResults = 64 << 10;
constexpr int kRounds = 8;

/// Of one rank, in memory that all of them share.
struct Slot {
  std::atomic<std::uint32_t> contributed;  ///< rounds of exchange()
  std::uint32_t bytes[kRounds];
  std::byte data[kSlotBytes];
  std::size_t results;
  double result[kMostResults];
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

struct RunningAgent {
  int pid;
  std::size_t idle_rss;
};
std::vector<RunningAgent> g_agents;  // for agent_memory() in the ranks

AgentMemory memory_of(int pid) {
  AgentMemory memory;
  std::ifstream rollup(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string line; std::getline(rollup, line);) {
    std::istringstream words(line);
    std::string name;
    std::size_t kib = 0;
    words >> name >> kib;
    if (name == "Rss:") memory.rss = kib << 10;
    if (name == "Pss:") memory.pss = kib << 10;
  }
  return memory;
}

/// The agent's metrics page, in Prometheus' text format.
std::string metrics_page(const std::string& session_file) {
  const SessionFile session = require(read_session_file(session_file), "agent");
  constexpr std::string_view kScheme = "http://", kPath = "/metrics";
  const std::string at = session.metrics.substr(kScheme.size(), session.metrics.find(kPath) - kScheme.size());
  const Deadline deadline(std::chrono::seconds(10));
  const Fd socket = require(connect_tcp(require(parse_host_port(at), "metrics"), deadline), "metrics");
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    throw std::runtime_error(fmt::format("metrics: {}", std::strerror(errno)));
  std::string text;
  char chunk[4096];
  while (!deadline.passed()) {
    const ssize_t n = ::recv(socket.get(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (n == 0) break;
    if (n > 0) {
      text.append(chunk, static_cast<std::size_t>(n));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return text;
}

AgentCounts counts_of(const std::string& session_file) {
  AgentCounts counts;
  std::istringstream lines(metrics_page(session_file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    if (!(words >> name >> value)) continue;
    if (name == "wherry_route_bytes_total") counts.bytes = value;
    if (name == "wherry_route_transfers_total") counts.transfers = value;
    if (name == "wherry_route_blocked_total") counts.blocked = value;
  }
  return counts;
}

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
    route::Runtime runtime(std::make_unique<route::detail::RuntimeCore>(route, *std::move(wiring)));
    const Results results = body(runtime, shared);
    if (!runtime.status()) give_up(runtime.status().message());
    if (results.size() > kMostResults) give_up("too many results");
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

  std::vector<fabric::EmbeddedProcess> agents;
  g_agents.clear();
  if (options.placement != route::Placement::kInline) {
    for (std::uint32_t node = 0; node < options.nodes; ++node) {
      EmbeddedAgent wanted;
      wanted.budget_bytes = std::size_t{1} << 20;  // of move, which is idle
      wanted.core = options.agent_cores[node % options.agent_cores.size()];
      wanted.flight = false;
      wanted.arguments = {"--metrics",         counts != nullptr ? "127.0.0.1:0" : "off",
                          "--spin-us",         "0",
                          "--nap-us",          "0",
                          "--buffer-budget",   "4GiB",
                          "--routing-threads", std::to_string(options.routing_threads)};
      auto agent = fabric::EmbeddedProcess::start(wanted, Transport::kAuto, Deadline(std::chrono::seconds(20)));
      if (!agent) throw std::runtime_error(agent.status().message());
      g_agents.push_back({agent->pid(), memory_of(agent->pid()).rss});
      agents.push_back(*std::move(agent));
    }
  }

  const std::uint64_t job = fabric::random_u64();
  std::vector<pid_t> children;
  for (route::Rank rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (!agents.empty()) setenv("WHERRY_AGENT", agents[rank / options.ranks_per_node].session_file().c_str(), 1);
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
    for (const fabric::EmbeddedProcess& agent : agents) counts->push_back(counts_of(agent.session_file()));
  }
  std::vector<Results> all;
  for (route::Rank rank = 0; rank < ranks; ++rank)
    all.emplace_back(slots[rank].result, slots[rank].result + slots[rank].results);
  return all;
}

std::vector<AgentMemory> agent_memory() {
  std::vector<AgentMemory> all;
  for (const RunningAgent& agent : g_agents) {
    all.push_back(memory_of(agent.pid));
    all.back().idle_rss = agent.idle_rss;
  }
  return all;
}

}  // namespace wherry::bench
