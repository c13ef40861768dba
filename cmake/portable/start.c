// SPDX-License-Identifier: Apache-2.0
// Calls __libc_start_main as glibc 2.28 expects, in programs linked with crt1.o of 2.34 or newer (WHERRY_PORTABLE).
//
// Since 2.34 libc finds a program's constructors; crt1.o passes no function that runs them. An older libc would run no
// constructors, so this file passes such a function. A newer libc then calls it, as for an old program.
#define _GNU_SOURCE
#include <stddef.h>

typedef void (*Constructor)(int, char**, char**);

extern Constructor __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void);

int wherry_older_start_main(int (*)(int, char**, char**), int, char**, Constructor, void (*)(void), void (*)(void), void*);
__asm__(".symver wherry_older_start_main,__libc_start_main@GLIBC_2.2.5");

static void construct(int argc, char** argv, char** environment) {
  // The dynamic linker runs a program's .preinit_array.
  _init();
  const size_t count = (size_t)(__init_array_end - __init_array_start);
  for (size_t i = 0; i < count; ++i) __init_array_start[i](argc, argv, environment);
}

__attribute__((visibility("hidden"))) int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                                            Constructor init, void (*fini)(void),
                                                            void (*rtld_fini)(void), void* stack_end) {
  (void)init;
  (void)fini;
  return wherry_older_start_main(main, argc, argv, construct, NULL, rtld_fini, stack_end);
}
