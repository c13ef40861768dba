// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.hpp"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/fd.hpp"

namespace wherry {

Status check_descriptors(const char* who, std::size_t count) {
  std::vector<Fd> tried;
  for (std::size_t i = 0; i < count; ++i) {
    Fd one(::eventfd(0, EFD_CLOEXEC));
    if (!one) {
      const int error = errno;
      rlimit limit{};
      (void)::getrlimit(RLIMIT_NOFILE, &limit);
      return {StatusCode::kResourceExhausted, fmt::format("{} has no file descriptors left ({}; it may have {}, and "
                                                          "wants {} more): close sessions or readers, or raise "
                                                          "the limit (ulimit -n, LimitNOFILE= of a systemd unit)",
                                                          who, std::strerror(error), limit.rlim_cur, count)};
    }
    tried.push_back(std::move(one));
  }
  return ok_status();
}

}  // namespace wherry
