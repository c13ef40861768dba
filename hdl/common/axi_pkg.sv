// SPDX-License-Identifier: Apache-2.0
`include "axi.svh"

/// AXI: constants, the arithmetic of bursts, and the default bundles of cells. References are to the AXI and ACE
/// protocol specification, issue E (ARM IHI 0022E).
package axi_pkg;

  // verilator lint_off UNUSEDPARAM

  /// AxBURST (A3.4.1).
  typedef enum logic [1:0] {
    BurstFixed,
    BurstIncr,
    BurstWrap
  } burst_e;

  /// RRESP and BRESP (A3.4.4). A larger value is a worse response.
  typedef enum logic [1:0] {
    RespOkay,
    RespExOkay,
    RespSlvErr,
    RespDecErr
  } resp_e;

  /// AxCACHE (A4.4): for registers and doorbells; for these with early write responses; for memory that both sides see.
  localparam logic [3:0] CacheDevice = 4'b0000;
  localparam logic [3:0] CacheDeviceBufferable = 4'b0001;
  localparam logic [3:0] CacheNormal = 4'b0011;

  /// AxPROT (A4.7): data, secure, unprivileged.
  localparam logic [2:0] ProtData = 3'b000;

  /// A burst never crosses a multiple of this many bytes (A3.4.1).
  localparam int unsigned BoundaryBits = 12;
  localparam int unsigned BoundaryBytes = 1 << BoundaryBits;

  /// A range of addresses: `size` is a power of two, and `base` a multiple of it.
  typedef struct packed {
    logic [63:0] base;
    logic [63:0] size;
  } region_t;

  function automatic logic in_region(logic [63:0] address, region_t region);
    return (address & ~(region.size - 64'd1)) == region.base;
  endfunction

  function automatic logic region_is_valid(region_t region);
    logic [63:0] offset;
    offset = region.size - 64'd1;
    return region.size != '0 && (region.size & offset) == '0 && (region.base & offset) == '0;
  endfunction

  /// Low address bits of the beat after the one at `address` in an INCR burst. Every beat except the first is aligned
  /// to its size (A3.4.1). A burst stays within 4 KiB, so higher bits do not change.
  function automatic logic [BoundaryBits-1:0] next_beat(logic [BoundaryBits-1:0] address, logic [2:0] size);
    logic [BoundaryBits-1:0] bytes;
    bytes = BoundaryBits'(1) << size;
    return (address & ~(bytes - 1'b1)) + bytes;
  endfunction

  /// Bytes from `address` to the end of an INCR burst: 1 to 32768.
  function automatic logic [15:0] burst_bytes(logic [6:0] address, logic [7:0] len, logic [2:0] size);
    logic [6:0] offset;
    offset = address & ((7'd1 << size) - 7'd1);
    return ((16'(len) + 16'd1) << size) - 16'(offset);
  endfunction

  /// AxLEN of an INCR burst that carries `bytes` from `address` on: at most 256 beats of 2^size bytes.
  function automatic logic [7:0] burst_len(logic [6:0] address, logic [15:0] bytes, logic [2:0] size);
    logic [6:0] offset;
    offset = address & ((7'd1 << size) - 7'd1);
    return 8'((bytes + 16'(offset) - 16'd1) >> size);
  endfunction

  /// True if a burst breaks the 4 KiB rule.
  function automatic logic crosses_boundary(logic [BoundaryBits-1:0] address, logic [7:0] len, logic [2:0] size);
    return 17'(address) + 17'(burst_bytes(address[6:0], len, size)) > 17'(BoundaryBytes);
  endfunction

  /// Byte lanes from `first` up to, not including, `end_`, of up to 128: strobes or keep of a beat with partial data.
  function automatic logic [127:0] lanes(logic [7:0] first, logic [7:0] end_);
    logic [127:0] found;
    for (int i = 0; i < 128; i++) found[i] = 8'(i) >= first && 8'(i) < end_;
    return found;
  endfunction

  /// The worse of the responses to two parts of a transaction.
  function automatic resp_e worse(resp_e a, resp_e b);
    return a > b ? a : b;
  endfunction

  // The bundles of a 512-bit port and of registers. They are the defaults of the cells, and serve tools that use a cell
  // as their top.
  `AXI_TYPES(axi, 64, 512, 4)
  `AXI_TYPES(axi_joined, 64, 512, 6)
  `AXI_LITE_TYPES(axi_lite, 32, 32)
  `AXIS_TYPE(axis, 512, 1)
  `AXIS_TYPE(axis_narrow, 64, 1)

  // verilator lint_on UNUSEDPARAM

endpackage
