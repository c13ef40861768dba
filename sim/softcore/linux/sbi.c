// SPDX-License-Identifier: Apache-2.0
// Machine mode for one hart. It provides the calls of SBI 0.1 that Linux 6.1 makes (RISC-V SBI Specification 0.1,
// "Legacy Extensions"), and the time, which VexRiscv does not have as a register. sbi.S calls it at each trap.
typedef unsigned u32;

enum { kTime = 0, kTimer = 2, kConsole = 4, kPower = 5, kNumber = 6 };  // words of the board's devices, vex_core.hpp
enum { kSetTimer, kPutchar, kGetchar, kClearIpi, kSendIpi, kRemoteFenceI, kRemoteSfence, kRemoteSfenceAsid, kShutdown };
enum { kIllegal = 2, kCallFromSupervisor = 9 };
#define MACHINE_TIMER 0x80000007U
#define SUPERVISOR_TIMER_BIT 0x20U
#define MACHINE_TIMER_BIT 0x80U

#define READ(csr)                                     \
  ({                                                  \
    u32 value;                                        \
    __asm__ volatile("csrr %0, " #csr : "=r"(value)); \
    value;                                            \
  })
#define WRITE(csr, value) __asm__ volatile("csrw " #csr ", %0" ::"r"(value))
#define SET(csr, value) __asm__ volatile("csrs " #csr ", %0" ::"r"(value))
#define CLEAR(csr, value) __asm__ volatile("csrc " #csr ", %0" ::"r"(value))

static volatile u32* const devices = (volatile u32*)0xf0000000;

static void stop(u32 why) {
  devices[kPower] = why;
  for (;;) {
  }
}

static u32 call(u32 number, u32 a0, u32 a1) {
  switch (number) {
    case kSetTimer:
      devices[kTimer + 1] = ~0U;  // never between the two halves
      devices[kTimer] = a0;
      devices[kTimer + 1] = a1;
      CLEAR(mip, SUPERVISOR_TIMER_BIT);
      SET(mie, MACHINE_TIMER_BIT);
      return 0;
    case kPutchar:
      devices[kConsole] = a0;
      return 0;
    case kGetchar:
      return ~0U;  // nobody types
    case kRemoteFenceI:
      __asm__ volatile("fence.i");
      return 0;
    case kClearIpi:
    case kSendIpi:
    case kRemoteSfence:
    case kRemoteSfenceAsid:
      return 0;  // there is no other hart
    case kShutdown:
      stop(1);
      return 0;
    default:
      return (u32)-2;  // not supported
  }
}

// The instruction at a virtual address, read with the rights of the interrupted program (MPRV).
static u32 instruction_at(u32 address) {
  u32 word;
  __asm__ volatile("li t0, 0x20000; csrs mstatus, t0; lw %0, 0(%1); csrc mstatus, t0"
                   : "=&r"(word)
                   : "r"(address)
                   : "t0");
  return word;
}

// Emulates rdtime and rdtimeh: csrrs rd, 0xc01 and 0xc81. True: the instruction was one of these.
static int time_read(u32 instruction, u32* x) {
  const u32 csr = instruction >> 20, to = instruction >> 7 & 31;
  if ((instruction & 0x7f) != 0x73 || (csr != 0xc01 && csr != 0xc81)) return 0;
  if (to != 0) x[to] = devices[csr == 0xc01 ? kTime : kTime + 1];
  return 1;
}

// Passes a trap to Linux' own handler, as the hardware would do (Privileged Architecture 1.12, sections 3.1.6 and 4.1).
static void delegate(u32 cause, u32 epc, u32 value) {
  enum { kSie = 0x2, kSpie = 0x20, kSpp = 0x100, kMppSupervisor = 0x800, kMpp = 0x1800 };
  const u32 status = READ(mstatus);
  WRITE(sepc, epc);
  WRITE(scause, cause);
  WRITE(stval, value);
  CLEAR(mstatus, kMpp | kSpp | kSpie | kSie);
  if ((status & kMppSupervisor) != 0) SET(mstatus, kSpp);
  if ((status & kSie) != 0) SET(mstatus, kSpie);
  SET(mstatus, kMppSupervisor);
  WRITE(mepc, READ(stvec));
}

// `x`: the 32 registers of the interrupted program.
void handle(u32* x) {
  const u32 cause = READ(mcause), epc = READ(mepc);
  if (cause == MACHINE_TIMER) {
    CLEAR(mie, MACHINE_TIMER_BIT);
    SET(mip, SUPERVISOR_TIMER_BIT);
  } else if (cause == kCallFromSupervisor) {
    x[10] = call(x[17], x[10], x[11]);
    WRITE(mepc, epc + 4);
  } else if (cause == kIllegal) {
    u32 instruction = READ(mtval);
    if (instruction == 0 || instruction == epc) instruction = instruction_at(epc);
    if (time_read(instruction, x))
      WRITE(mepc, epc + 4);
    else
      delegate(cause, epc, instruction);
  } else {
    devices[kNumber] = cause;
    devices[kNumber] = epc;
    devices[kNumber] = READ(mtval);
    stop(2);
  }
}
