// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.hpp"
#include "probe/host/child.hpp"
#include "probe/host/paths.hpp"

namespace wherry::probe {
namespace {

/// The child sleeps in read(2) while this process accesses its memory, so these operations are one-sided.
class Cma final : public ChildPath {
 public:
  explicit Cma(bool get)
      : ChildPath({.id = get ? "ipc.cma.get" : "ipc.cma.put",
                   .group = "ipc",
                   .from = get ? "memory of another process" : "host memory",
                   .to = get ? "host memory" : "memory of another process",
                   .note = "one-sided: the other process sleeps"}),
        get_(get) {
    keep_private(get, get);
  }
  ~Cma() override { Cma::close(); }

  [[nodiscard]] Status accepts(const Shape& shape) const override {
    if (shape.bytes > 0 && shape.depth == 1 && shape.channels == 1 && shape.notice == Notice::kPolled &&
        shape.cache == CacheState::kWarm && shape.pattern == Pattern::kSequential && shape.align <= 4096 &&
        shape.flow == (get_ ? Flow::kC2H : Flow::kH2C))
      return ok_status();
    return {StatusCode::kUnsupported, "one system call is one transfer, done when it returns: depth 1, sequential"};
  }
  [[nodiscard]] bool try_post(unsigned /*slot*/) override {
    iovec here{get_ ? destination(0) : source(0), layout().bytes};
    iovec there{get_ ? source(0) : destination(0), layout().bytes};
    const ssize_t moved = get_ ? process_vm_readv(child().pid(), &here, 1, &there, 1, 0)
                               : process_vm_writev(child().pid(), &here, 1, &there, 1, 0);
    error_ = moved < 0 ? errno : 0;
    short_ = moved >= 0 && static_cast<std::size_t>(moved) != layout().bytes;
    note_posted(0);
    return done_ = true;
  }
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    if (!std::exchange(done_, false)) return 0U;
    if (error_ != 0 || short_)
      return Status(StatusCode::kSourceFault, fmt::format("{}: {}", get_ ? "process_vm_readv" : "process_vm_writev",
                                                          error_ != 0 ? std::strerror(error_) : "not all bytes"));
    done[0] = 0;
    return 1U;
  }

 private:
  Status connect(const Shape& /*shape*/) override {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      return {StatusCode::kResourceExhausted, fmt::format("no pipe: {}", std::strerror(errno))};
    to_read_ = Fd(ends[0]), to_write_ = Fd(ends[1]);
    return ok_status();
  }
  void serve() override {
    Request request;
    while (::read(to_read_.get(), &request, sizeof request) == sizeof request) answer(request);
  }
  bool ask(const Request& request) noexcept override {
    return ::write(to_write_.get(), &request, sizeof request) == sizeof request;
  }
  void disconnect() noexcept override {
    to_read_.reset();
    to_write_.reset();
  }

  bool get_;
  Fd to_read_, to_write_;
  int error_ = 0;
  bool short_ = false, done_ = false;
};

}  // namespace

std::unique_ptr<Path> make_cma_get() { return std::make_unique<Cma>(true); }
std::unique_ptr<Path> make_cma_put() { return std::make_unique<Cma>(false); }

}  // namespace wherry::probe
