// SPDX-License-Identifier: Apache-2.0
#include "base/event_counter.hpp"

#include <fmt/core.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace wherry {
namespace {

std::optional<int> perf_event_paranoid() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  int level = 0;
  return file >> level ? std::optional(level) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> scaled(std::uint64_t count, std::uint64_t enabled, std::uint64_t running) noexcept {
  if (running >= enabled && running != 0) return count;
  if (running == 0) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(count) * static_cast<double>(enabled) /
                                    static_cast<double>(running));
}

std::string why_not_counted(int error, std::optional<int> paranoid) {
  std::string why = fmt::format("perf_event_open: {}: ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return why + "this machine, or the hypervisor under it, offers no such counter";
    case EACCES:
    case EPERM:
      if (paranoid && *paranoid > 2)
        return why +
               fmt::format("kernel.perf_event_paranoid is {}: set it to 2 or less, or grant CAP_PERFMON", *paranoid);
      return why + "this user, or this container, may not count: grant CAP_PERFMON, or allow the system call";
    case ENOSYS:
      return why + "this kernel, or this container, does not have the system call";
    case EMFILE:
      return why + "raise the limit of open files";
    default:
      return why + "no count";
  }
}

EventCounter EventCounter::cache_misses() { return {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}; }

EventCounter::EventCounter(std::uint32_t type, std::uint64_t config) {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = type;
  event.config = config;
  event.inherit = 1;
  event.exclude_kernel = 1;
  event.exclude_hv = 1;
  event.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  fd_ = static_cast<int>(syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd_ < 0) missing_ = why_not_counted(errno, perf_event_paranoid());
}

EventCounter::EventCounter(EventCounter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), missing_(std::move(other.missing_)) {}

EventCounter::~EventCounter() {
  if (fd_ >= 0) close(fd_);
}

std::optional<std::uint64_t> EventCounter::read() {
  if (fd_ < 0) return std::nullopt;
  struct {
    std::uint64_t count, enabled, running;
  } now{};
  if (::read(fd_, &now, sizeof now) != sizeof now) {
    missing_ = fmt::format("the counter cannot be read: {}", std::strerror(errno));
    return std::nullopt;
  }
  const auto count = scaled(now.count, now.enabled, now.running);
  missing_ = count ? "" : "other events kept the hardware's counters all the time: end other profilers";
  return count;
}

}  // namespace wherry
