// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::probe {

/// Copies `bytes` from `from` to `to` with any number of threads: pieces of 16 bytes, then single bytes. Both
/// addresses are multiples of 16. Loads are .cv (fetch again), because host memory may have changed since the
/// last kernel. PTX ISA 6.3 is the first with sm_75; the driver compiles it for sm_75 and later GPUs.
inline constexpr char kCopyKernel[] = R"(
.version 6.3
.target sm_75
.address_size 64
.visible .entry wherry_copy(.param .u64 p_to, .param .u64 p_from, .param .u64 p_bytes)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %d<11>;
  ld.param.u64 %d1, [p_to];
  ld.param.u64 %d2, [p_from];
  ld.param.u64 %d3, [p_bytes];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d4, %r1, %r2;
  cvt.u64.u32 %d5, %r3;
  add.u64 %d4, %d4, %d5;       // this thread
  mul.wide.u32 %d5, %r4, %r2;  // threads
  shr.u64 %d6, %d3, 4;         // pieces of 16 bytes
  mov.u64 %d7, %d4;
PIECE:
  setp.ge.u64 %p1, %d7, %d6;
  @%p1 bra REST;
  shl.b64 %d8, %d7, 4;
  add.u64 %d9, %d2, %d8;
  add.u64 %d10, %d1, %d8;
  ld.global.cv.v4.u32 {%r5, %r6, %r7, %r8}, [%d9];
  st.global.v4.u32 [%d10], {%r5, %r6, %r7, %r8};
  add.u64 %d7, %d7, %d5;
  bra PIECE;
REST:
  shl.b64 %d6, %d6, 4;
  add.u64 %d7, %d6, %d4;
BYTE:
  setp.ge.u64 %p1, %d7, %d3;
  @%p1 bra DONE;
  add.u64 %d9, %d2, %d7;
  add.u64 %d10, %d1, %d7;
  ld.global.cv.u8 %r5, [%d9];
  st.global.u8 [%d10], %r5;
  add.u64 %d7, %d7, %d5;
  bra BYTE;
DONE:
  ret;
}
)";

}  // namespace wherry::probe
