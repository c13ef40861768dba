// SPDX-License-Identifier: Apache-2.0
// libwherry_mpi.so: the collective calls with which ranks of an MPI job find each other. Only this part depends on an
// MPI implementation. CMake builds it with the MPI that it finds. For another MPI:
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

/// Lives until the process ends, because MPI may still write into it after a call has timed out.
struct State {
  MPI_Comm all_ranks = MPI_COMM_NULL;  ///< a communicator of our own, apart from the program's messages
  MPI_Comm copy = MPI_COMM_NULL;       ///< becomes all_ranks
  int rank = 0, ranks = 0;
  pid_t process = 0;       ///< the process that MPI knows as this rank; 0: not asked yet
  bool timed_out = false;  ///< an operation has not ended: no call can succeed any more
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

/// Waits until `done()` is true. False: it took too long.
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

/// The error for missing ranks. `where`: the call in which they are missing.
int late(const char* where) {
  state().timed_out = true;
  state().error = std::string("not all ranks came ") + where + "in time (Options::start_timeout)";
  return kWherryMpiLate;
}

/// Waits until the operation is complete. `where`: as in late().
int finish(MPI_Request& request, std::uint64_t timeout_ms, const char* where) {
  int done = 0, code = MPI_SUCCESS;
  const bool ended = in_time(timeout_ms, [&] {
    code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0 || code != MPI_SUCCESS;
  });
  if (!ended) return late(where);
  return code == MPI_SUCCESS ? kWherryMpiOk : fail("MPI_Test", code);
}

/// MPI_Init has no time limit, so a thread calls it, and is left behind if that takes too long.
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
  if (!in_time(timeout_ms, [&] { return outcome->done.load(); })) return late("");
  return outcome->code == MPI_SUCCESS ? kWherryMpiOk : fail("MPI_Init_thread", outcome->code);
}

void finalize_at_exit(int status, void* initialised_by) {
  if (static_cast<pid_t>(reinterpret_cast<std::intptr_t>(initialised_by)) != getpid()) return;  // a fork of the rank
  int begun = 0, done = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&done);
  if (begun == 0 || done != 0) return;
  if (status == 0) {
    if (!state().timed_out) MPI_Finalize();
    return;
  }
  // MPICH's launcher may detect this exit and still leave the other ranks running: its proxy checks first for ended
  // processes, then for closed connections, and may kill for neither. The other ranks would wait in MPI_Finalize.
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
  if (s.timed_out) return fail("an earlier call timed out");
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
  if (s.all_ranks == MPI_COMM_NULL) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (const int e = MPI_Comm_idup(MPI_COMM_WORLD, &s.copy, &request); e != MPI_SUCCESS)
      return fail("MPI_Comm_idup", e);
    const std::uint64_t spent = now_ms() - begin;
    if (const int e = finish(request, timeout_ms - std::min(spent, timeout_ms), ""); e != kWherryMpiOk) return e;
    s.all_ranks = s.copy;
    MPI_Comm_set_errhandler(s.all_ranks, MPI_ERRORS_RETURN);
    MPI_Comm_rank(s.all_ranks, &s.rank);
    MPI_Comm_size(s.all_ranks, &s.ranks);
  }
  *rank = static_cast<std::uint32_t>(s.rank);
  *ranks = static_cast<std::uint32_t>(s.ranks);
  return kWherryMpiOk;
}

__attribute__((visibility("default"))) int wherry_mpi_allgatherv(const void* mine, const std::uint64_t* sizes,
                                                                 void* all, std::uint64_t timeout_ms) {
  State& s = state();
  if (s.timed_out) return fail("an earlier exchange timed out");
  s.counts.clear();
  s.offsets.clear();
  std::uint64_t total = 0;
  for (int i = 0; i < s.ranks; ++i) {
    s.counts.push_back(static_cast<int>(sizes[i]));
    s.offsets.push_back(static_cast<int>(total));
    total += sizes[i];
    if (sizes[i] > INT_MAX || total > INT_MAX)
      return fail("the ranks exchange more than 2 GiB: MPI cannot gather that");
  }
  const auto size = static_cast<std::size_t>(sizes[s.rank]);
  s.mine.assign(static_cast<const char*>(mine), static_cast<const char*>(mine) + size);
  s.all.resize(total);
  MPI_Request request = MPI_REQUEST_NULL;
  if (const int e = MPI_Iallgatherv(s.mine.data(), static_cast<int>(size), MPI_BYTE, s.all.data(), s.counts.data(),
                                    s.offsets.data(), MPI_BYTE, s.all_ranks, &request);
      e != MPI_SUCCESS) {
    return fail("MPI_Iallgatherv", e);
  }
  if (const int e = finish(request, timeout_ms, "to the exchange "); e != kWherryMpiOk) return e;
  if (total != 0) std::memcpy(all, s.all.data(), total);
  return kWherryMpiOk;
}
}
