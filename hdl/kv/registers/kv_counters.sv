// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The event counters of docs/reference/kv-registers.md, in one small block RAM, although one event of every kind can
/// occur in the same cycle.
///
/// Behaviour: each input can count one event per cycle. The low 8 bits of a counter are in flip-flops or, for indexed
/// counters, in LUT RAM. There they count at once. The block RAM has all 32 bits, as of the last visit to the counter.
/// One counter is visited per cycle, in turn, and the visit carries into the high bits if the low bits have wrapped
/// since. A read is also such a visit, so it returns the exact value. Counters wrap at 2^32. `clear_i` or reset sets
/// all to 0 (clearing_o). Events are not counted until clearing_o falls.
/// Latency: read_i sees an event in the next cycle. `read_data_o` is valid only 1 cycle after read_i. Clearing takes
/// 129 cycles.
/// Reset: starts clearing.
/// Requirements: no read while clearing_o, and no reads in two consecutive cycles. Otherwise a counter could wrap twice
/// between visits.
module kv_counters
  import kv_core_pkg::*;
  import kv_registers_pkg::*;
#(
    /// Number of words from FramesKvOffset to the end of the last counter: a power of two.
    localparam int unsigned Words = 128,
    /// Number of counters without an index, from FramesKvOffset on.
    localparam int unsigned Events = 11,
    localparam int unsigned IndexWidth = $clog2(Words)
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // a reply's status has four bits here
    input wire events_t events_i,
    // verilator lint_on UNUSEDSIGNAL

    /// Reads the register at FramesKvOffset + 4 read_index_i. Registers that do not exist return 0.
    input  wire                   read_i,
    input  wire  [IndexWidth-1:0] read_index_i,
    output logic [          31:0] read_data_o,

    input  wire  clear_i,
    output logic clearing_o
);

  localparam int unsigned LowBits = 8;

  // Where each group begins, in units of the group's size.
  localparam int unsigned RepliesGroup = 32'(RepliesOffset - FramesKvOffset) / (4 * RepliesCount);
  localparam int unsigned ReceivedGroup = 32'(ReceivedOffset - FramesKvOffset) / (4 * ReceivedCount);
  localparam int unsigned SentGroup = 32'(SentOffset - FramesKvOffset) / (4 * SentCount);

  if (RepliesCount != 16 || ReceivedCount != 32 || SentCount != 32
      || 32'(DroppedSourceOffset) != 32'(FramesKvOffset) + 4 * (Events - 1)
      || 32'(RepliesOffset) != 32'(FramesKvOffset) + RepliesGroup * 64
      || 32'(ReceivedOffset) != 32'(FramesKvOffset) + ReceivedGroup * 128
      || 32'(SentOffset) != 32'(FramesKvOffset) + SentGroup * 128
      || 32'(SentOffset) + 4 * SentCount > 32'(FramesKvOffset) + 4 * Words) begin : gen_check_layout
    $fatal(1, "the counters' registers have moved: look at the groups in %m");
  end

  // ---- the counter to visit

  logic clearing_q;
  logic [IndexWidth-1:0] scan_q, index, visited_q;
  logic last_q;  // the last word is being cleared

  assign index = read_i ? read_index_i : scan_q;
  assign clearing_o = clearing_q;

  always_ff @(posedge clk_i) begin
    visited_q <= index;
    if (!read_i) scan_q <= scan_q + 1'b1;
    last_q <= clearing_q && scan_q == '1;
    if (last_q) clearing_q <= 1'b0;
    if (rst_i || clear_i) begin
      scan_q <= '0;
      clearing_q <= 1'b1;
      last_q <= 1'b0;
    end
  end

  // ---- the low bits

  function automatic int unsigned event_of(logic [11:0] offset);
    return 32'(offset - FramesKvOffset) / 4;
  endfunction
  logic [Events-1:0] single;  // bit i counts in the register at FramesKvOffset + 4 i
  assign single[event_of(FramesKvOffset)] = events_i.rx.received;
  assign single[event_of(FramesPassedRxOffset)] = events_i.rx.passed;
  assign single[event_of(FramesPassedTxOffset)] = events_i.passed_tx;
  assign single[event_of(DroppedChecksumOffset)] = events_i.rx.dropped_checksum;
  assign single[event_of(DroppedLengthOffset)] = events_i.rx.dropped_length;
  assign single[event_of(DroppedEpochOffset)] = events_i.engine.dropped_epoch;
  assign single[event_of(DroppedDuplicateOffset)] = events_i.engine.dropped_duplicate;
  assign single[event_of(RetriesOffset)] = events_i.retry;
  assign single[event_of(DroppedBusyOffset)] = events_i.rx.dropped_busy;
  assign single[event_of(DroppedHostOffset)] = events_i.dropped_host;
  assign single[event_of(DroppedSourceOffset)] = events_i.rx.dropped_source;

  logic [Events-1:0][LowBits-1:0] events_q;
  for (genvar i = 0; i < Events; i++) begin : gen_event
    always_ff @(posedge clk_i) begin
      if (single[i]) events_q[i] <= events_q[i] + 1'b1;
      if (clearing_q) events_q[i] <= '0;
    end
  end

  logic [2:0] add, add_q;
  logic [2:0][4:0] which, which_q;
  logic [2:0][LowBits-1:0] low;  // of the visited
  assign add   = {events_i.sent, events_i.engine.received, events_i.engine.replied};
  assign which = {events_i.sent_kind, events_i.engine.kind, {1'b0, events_i.engine.status[3:0]}};

  always_ff @(posedge clk_i) begin
    add_q   <= clearing_q ? '0 : add;
    which_q <= which;
    if (rst_i) add_q <= '0;
  end

  // Only 16 of the 32 replies exist, so the upper index bit does not belong to the visited one.
  for (genvar i = 0; i < 3; i++) begin : gen_group
    localparam logic [4:0] Mask = i == 0 ? 5'd15 : 5'd31;
    logic [LowBits-1:0] counted;
    lutram #(
        .Width(LowBits),
        .Depth(32),
        .ReadPorts(2)
    ) i_low (
        .clk_i,
        .write_i(clearing_q || add_q[i]),
        .write_address_i(clearing_q ? visited_q[4:0] & Mask : which_q[i]),
        .write_data_i(clearing_q ? '0 : counted + 1'b1),
        .read_address_i({visited_q[4:0] & Mask, which_q[i]}),
        .read_data_o({low[i], counted})
    );
  end

  // ---- the sum: the value in the RAM plus the events counted since then

  logic [31:0] stored, sum;
  logic [LowBits-1:0] now;

  always_comb begin
    now = '0;
    if (32'(visited_q) < Events) now = events_q[visited_q[$clog2(Events)-1:0]];
    else if (32'(visited_q[IndexWidth-1:4]) == RepliesGroup) now = low[0];
    else if (32'(visited_q[IndexWidth-1:5]) == ReceivedGroup) now = low[1];
    else if (32'(visited_q[IndexWidth-1:5]) == SentGroup) now = low[2];
  end

  // Two consecutive visits may both read the RAM's old value. Both compute the correct sum.
  assign sum = {stored[31:LowBits] + (32 - LowBits)'(now < stored[LowBits-1:0]), now};
  assign read_data_o = sum;

  simple_dual_port_ram #(
      .Width(32),
      .Depth(Words)
  ) i_ram (
      .*,
      .write_i(1'b1),
      .write_address_i(visited_q),
      .write_data_i(clearing_q ? '0 : sum),
      .read_i(1'b1),
      .read_address_i(index),
      .read_data_o(stored)
  );

  `ASSERT(not_while_clearing, !(read_i && clearing_q), "a counter was read while all are being cleared")
  `ASSERT_NEXT(no_hurry, read_i, !read_i, "reads leave no time to visit the others")

endmodule
`default_nettype wire
