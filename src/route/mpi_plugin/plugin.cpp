// SPDX-License-Identifier: Apache-2.0
// libwherry_mpi.so: the few collectives by which the ranks of an MPI job find each other. It is the only part that is
// tied to an MPI implementation. CMake builds it against the MPI that it finds; for another one:
//   mpicxx -std=c++20 -O2 -fPIC -shared -o libwherry_mpi.so src/route/mpi_plugin/plugin.cpp
#include "plugin.hpp"

#define MPICH_SKIP_MPICXX 1
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Lives until the process ends: MPI may still write to it after a call that came too late.
struct State {
  MPI_Comm everybody = MPI_COMM_NULL;  ///< the program's own messages never meet ours
  MPI_Comm copy = MPI_COMM_NULL;       ///< what `everybody` becomes
  int rank = 0, ranks = 0;
  pid_t process = 0;  ///< that MPI knows as this rank; 0: not asked yet
  bool broken = false;
  std::string error;
  std::vector<char> mine, all;
  std::vector<int> counts, offsets;
};
State& state() {
  static State* const one = new State;
  return *one;
}

int fail(const std::string& why) {
  state().error = why;
  return kWherryMpiFailed;
}

int fail(const char* call, int code) {
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return fail(std::string(call) + ": " + text.data());
}

std::uint64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 + static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

/// Asks `done()` until it says so, or the time is over.
template <typename Done>
bool in_time(std::uint64_t timeout_ms, Done done) {
  const std::uint64_t begin = now_ms();
  while (!done()) {
    if (now_ms() - begin >= timeout_ms) return false;
    const timespec nap{0, 50'000};  // ranks may share a core
    nanosleep(&nap, nullptr);
  }
  return true;
}

int late() {
  state().broken = true;
  state().error = "not all ranks came in time (Options::start_timeout)";
  return kWherryMpiLate;
}

/// MPI_Init has no time limit: a thread calls it, which is left behind when it takes too long.
int initialise(std::uint64_t timeout_ms) {
  struct Outcome {
    std::atomic<bool> done{false};
    int code = MPI_SUCCESS;
  };
  const auto outcome = std::make_shared<Outcome>();
  std::thread([outcome] {
    int provided = 0;
    outcome->code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    outcome->done = true;
  }).detach();
  if (!in_time(timeout_ms, [&] { return outcome->done.load(); })) return late();
  return outcome->code == MPI_SUCCESS ? kWherryMpiOk : fail("MPI_Init_thread", outcome->code);
}

void finalize_at_exit(int status, void* initialised_by) {
  if (static_cast<pid_t>(reinterpret_cast<std::intptr_t>(initialised_by)) != getpid()) return;  // a fork of the rank
  int begun = 0, done = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&done);
  if (begun == 0 || done != 0) return;
  if (status == 0) {
    if (!state().broken) MPI_Finalize();
    return;
  }
  // That a rank has exited may reach the launcher in a way in which MPICH's leaves the others alone (its proxy looks
  // for ended processes first, for closed connections next, and kills for neither): they would wait in MPI_Finalize.
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, status);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) std::uint32_t wherry_mpi_version() { return WHERRY_MPI_PLUGIN_VERSION; }

__attribute__((visibility("default"))) const char* wherry_mpi_error() { return state().error.c_str(); }

__attribute__((visibility("default"))) const char* wherry_mpi_family() {
#if defined(OPEN_MPI)
  return "Open MPI";
#elif defined(MPICH_VERSION) || defined(MPICH_NAME) || defined(I_MPI_VERSION) || defined(MVAPICH2_VERSION)
  return "MPICH";
#else
  return "";
#endif
}

__attribute__((visibility("default"))) int wherry_mpi_init(std::uint32_t* rank, std::uint32_t* ranks,
                                                           std::uint64_t timeout_ms) {
  State& s = state();
  if (s.process == 0) s.process = getpid();
  if (s.process != getpid()) {
    return fail("this process is a fork of process " + std::to_string(s.process) +
                ", which is the rank of this MPI job: only that one can start a runtime");
  }
  if (s.broken) return fail("an earlier call came to no end");
  const std::uint64_t begin = now_ms();
  int there = 0;
  int over = 0;
  MPI_Initialized(&there);
  MPI_Finalized(&over);
  if (over != 0) return fail("the program has called MPI_Finalize: start the runtime before that");
  if (there == 0) {
    if (const int e = initialise(timeout_ms); e != kWherryMpiOk) return e;
    on_exit(finalize_at_exit, reinterpret_cast<void*>(static_cast<std::intptr_t>(getpid())));
  }
  if (s.everybody == MPI_COMM_NULL) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (const int e = MPI_Comm_idup(MPI_COMM_WORLD, &s.copy, &request); e != MPI_SUCCESS)
      return fail("MPI_Comm_idup", e);
    const std::uint64_t spent = now_ms() - begin;
    int done = 0, e = MPI_SUCCESS;
    if (!in_time(timeout_ms - std::min(spent, timeout_ms), [&] {
          e = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
          return done != 0 || e != MPI_SUCCESS;
        }))
      return late();
    if (e != MPI_SUCCESS) return fail("MPI_Test", e);
    s.everybody = s.copy;
    MPI_Comm_set_errhandler(s.everybody, MPI_ERRORS_RETURN);
    MPI_Comm_rank(s.everybody, &s.rank);
    MPI_Comm_size(s.everybody, &s.ranks);
  }
  *rank = static_cast<std::uint32_t>(s.rank);
  *ranks = static_cast<std::uint32_t>(s.ranks);
  return kWherryMpiOk;
}

__attribute__((visibility("default"))) int wherry_mpi_allgatherv(const void* mine, const std::uint64_t* sizes,
                                                                 void* all, std::uint64_t timeout_ms) {
  State& s = state();
  if (s.broken) return fail("an earlier exchange came to no end");
  s.counts.clear();
  s.offsets.clear();
  std::uint64_t total = 0;
  for (int i = 0; i < s.ranks; ++i) {
    s.counts.push_back(static_cast<int>(sizes[i]));
    s.offsets.push_back(static_cast<int>(total));
    total += sizes[i];
    if (sizes[i] > INT_MAX || total > INT_MAX) return fail("the ranks exchange more than 2 GiB: that is no bootstrap");
  }
  const auto size = static_cast<std::size_t>(sizes[s.rank]);
  s.mine.assign(static_cast<const char*>(mine), static_cast<const char*>(mine) + size);
  s.all.resize(total);
  MPI_Request request = MPI_REQUEST_NULL;
  if (const int e = MPI_Iallgatherv(s.mine.data(), static_cast<int>(size), MPI_BYTE, s.all.data(), s.counts.data(),
                                    s.offsets.data(), MPI_BYTE, s.everybody, &request);
      e != MPI_SUCCESS) {
    return fail("MPI_Iallgatherv", e);
  }
  const std::uint64_t begin = now_ms();
  for (int done = 0;;) {
    if (const int e = MPI_Test(&request, &done, MPI_STATUS_IGNORE); e != MPI_SUCCESS) return fail("MPI_Test", e);
    if (done != 0) break;
    if (now_ms() - begin >= timeout_ms) {
      s.broken = true;
      s.error = "not all ranks came to the exchange in time";
      return kWherryMpiLate;
    }
    const timespec nap{0, 50'000};  // ranks may share a core
    nanosleep(&nap, nullptr);
  }
  if (total != 0) std::memcpy(all, s.all.data(), total);
  return kWherryMpiOk;
}
}
