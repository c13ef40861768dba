# SPDX-License-Identifier: Apache-2.0
# Machine mode's side of the SBI 0.1 for one hart: how it begins, and how a trap gets to sbi.c and back.
.section .text.start, "ax"
.globl _start
_start:
  la sp, stack_end
  csrw mscratch, sp
  la t0, trap
  csrw mtvec, t0
  li t0, 0xb109                # fetch misaligned, breakpoint, call from user, page faults: the kernel's own
  csrw medeleg, t0
  li t0, 0x222                 # software, timer and external interrupts of supervisor mode
  csrw mideleg, t0
  csrw mie, zero
  li t0, 0x1800                # mstatus.MPP = supervisor
  csrc mstatus, t0
  li t0, 0x0800
  csrs mstatus, t0
  li t0, 0x40400000            # the kernel
  csrw mepc, t0
  li a0, 0                     # hart
  li a1, 0x40200000            # device tree
  mret

.balign 4
trap:
  csrrw sp, mscratch, sp
  addi sp, sp, -128
.irp r, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
  sw x\r, 4 * \r(sp)
.endr
  csrr t0, mscratch
  sw t0, 8(sp)
  mv a0, sp
  call handle_trap
.irp r, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
  lw x\r, 4 * \r(sp)
.endr
  addi sp, sp, 128
  csrrw sp, mscratch, sp
  mret

.bss
.balign 16
  .space 4096
stack_end:
