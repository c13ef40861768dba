// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The list of leftovers, in block RAM, and the logic that searches it. Section 8 of docs/design/kv-protocol.md.
///
/// Behaviour: `find` searches from an entry on, one entry per cycle, for the given content. With `again` it continues
/// after the last entry found. `busy` is high during the search; then `found` shows the result. The entry and its index
/// stay at answer_o until the next `find`. ListFree searches for an empty entry. If there is none, it returns the entry
/// after the last. `keep` stores cell_i in the entry, and `drop` empties it. One cycle later, answer_o also compares
/// the entry's write with the frame at the queue's head.
/// Latency: 1 cycle, plus 1 for each entry searched, until `busy` falls.
/// Reset: the list is empty. `clear_i` has the same effect.
/// Requirements: `keep` and `drop` only after a successful search, and no later than the next `find`.
module kv_recovery_leftover_list
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
#(
    /// At most 2^Bits leftovers.
    parameter int unsigned Bits = 10
) (
    input wire clk_i,
    input wire rst_i,
    input wire clear_i,

    // verilator lint_off UNUSEDSIGNAL  // of a place in the list as many bits as it needs
    input  wire list_ask_t          ask_i,
    input  wire bucket_t            bucket_i,  // with ListAt
    input  wire cell_t              cell_i,
    input  wire kv_t                head_i,
    // verilator lint_on UNUSEDSIGNAL
    output list_answer_t            answer_o,
    output logic           [Bits:0] count_o
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
  logic busy_q, found_q, newer_q, equal_q, same_q;
  logic [Bits-1:0] at_q;
  logic there_q, ends_q;  // something was read; it was not below high_q
  list_find_e what_q;
  leftover_t  entry;

  // The RAM's output register holds the found entry.
  logic stops, reads;
  assign reads = busy_q && !(there_q && stops);
  simple_dual_port_ram #(
      .Width($bits(leftover_t)),
      .Depth(2 ** Bits)
  ) i_list (
      .*,
      .write_i(ask_i.keep || ask_i.drop),
      .write_address_i(at_q),
      .write_data_i({ask_i.keep, cell_i}),
      .read_i(reads),
      .read_address_i(next_q[Bits-1:0]),
      .read_data_o(entry)
  );
  assign answer_o = '{
          busy: busy_q,
          found: found_q,
          at: leftover_at_t'(at_q),
          valid: entry.valid,
          what: entry.what,
          newer: newer_q,
          equal: equal_q,
          same: same_q
      };

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
    newer_q <= newer(head_i.version, entry.what.version);
    equal_q <= head_i.version == entry.what.version;
    same_q  <= head_i.client == entry.what.lane && head_i.request == entry.what.request;
  end

  always_ff @(posedge clk_i) begin
    if (reads) begin
      there_q <= 1'b1;
      ends_q  <= next_q >= high_q;
      at_q    <= next_q[Bits-1:0];
      next_q  <= next_q + 1'b1;
    end else begin
      busy_q <= 1'b0;
      // ListFree also succeeds at the end of the list, unless the list is full.
      if (busy_q) found_q <= !ends_q || (what_q == ListFree && !high_q[Bits]);
    end
    if (ask_i.find) begin
      busy_q  <= 1'b1;
      there_q <= 1'b0;
      what_q  <= ask_i.what;
      if (!ask_i.again) next_q <= ask_i.from[Bits:0];
    end

    count_o <= count_o + (Bits + 1)'(ask_i.keep) - (Bits + 1)'(ask_i.drop);
    if (ask_i.keep && ends_q) high_q <= high_q + 1'b1;
    if (rst_i || clear_i) begin
      busy_q  <= 1'b0;
      count_o <= '0;
      high_q  <= '0;
    end
  end

  `ASSERT(count_right, count_o <= high_q, "more leftovers than entries")
  `ASSERT(found_first, !(ask_i.keep || ask_i.drop) || (!busy_q && found_q), "a change of an entry that was not found")

endmodule
`default_nettype wire
