// SPDX-License-Identifier: Apache-2.0
#include "pci/kernel.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace wherry::pci {
namespace {

class Linux final : public Kernel {
 public:
  int open(const std::string& path, int flags) noexcept override {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
  }
  int close(int fd) noexcept override { return ::close(fd) != 0 ? -errno : 0; }
  int ioctl(int fd, unsigned long request, void* argument) noexcept override {
    const int done = ::ioctl(fd, request, argument);
    return done < 0 ? -errno : done;
  }
  ssize_t read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset) noexcept override {
    const ssize_t done = ::pread(fd, into, bytes, static_cast<off_t>(offset));
    return done < 0 ? -errno : done;
  }
  ssize_t write_at(int fd, const void* from, std::size_t bytes, std::uint64_t offset) noexcept override {
    const ssize_t done = ::pwrite(fd, from, bytes, static_cast<off_t>(offset));
    return done < 0 ? -errno : done;
  }
  int map(int fd, std::size_t bytes, std::uint64_t offset, void*& at) noexcept override {
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) return -errno;
    at = mapped;
    return 0;
  }
  int map_memory(std::size_t bytes, void*& at) noexcept override {
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return -errno;
    at = mapped;
    return 0;
  }
  int unmap(void* at, std::size_t bytes) noexcept override { return ::munmap(at, bytes) != 0 ? -errno : 0; }
  std::string link_name(const std::string& path) noexcept override {
    std::array<char, 4096> target{};
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
    if (size <= 0) return {};
    const std::string_view whole(target.data(), static_cast<std::size_t>(size));
    const std::size_t slash = whole.rfind('/');
    return std::string(slash == std::string_view::npos ? whole : whole.substr(slash + 1));
  }
};

}  // namespace

Kernel& linux_kernel() noexcept {
  static Linux instance;
  return instance;
}

}  // namespace wherry::pci
