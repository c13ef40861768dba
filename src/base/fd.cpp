// SPDX-License-Identifier: Apache-2.0
#include "base/fd.hpp"

#include <unistd.h>

namespace wherry {

void Fd::reset() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace wherry
