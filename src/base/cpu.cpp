// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace wherry {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

int current_core() noexcept { return sched_getcpu(); }

Status pin_thread(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core < 0 || core >= CPU_SETSIZE) {
      return {StatusCode::kInvalidArgument,
              fmt::format("core {} is not a core number (0 to {})", core, CPU_SETSIZE - 1)};
    }
    CPU_SET(core, &set);
  }
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    return {StatusCode::kInvalidArgument,
            fmt::format("cannot pin to core {}: {} (this process may use core {})", fmt::join(cores, ","),
                        std::strerror(errno), fmt::join(allowed_cores(), ","))};
  }
  return ok_status();
}

std::string host_identity() {
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  for (const char* space : {"/proc/self/ns/pid", "/proc/self/ns/user"}) {
    std::array<char, 128> target{};
    if (readlink(space, target.data(), target.size() - 1) < 0) target = {"?"};
    identity += '/';
    identity += target.data();
  }
  return identity;
}

void name_thread(const char* name) noexcept { pthread_setname_np(pthread_self(), name); }

}  // namespace wherry
