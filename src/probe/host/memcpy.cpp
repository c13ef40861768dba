// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "probe/host/copy.hpp"
#include "probe/host/paths.hpp"

namespace wherry::probe {
namespace {

class Memcpy final : public CopyPath {
 public:
  Memcpy() : CopyPath("cpu.memcpy", "host memory", "host memory") {}

 private:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept override { std::memcpy(to, from, bytes); }
};

}  // namespace

std::unique_ptr<Path> make_memcpy() { return std::make_unique<Memcpy>(); }

}  // namespace wherry::probe
