// SPDX-License-Identifier: Apache-2.0

/// What the blocks of the DMA engine's data part say to each other (docs/design/dma-data.md).
package dma_data_pkg;

  // A package is for many modules, none of which uses all of it.
  // verilator lint_off UNUSEDPARAM
  // verilator lint_off UNUSEDSIGNAL

  /// A request's tag, and a line of a ring: of both the low bits count, as many as there are tags and lines.
  typedef logic [6:0] tag_t;
  typedef logic [9:0] line_t;
  typedef logic [2:0] code_t;  // dma_pkg::error_e

  /// What the banks of a ring write in a cycle: bytes, each bank's into a line of its own.
  typedef struct packed {
    logic [15:0][3:0]  enable;
    line_t [15:0]      line;
    logic [15:0][31:0] data;
  } bank_write_t;

  /// What they read: each 4 bytes of a line of its own, without enable what they read before.
  typedef struct packed {
    logic         enable;
    line_t [15:0] line;
  } bank_read_t;
  typedef logic [15:0][31:0] bank_data_t;

  /// A piece of a turn to the card: what one read asks for, and where its first byte lies in the ring.
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

  /// All of a request has come.
  typedef struct packed {
    logic  valid;
    tag_t  tag;
    code_t error;
  } stored_t;

  /// A run: so many bytes from addr on; what is void is not written.
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

  /// What became of the oldest turn that is not answered: AXI failed, and more of it may come; or it is answered.
  typedef struct packed {
    logic failed;
    logic answered;
  } fate_t;

  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNUSEDPARAM

endpackage
