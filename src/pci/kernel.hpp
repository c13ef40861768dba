// SPDX-License-Identifier: Apache-2.0
// The system calls that take NIC and card from the kernel. Apart from these, this folder only reads sysfs. Tests
// replace them by a model that keeps VFIO's rules (kernel_testing.hpp).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry::pci {

/// Like the system calls with the same names. A failure is returned as -errno.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  [[nodiscard]] virtual int open(const std::string& path, int flags) noexcept = 0;
  virtual int close(int fd) noexcept = 0;
  /// `argument`: a pointer, or a number in its place, depending on the request.
  [[nodiscard]] virtual int ioctl(int fd, unsigned long request, void* argument) noexcept = 0;
  [[nodiscard]] virtual ssize_t read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset) noexcept = 0;
  [[nodiscard]] virtual ssize_t write_at(int fd, const void* from, std::size_t bytes,
                                         std::uint64_t offset) noexcept = 0;
  /// Maps a file readable, writable and shared. Returns 0 and the address in `at`, or -errno.
  [[nodiscard]] virtual int map(int fd, std::size_t bytes, std::uint64_t offset, void*& at) noexcept = 0;
  /// As map(), without a file: maps memory of this process.
  [[nodiscard]] virtual int map_memory(std::size_t bytes, void*& at) noexcept = 0;
  virtual int unmap(void* at, std::size_t bytes) noexcept = 0;
  /// Returns the last component of a symbolic link's target, or empty if there is no link.
  [[nodiscard]] virtual std::string link_name(const std::string& path) noexcept = 0;
};

/// The kernel of this machine.
Kernel& linux_kernel() noexcept;

}  // namespace wherry::pci
