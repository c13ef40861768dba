// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "probe/host/copy.hpp"
#include "probe/host/paths.hpp"

namespace wherry::probe {
namespace {

class Movsb final : public CopyPath {
 public:
  Movsb() : CopyPath("cpu.movsb", "host memory", "host memory") {
#if !defined(__x86_64__)
    say_absent("rep movsb is an instruction of x86; measure cpu.memcpy");
#endif
  }

 private:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept override {
#if defined(__x86_64__)
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    std::memcpy(to, from, bytes);
#endif
  }
};

}  // namespace

std::unique_ptr<Path> make_movsb() { return std::make_unique<Movsb>(); }

}  // namespace wherry::probe
