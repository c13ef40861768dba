// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The list of leftovers, in block RAM, and what looks through it. Section 8 of docs/kv-protocol.md.
///
/// Behaviour: find_i looks from entry from_i on, one entry a cycle, for what is asked for; with again_i it goes on after the one that was
/// found last. busy_o until found_o says whether there is one; then the entry and its number stay at the outputs until the next find_i.
/// With ListFree it is one that holds nothing, behind all others if there is none before. keep_i puts cell_i there, drop_i empties it.
/// Beside the entry: what it says of a write, compared with the frame at the queue's head (a cycle later): that is newer; has the same
/// version; is the same request.
/// Latency: 1 cycle and 1 for each entry looked at until busy_o falls.
/// Reset: the list is empty; so with clear_i.
/// Requirements: keep_i and drop_i only when something was found, and before the next find_i or with it.
module kv_recovery_leftover_list
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
#(
    /// 2^n at most.
    parameter int unsigned Bits = 10
) (
    input wire clk_i,
    input wire rst_i,
    input wire clear_i,

    input  wire                        find_i,
    input  wire list_find_e            what_i,
    input  wire             [  Bits:0] from_i,
    input  wire                        again_i,
    input  wire bucket_t               bucket_i,  // with ListAt
    output logic                       busy_o,
    output logic                       found_o,
    output logic            [Bits-1:0] at_o,
    output logic                       valid_o,
    output cell_t                      cell_o,

    input wire        keep_i,
    input wire        drop_i,
    input wire cell_t cell_i,

    // verilator lint_off UNUSEDSIGNAL
    input  wire kv_t head_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic     newer_o,
    output logic     equal_o,
    output logic     same_o,

    output logic [Bits:0] count_o
);

  if (Bits < 1 || Bits > 11) begin : gen_check_bits
    $fatal(1, "Bits must be 1 to 11 in %m");
  end

  typedef struct packed {
    logic  valid;
    cell_t what;
  } leftover_t;

  logic [Bits:0] high_q;  // entries from here on hold nothing, whatever is there
  logic [Bits:0] next_q;  // to be read
  logic there_q, ends_q;  // something was read; it was not below high_q
  list_find_e what_q;
  leftover_t  entry;

  // The RAM's own register keeps what was found.
  logic stops, reads;
  assign reads = busy_o && !(there_q && stops);
  simple_dual_port_ram #(
      .Width($bits(leftover_t)),
      .Depth(2 ** Bits)
  ) i_list (
      .clk_i,
      .write_i(keep_i || drop_i),
      .write_address_i(at_o),
      .write_data_i({keep_i, cell_i}),
      .read_i(reads),
      .read_address_i(next_q[Bits-1:0]),
      .read_data_o(entry)
  );
  assign valid_o = entry.valid;
  assign cell_o  = entry.what;

  logic located;
  assign located = entry.what.bucket == bucket_i && entry.what.way == head_i.detail[7:6];
  always_comb begin
    stops = ends_q;
    case (what_q)
      ListNext: if (entry.valid) stops = 1'b1;
      ListFree: if (!entry.valid) stops = 1'b1;
      ListAt:   if (entry.valid && located) stops = 1'b1;
      default:  stops = 1'b1;
    endcase
  end

  always_ff @(posedge clk_i) begin
    newer_o <= newer(head_i.version, entry.what.version);
    equal_o <= head_i.version == entry.what.version;
    same_o  <= head_i.client == entry.what.lane && head_i.request == entry.what.request;
  end

  always_ff @(posedge clk_i) begin
    if (reads) begin
      there_q <= 1'b1;
      ends_q  <= next_q >= high_q;
      at_o    <= next_q[Bits-1:0];
      next_q  <= next_q + 1'b1;
    end else begin
      busy_o <= 1'b0;
      // The list may end where it has no more room.
      if (busy_o) found_o <= !ends_q || (what_q == ListFree && !high_q[Bits]);
    end
    if (find_i) begin
      busy_o  <= 1'b1;
      there_q <= 1'b0;
      what_q  <= what_i;
      if (!again_i) next_q <= from_i;
    end

    count_o <= count_o + (Bits + 1)'(keep_i) - (Bits + 1)'(drop_i);
    if (keep_i && ends_q) high_q <= high_q + 1'b1;
    if (rst_i || clear_i) begin
      busy_o  <= 1'b0;
      count_o <= '0;
      high_q  <= '0;
    end
  end

  `ASSERT(count_right, count_o <= high_q, "more leftovers than entries")
  `ASSERT(found_first, !(keep_i || drop_i) || (!busy_o && found_o), "a change of an entry that was not found")

endmodule
`default_nettype wire
