// SPDX-License-Identifier: Apache-2.0
// Machine mode's side of the SBI 0.1 (legacy extensions of the RISC-V SBI specification, chapter 5) for one hart, and
// rdtime, which VexRiscv leaves to it (privileged specification 20211203, 3.1.10).

typedef unsigned int word;

// The simulated board (vex_linux_main.cpp).
static volatile word* const kBoard = (volatile word*)0xf0000000;
enum { kTime = 0, kTimeHigh = 1, kCompare = 2, kCompareHigh = 3, kConsole = 4, kStop = 5, kFault = 6 };

#define CSR_READ(name)                                  \
  ({                                                    \
    word value_;                                        \
    __asm__ volatile("csrr %0, " #name : "=r"(value_)); \
    value_;                                             \
  })
#define CSR_WRITE(name, value) __asm__ volatile("csrw " #name ", %0" ::"r"((word)(value)))
#define CSR_SET(name, bits) __asm__ volatile("csrs " #name ", %0" ::"r"((word)(bits)))
#define CSR_CLEAR(name, bits) __asm__ volatile("csrc " #name ", %0" ::"r"((word)(bits)))

enum { kMachineTimer = 1 << 7, kSupervisorTimer = 1 << 5 };
enum { kModifyPrivilege = 1 << 17 };

static void give_up(word cause, word at) {
  kBoard[kFault] = cause;
  kBoard[kFault] = at;
  kBoard[kStop] = 2;
  for (;;) {
  }
}

/// The word at an address of supervisor or user mode.
static word read_as_it_did(word address) {
  word value;
  __asm__ volatile("csrs mstatus, %2\n lw %0, 0(%1)\n csrc mstatus, %2"
                   : "=&r"(value)
                   : "r"(address), "r"(kModifyPrivilege));
  return value;
}

/// What the kernel's own trap vector would have got.
static void give_to_supervisor(word cause, word at, word value) {
  const word status = CSR_READ(mstatus);
  CSR_WRITE(sepc, at);
  CSR_WRITE(scause, cause);
  CSR_WRITE(stval, value);
  CSR_CLEAR(mstatus, 0x1922);                            // MPP, SPP, SPIE, SIE
  if ((status >> 11 & 3) != 0) CSR_SET(mstatus, 0x100);  // SPP: it came from supervisor mode
  if ((status & 2) != 0) CSR_SET(mstatus, 0x20);         // SPIE = SIE
  CSR_SET(mstatus, 0x800);                               // back to supervisor mode
  CSR_WRITE(mepc, CSR_READ(stvec));
}

static word serve(word function, word low, word high) {
  switch (function) {
    case 0:  // set_timer
      kBoard[kCompareHigh] = 0xffffffff;
      kBoard[kCompare] = low;
      kBoard[kCompareHigh] = high;
      CSR_CLEAR(mip, kSupervisorTimer);
      CSR_SET(mie, kMachineTimer);
      return 0;
    case 1:  // console_putchar
      kBoard[kConsole] = low;
      return 0;
    case 2:  // console_getchar: nobody types
      return (word)-1;
    case 3:  // clear_ipi, send_ipi: one hart
    case 4:
      return 0;
    case 5:  // remote fences: one hart
      __asm__ volatile("fence.i");
      return 0;
    case 6:
    case 7:
      return 0;
    case 8:  // shutdown
      kBoard[kStop] = 1;
      for (;;) {
      }
    default:
      return (word)-2;  // not supported
  }
}

void handle_trap(word* registers) {
  const word cause = CSR_READ(mcause), at = CSR_READ(mepc);
  if (cause == 0x80000007) {
    CSR_CLEAR(mie, kMachineTimer);
    CSR_SET(mip, kSupervisorTimer);
    return;
  }
  if (cause == 9) {
    registers[10] = serve(registers[17], registers[10], registers[11]);
    CSR_WRITE(mepc, at + 4);
    return;
  }
  if (cause != 2) give_up(cause, at);
  // csrrs rd, time or timeh, x0
  const word instruction = read_as_it_did(at), to = instruction >> 7 & 31, csr = instruction >> 20;
  if ((instruction & 0xff07f) == 0x2073 && (csr == 0xc01 || csr == 0xc81)) {
    if (to != 0) registers[to] = kBoard[csr == 0xc01 ? kTime : kTimeHigh];
    CSR_WRITE(mepc, at + 4);
    return;
  }
  give_to_supervisor(cause, at, instruction);
}
