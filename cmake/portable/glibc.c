// SPDX-License-Identifier: Apache-2.0
// Functions that glibc 2.28 lacks or has in an older version, for programs linked on a newer glibc (WHERRY_PORTABLE).
//
// For x86-64. Each program and module of the wheel has hidden definitions of the symbols newer than 2.28. Our objects
// and static libraries bind to them. Each jumps to the older version, which glibc still has, or does the work. The
// versions are from glibc's lists (sysdeps/unix/sysv/linux/x86_64/64/*.abilist). docs/start/install.md, "The wheel".
//
// Threads: as for the functions that these replace.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if !defined(__x86_64__)
#error "the versions here are those of x86-64"
#endif

#define HIDDEN __attribute__((visibility("hidden")))

// A jump keeps the return address, from which dlopen and dlsym find their caller.
#define OLDER(name, version)                                                                 \
  __asm__(".symver wherry_older_" #name "," #name "@GLIBC_" #version "\n"                    \
          ".text\n.globl " #name "\n.hidden " #name "\n.type " #name ", @function\n" #name   \
          ":\n\tendbr64\n\tjmp *wherry_older_" #name "@GOTPCREL(%rip)\n.size " #name ", . - " #name)

// glibc 2.34 merged libpthread and libdl into libc, and gave their functions a new version.
OLDER(dladdr, 2.2.5);
OLDER(dladdr1, 2.3.3);
OLDER(dlclose, 2.2.5);
OLDER(dlerror, 2.2.5);
OLDER(dlopen, 2.2.5);
OLDER(dlsym, 2.2.5);
OLDER(pthread_condattr_setclock, 2.3.3);
OLDER(pthread_create, 2.2.5);
OLDER(pthread_detach, 2.2.5);
OLDER(pthread_getspecific, 2.2.5);
OLDER(pthread_join, 2.2.5);
OLDER(pthread_key_create, 2.2.5);
OLDER(pthread_key_delete, 2.2.5);
OLDER(pthread_mutex_trylock, 2.2.5);
OLDER(pthread_once, 2.2.5);
OLDER(pthread_rwlock_destroy, 2.2.5);
OLDER(pthread_rwlock_init, 2.2.5);
OLDER(pthread_rwlock_rdlock, 2.2.5);
OLDER(pthread_rwlock_unlock, 2.2.5);
OLDER(pthread_rwlock_wrlock, 2.2.5);
OLDER(pthread_setname_np, 2.12);
OLDER(pthread_setspecific, 2.2.5);
OLDER(pthread_sigmask, 2.2.5);

// Since 2.32. libstdc++ reads it to choose atomic reference counts; 0 makes them always atomic.
HIDDEN char __libc_single_threaded = 0;

// Since 2.33. In older headers they call __xstat and so on, with the number of struct stat's layout, 1.
int __xstat(int layout, const char* path, struct stat* out);
int __lxstat(int layout, const char* path, struct stat* out);
int __fxstat(int layout, int descriptor, struct stat* out);
int __fxstatat(int layout, int directory, const char* path, struct stat* out, int flags);
__asm__(".symver __xstat,__xstat@GLIBC_2.2.5");
__asm__(".symver __lxstat,__lxstat@GLIBC_2.2.5");
__asm__(".symver __fxstat,__fxstat@GLIBC_2.2.5");
__asm__(".symver __fxstatat,__fxstatat@GLIBC_2.4");

HIDDEN int stat(const char* path, struct stat* out) { return __xstat(1, path, out); }
HIDDEN int lstat(const char* path, struct stat* out) { return __lxstat(1, path, out); }
HIDDEN int fstat(int descriptor, struct stat* out) { return __fxstat(1, descriptor, out); }
HIDDEN int fstatat(int directory, const char* path, struct stat* out, int flags) {
  return __fxstatat(1, directory, path, out, flags);
}
// On x86-64 struct stat64 is the same, because all sizes have 64 bits.
HIDDEN int stat64(const char* path, struct stat64* out) { return __xstat(1, path, (struct stat*)out); }
HIDDEN int fstat64(int descriptor, struct stat64* out) { return __fxstat(1, descriptor, (struct stat*)out); }

// Since 2.30 in libpthread, 2.34 in libc. If missing, the deadline is converted to CLOCK_REALTIME. Setting that clock
// ends the wait early or late, as in libstdc++ before this function existed. Callers wait in a loop.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
  typedef int (*Wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  static _Atomic(uintptr_t) known = 1;  // 1: not looked up, 0: missing
  uintptr_t found = atomic_load_explicit(&known, memory_order_relaxed);
  if (found == 1) {
    found = (uintptr_t)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
    atomic_store_explicit(&known, found, memory_order_relaxed);
  }
  if (found != 0) return ((Wait)found)(condition, mutex, clock, until);
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  struct timespec now, real;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0) return EINVAL;
  int64_t left = (until->tv_sec - now.tv_sec) * INT64_C(1000000000) + (until->tv_nsec - now.tv_nsec);
  if (left < 0) left = 0;
  const int64_t nanoseconds = real.tv_nsec + left % 1000000000;
  const struct timespec there = {real.tv_sec + left / 1000000000 + nanoseconds / 1000000000, nanoseconds % 1000000000};
  return pthread_cond_timedwait(condition, mutex, &there);
}

// Since 2.35 and Linux 5.11. Otherwise, ppoll on the epoll descriptor also has a time limit in nanoseconds.
HIDDEN int epoll_pwait2(int epoll, struct epoll_event* events, int most, const struct timespec* limit,
                        const sigset_t* mask) {
#ifdef SYS_epoll_pwait2
  const int number = SYS_epoll_pwait2;
#else
  const int number = 441;
#endif
  const long done = syscall(number, epoll, events, most, limit, mask, (size_t)8);
  if (done >= 0 || errno != ENOSYS) return (int)done;
  struct pollfd one = {epoll, POLLIN, 0};
  const int ready = ppoll(&one, 1, limit, mask);
  return ready <= 0 ? ready : epoll_pwait(epoll, events, most, 0, mask);
}

// Since 2.34. If missing, adds a close action for each open descriptor. Closing a closed one is no error there.
HIDDEN int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions, int from) {
  typedef int (*Add)(posix_spawn_file_actions_t*, int);
  const Add add = (Add)(uintptr_t)dlsym(RTLD_DEFAULT, "posix_spawn_file_actions_addclosefrom_np");
  if (add != NULL) return add(actions, from);
  DIR* open_now = opendir("/proc/self/fd");
  if (open_now == NULL) return errno;
  int error = 0;
  for (struct dirent* entry = readdir(open_now); entry != NULL && error == 0; entry = readdir(open_now)) {
    if (entry->d_name[0] == '.') continue;
    const int number = atoi(entry->d_name);
    if (number >= from && number != dirfd(open_now)) error = posix_spawn_file_actions_addclose(actions, number);
  }
  closedir(open_now);
  return error;
}
