# SPDX-License-Identifier: Apache-2.0
# The only program: says that it is there, works on 256 KiB of memory, and switches the machine off.
.globl _start
.text
_start:
  la a1, hello
  li a2, 22                    # bytes of hello
  call say
  li s0, 8
round:
  la t0, buffer
  li t1, 65536
1:
  lw t2, 0(t0)
  addi t2, t2, 1
  sw t2, 0(t0)
  addi t0, t0, 4
  addi t1, t1, -1
  bnez t1, 1b
  addi s0, s0, -1
  bnez s0, round
  la a1, done
  li a2, 16
  call say
  li a0, 0xfee1dead            # reboot(2): LINUX_REBOOT_CMD_POWER_OFF
  li a1, 672274793
  li a2, 0x4321fedc
  li a3, 0
  li a7, 142
  ecall
2:
  j 2b
say:
  li a0, 1
  li a7, 64                    # write(2)
  ecall
  ret

.data
hello: .ascii "soft core: user space\n"
done: .ascii "soft core: done\n"
.bss
.balign 4
buffer: .space 262144
