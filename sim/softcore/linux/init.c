// SPDX-License-Identifier: Apache-2.0
// The only program of the recorded boot. It writes to a file, reads it back, lets a child write to pages that both
// share until then, and powers the board off. Without a C library.
typedef unsigned long word;

enum { kOpenat = 56, kClose = 57, kWrite = 64, kPread = 67, kExit = 93, kWaitid = 95, kReboot = 142, kClone = 220 };
enum { kFileBytes = 65536, kBlock = 4096, kPageWords = 1024, kPages = 64, kRounds = 4 };

static word call(word number, word a, word b, word c, word d, word e) {
  register word a0 __asm__("a0") = a;
  register word a1 __asm__("a1") = b;
  register word a2 __asm__("a2") = c;
  register word a3 __asm__("a3") = d;
  register word a4 __asm__("a4") = e;
  register word a7 __asm__("a7") = number;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a7) : "memory");
  return a0;
}

static void say(const char* text) {
  word length = 0;
  while (text[length] != 0) ++length;
  call(kWrite, 1, (word)text, length, 0, 0);
}

static word pages[kPages * kPageWords];
static word block[kBlock / sizeof(word)];

// Sweeps every page several times, so that the cache holds little of it.
static word sweep(word salt) {
  word sum = 0;
  for (word round = 0; round < kRounds; ++round)
    for (word i = 0; i < kPages * kPageWords; ++i) {
      pages[i] += i ^ salt;
      sum += pages[i];
    }
  return sum;
}

static word expected_sweep(word salt) {
  word sum = 0;
  for (word i = 0; i < kPages * kPageWords; ++i)
    for (word round = 1; round <= kRounds; ++round) sum += round * (i ^ salt);
  return sum;
}

static int file_is_read_back(void) {
  enum { kCreateReadWrite = 0102, kHere = -100 };
  const word file = call(kOpenat, (word)kHere, (word) "/file", kCreateReadWrite, 0600, 0);
  if ((long)file < 0) return 0;
  for (word at = 0; at < kFileBytes; at += kBlock) {
    for (word i = 0; i < kBlock / sizeof(word); ++i) block[i] = at * 2654435761U + i;
    if (call(kWrite, file, (word)block, kBlock, 0, 0) != kBlock) return 0;
  }
  for (word at = 0; at < kFileBytes; at += kBlock) {
    if (call(kPread, file, (word)block, kBlock, at, 0) != kBlock) return 0;  // rv32: the offset's low half, its high
    for (word i = 0; i < kBlock / sizeof(word); ++i)
      if (block[i] != at * 2654435761U + i) return 0;
  }
  return call(kClose, file, 0, 0, 0, 0) == 0;
}

static int child_writes_its_own(void) {
  enum { kSignalChild = 17, kAnyChild = 0, kExited = 4 };
  const word child = call(kClone, kSignalChild, 0, 0, 0, 0);
  if (child == 0) call(kExit, sweep(2) == expected_sweep(2) ? 0 : 1, 0, 0, 0, 0);
  static word info[32];
  if ((long)child < 0 || (long)call(kWaitid, kAnyChild, 0, (word)info, kExited, 0) < 0) return 0;
  return info[5] == 0 && sweep(1) == expected_sweep(1);  // si_status: what the child said
}

void start(void) {
  enum { kMagic1 = 0xfee1dead, kMagic2 = 672274793, kPowerOff = 0x4321fedc };
  say("init: user space\n");
  say(file_is_read_back() ? "init: file ok\n" : "init: file WRONG\n");
  say(child_writes_its_own() ? "init: child ok\n" : "init: child WRONG\n");
  call(kReboot, kMagic1, kMagic2, kPowerOff, 0, 0);
  say("init: still here\n");
  for (;;) {
  }
}
