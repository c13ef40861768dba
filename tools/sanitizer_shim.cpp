// SPDX-License-Identifier: Apache-2.0
// Plain system calls for programs under AddressSanitizer. Its interceptor of process_vm_readv reports UCX's probe of
// another process, whose iovec is meant to fail, as a write of ours. These calls avoid the interceptor.
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

extern "C" __attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t pid, const iovec* local,
                                                                           unsigned long local_count,
                                                                           const iovec* remote,
                                                                           unsigned long remote_count,
                                                                           unsigned long flags) {
  return syscall(SYS_process_vm_readv, pid, local, local_count, remote, remote_count, flags);
}
extern "C" __attribute__((visibility("default"))) ssize_t process_vm_writev(pid_t pid, const iovec* local,
                                                                            unsigned long local_count,
                                                                            const iovec* remote,
                                                                            unsigned long remote_count,
                                                                            unsigned long flags) {
  return syscall(SYS_process_vm_writev, pid, local, local_count, remote, remote_count, flags);
}
