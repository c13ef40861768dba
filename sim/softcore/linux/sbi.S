// SPDX-License-Identifier: Apache-2.0
// Machine mode of the recorded boot: it enters Linux in supervisor mode, and saves the registers of a trap for sbi.c.
// It lies at 0x40000000, the device tree at 0x41f00000, Linux at 0x40400000.
.section .text.start, "ax"
.globl _start
_start:
  la sp, stack_top
  csrw mscratch, sp
  la t0, trap
  csrw mtvec, t0
  li t0, 0xb109        // to Linux: misaligned fetch, breakpoint, call from user mode, page faults
  csrw medeleg, t0
  li t0, 0x222         // and its own interrupts
  csrw mideleg, t0
  li t0, 0x1880
  csrc mstatus, t0
  li t0, 0x0880        // mret enters supervisor mode
  csrs mstatus, t0
  csrw mie, zero
  li t0, 0x40400000
  csrw mepc, t0
  li a0, 0             // hart
  li a1, 0x41f00000    // device tree
  mret

.align 4
trap:
  csrrw sp, mscratch, sp
  addi sp, sp, -128
.irp r, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
  sw x\r, 4*\r(sp)
.endr
  csrr t0, mscratch
  sw t0, 8(sp)
  mv a0, sp
  call handle
.irp r, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
  lw x\r, 4*\r(sp)
.endr
  addi sp, sp, 128
  csrrw sp, mscratch, sp
  mret

.bss
.align 4
.space 4096
stack_top:
