// SPDX-License-Identifier: Apache-2.0

/// Shared by the blocks of the DMA engine's data part (docs/design/dma-data.md).
package dma_data_pkg;

  // Each module that imports this package uses only a part of it.
  // verilator lint_off UNUSEDPARAM
  // verilator lint_off UNUSEDSIGNAL

  /// A request's tag, and a line of a ring. Only the low bits count that the numbers of tags and lines need.
  typedef logic [6:0] tag_t;
  typedef logic [9:0] line_t;
  typedef logic [2:0] code_t;  // dma_pkg::error_e

  /// A write to the banks of a ring in one cycle: bytes, with a line for each bank.
  typedef struct packed {
    logic [15:0][3:0]  enable;
    line_t [15:0]      line;
    logic [15:0][31:0] data;
  } bank_write_t;

  /// A read of the banks: 4 bytes each, with a line for each bank. Without enable, the data stay.
  typedef struct packed {
    logic         enable;
    line_t [15:0] line;
  } bank_read_t;
  typedef logic [15:0][31:0] bank_data_t;

  /// A piece of a turn to the card: the bytes of one read, and the place of its first byte in the ring.
  typedef struct packed {
    line_t       line;
    logic [5:0]  lane;
    logic        ends;   // the turn
    logic [12:0] bytes;
  } piece_t;

  /// A piece that is complete.
  typedef struct packed {
    logic        ends;
    logic [12:0] bytes;
    code_t       error;
  } ended_t;

  /// All bytes of a request have arrived.
  typedef struct packed {
    logic  valid;
    tag_t  tag;
    code_t error;
  } stored_t;

  /// A run: `bytes` bytes from addr on. A void run is not written.
  typedef struct packed {
    logic        void_;
    logic        stream;
    logic        ends;     // its turn, of which follow
    logic        last;
    logic [1:0]  channel;
    code_t       error;
    logic [12:0] moved;    // of the turn, if AXI has no error to tell
    logic [12:0] bytes;
    logic [63:0] addr;
  } run_t;

  /// State of the oldest unanswered turn: failed in AXI (more of it may come), or answered.
  typedef struct packed {
    logic failed;
    logic answered;
  } fate_t;

  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNUSEDPARAM

endpackage
