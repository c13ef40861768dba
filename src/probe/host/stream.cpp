// SPDX-License-Identifier: Apache-2.0
#include "base/copy.hpp"
#include "probe/host/copy.hpp"
#include "probe/host/paths.hpp"

namespace wherry::probe {
namespace {

class Stream final : public CopyPath {
 public:
  Stream() : CopyPath("cpu.stream", "host memory", "host memory, past the caches") {}

 private:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept override {
    copy_streaming(to, from, bytes);
  }
};

}  // namespace

std::unique_ptr<Path> make_stream() { return std::make_unique<Stream>(); }

}  // namespace wherry::probe
