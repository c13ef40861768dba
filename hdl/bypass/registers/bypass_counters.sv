// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The event counters of docs/reference/bypass-registers.md in block RAM. All may count in the same cycle.
///
/// Behaviour: a small register per counter collects its events. One of them a cycle, in rotation, is added to the
/// RAM. Counters wrap at 2^32. clear_i and reset set all to 0; while clearing_o is set, events are not counted.
/// Latency: an event can be read after at most 28 cycles; read_data_o follows read_i by 1 cycle.
/// Reset: starts to clear.
/// Requirements: none.
module bypass_counters
  import bypass_pkg::*;
  import bypass_registers_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input wire events_t events_i,

    /// Reads the register at RxInOffset + 4 read_index_i.
    input  wire         read_i,
    input  wire  [ 4:0] read_index_i,
    output logic [31:0] read_data_o,

    input  wire  clear_i,
    output logic clearing_o
);

  localparam int unsigned FirstWord = 32'(RxInWord);
  localparam int unsigned Counters = 32'(OutsideReadsWord) - FirstWord + 1;
  /// Sums over a round of 24 cycles: frames of 9728 bytes; up to 4 events a cycle; 1 event a cycle.
  localparam int unsigned ManyBits = 18;
  localparam int unsigned FewBits = 7;
  localparam int unsigned OneBits = 5;
  if (Counters > 24) begin : gen_check_counters
    $fatal(1, "a round has become longer: look at the widths in %m");
  end

  // The events of this cycle.
  bytes_t [Counters-1:0] now;
  always_comb begin
    now = '0;
    now[RxInWord-RxInWord] = 14'(events_i.rx_in);
    now[RxFramesWord-RxInWord] = 14'(events_i.rx_frame);
    now[RxBytesWord-RxInWord] = events_i.rx_bytes;
    now[RxErrorWord-RxInWord] = 14'(events_i.rx_error);
    now[RxSizeWord-RxInWord] = 14'(events_i.rx_size);
    now[RxStoppedWord-RxInWord] = 14'(events_i.rx_stopped);
    now[RxUnexpectedWord-RxInWord] = 14'(events_i.rx_unexpected);
    now[RxStrayWord-RxInWord] = 14'(events_i.rx_stray);
    now[TxInWord-RxInWord] = 14'(events_i.tx_in);
    now[TxPostedWord-RxInWord] = 14'(events_i.tx_posted);
    now[TxBytesWord-RxInWord] = events_i.tx_bytes;
    now[TxDoneWord-RxInWord] = 14'(events_i.tx_done);
    now[TxStoppedWord-RxInWord] = 14'(events_i.tx_stopped);
    now[TxRefusedWord-RxInWord] = 14'(events_i.tx_refused);
    now[TxSizeWord-RxInWord] = 14'(events_i.tx_size);
    now[TxLateWord-RxInWord] = 14'(events_i.tx_late);
    now[VerdictsDropWord-RxInWord] = 14'(events_i.verdict_drop);
    now[TailsWord-RxInWord] = 14'(events_i.tail);
    now[TailErrorsWord-RxInWord] = 14'(events_i.tail_error);
    now[FetchesWord-RxInWord] = 14'(events_i.fetch);
    now[TxWrittenBackWord-RxInWord] = 14'(events_i.tx_written_back);
    now[TxUnexpectedWord-RxInWord] = 14'(events_i.tx_unexpected);
    now[OutsideWritesWord-RxInWord] = 14'(events_i.outside_write);
    now[OutsideReadsWord-RxInWord] = 14'(events_i.outside_read);
  end

  // Events that are not in the RAM yet. The sum restarts when the counter has its turn.
  logic [4:0] turn_q, added_q;
  logic [Counters-1:0][ManyBits-1:0] waiting;
  logic [ManyBits-1:0] amount_q;
  for (genvar i = 0; i < int'(Counters); i++) begin : gen_counter
    localparam int unsigned Word = i + FirstWord;
    localparam bit Many = Word == 32'(RxBytesWord) || Word == 32'(TxBytesWord);
    localparam bit Few = Word == 32'(RxInWord) || Word == 32'(RxUnexpectedWord) || Word == 32'(TxInWord);
    localparam int unsigned Bits = Many ? ManyBits : Few ? FewBits : OneBits;
    logic [Bits-1:0] waiting_q;
    assign waiting[i] = ManyBits'(waiting_q);
    always_ff @(posedge clk_i) begin
      waiting_q <= (turn_q == 5'(i) ? '0 : waiting_q) + Bits'(now[i]);
      if (rst_i || clearing_o) waiting_q <= '0;
    end
  end
  always_ff @(posedge clk_i) begin
    turn_q   <= turn_q == 5'(Counters - 1) ? '0 : turn_q + 1'b1;
    added_q  <= turn_q;
    amount_q <= waiting[turn_q];
    if (rst_i) turn_q <= '0;
  end

  counter_ram #(
      .Counters(32),
      .AmountWidth(ManyBits)
  ) i_ram (
      .*,
      .add_i(1'b1),
      .index_i(added_q),
      .amount_i(amount_q)
  );

endmodule
`default_nettype wire
