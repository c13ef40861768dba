// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Assembles frames from written-back descriptors: their position, their length, and whether they are good.
///
/// Behaviour: four banks store a beat of write-backs at once; entries are read one a cycle. Queues take
/// turns: one frame each, then the next queue with a complete frame. Only a frame's last buffer may be partly
/// filled. A frame with more than MaxSlots descriptors is dropped, with all its descriptors up to the end.
/// Latency: from rx_ring_t.has 1 cycle for each descriptor of a frame, and one more if another queue had the turn.
/// Reset: queue 0 has the turn.
/// Requirements: as bypass_rx_ring. When a frame's first descriptor is available, all of them are.
module bypass_rx_frames
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    localparam int unsigned Queues = 1 << Config.queue_bits
) (
    input wire clk_i,
    input wire rst_i,

    input wire bytes_t max_frame_i,

    // verilator lint_off UNUSEDSIGNAL  // what was written back; which of it counts, and what the rings have
    input  wire rx_written_t              written_i,
    input  wire pair_state_t [Queues-1:0] pairs_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic             [Queues-1:0] take_o,

    output logic   m_valid,
    input  wire    m_ready,
    output frame_t m_payload
);

  localparam int unsigned GroupBits = Config.queue_bits + Config.rx_bits - 2;
  localparam index_t Mask = index_t'((1 << Config.rx_bits) - 1);
  typedef logic [GroupBits-1:0] group_t;

  // At most one queue has write-backs in a cycle.
  logic [3:0] accept;
  logic [Queues-1:0] has_each;
  always_comb begin
    accept = '0;
    for (int i = 0; i < int'(Queues); i++) begin
      accept |= pairs_i[i].rx.accept;
      has_each[i] = pairs_i[i].rx.has;
    end
  end

  // ---- whose turn it is

  queue_t turn, next;
  logic done, has;
  if (Queues > 1) begin : gen_turns
    queue_t turn_q;
    always_comb begin
      next = turn_q;
      for (int i = int'(Queues) - 1; i >= 0; i--) if (has_each[i]) next = queue_t'(i);
      for (int i = int'(Queues) - 1; i >= 0; i--) if (has_each[i] && i > int'(turn_q)) next = queue_t'(i);
    end
    always_ff @(posedge clk_i) begin
      if (done || !has) turn_q <= next;
      if (rst_i) turn_q <= '0;
    end
    assign turn = turn_q;
  end else begin : gen_one
    assign turn = '0;
    assign next = '0;
  end

  logic   run;
  index_t taken;
  always_comb begin
    has   = has_each[0];
    run   = pairs_i[0].running;
    taken = pairs_i[0].rx.taken;
    for (int i = 1; i < int'(Queues); i++) begin
      if (queue_t'(i) == turn) begin
        has   = has_each[i];
        run   = pairs_i[i].running;
        taken = pairs_i[i].rx.taken;
      end
    end
  end

  // ---- the entry

  count_t seen_q;  // of this frame, before this entry
  index_t at, first_q;
  typedef struct packed {
    logic eop;
    logic error;
  } status_t;
  status_t [3:0] statuses;
  status_t status;
  bytes_t [3:0] lengths;
  bytes_t length;
  assign at = taken;
  function automatic group_t group_of(queue_t pair, logic [9:0] group);
    return group_t'((32'(pair) << (Config.rx_bits - 2)) | 32'(group & Mask[11:2]));
  endfunction
  // A length may come before its status. It is always stored, and evaluated only when the frame is read.
  for (genvar i = 0; i < 4; i++) begin : gen_bank
    lutram #(
        .Width($bits(status_t)),
        .Depth(1 << GroupBits)
    ) i_statuses (
        .*,
        .write_i(accept[i]),
        .write_address_i(group_of(written_i.pair, written_i.group)),
        .write_data_i({written_i.eop[i], written_i.error[i]}),
        .read_address_i(group_of(turn, at[11:2])),
        .read_data_o(statuses[i])
    );
    lutram #(
        .Width($bits(bytes_t)),
        .Depth(1 << GroupBits)
    ) i_lengths (
        .*,
        .write_i(written_i.sized[i]),
        .write_address_i(group_of(written_i.pair, written_i.group)),
        .write_data_i(written_i.bytes[i]),
        .read_address_i(group_of(turn, at[11:2])),
        .read_data_o(lengths[i])
    );
  end
  assign status = statuses[at[1:0]];
  assign length = lengths[at[1:0]];

  // ---- the frame

  localparam bytes_t SlotBytes = bytes_t'(1 << SlotBits);
  logic last, ready, error_q, odd_q, odd;
  logic [14:0] bytes_q, bytes;
  bytes_t max_q;
  always_ff @(posedge clk_i) max_q <= max_frame_i < bytes_t'(MaxFrame) ? max_frame_i : bytes_t'(MaxFrame);
  frame_t frame;
  // Whether a queue's next descriptor begins a frame, or continues one that was dropped.
  logic [Queues-1:0] begins_q;
  logic begins;
  always_comb begin
    begins = begins_q[0];
    for (int i = 1; i < int'(Queues); i++) if (queue_t'(i) == turn) begins = begins_q[i];
  end
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < int'(Queues); i++) begin
      if (take_o[i] && last) begins_q[i] <= status.eop;
      if (pairs_i[i].begins) begins_q[i] <= 1'b1;
    end
    if (rst_i) begins_q <= '1;
  end

  assign last = status.eop || seen_q == count_t'(MaxSlots - 1);
  assign bytes = bytes_q + {1'b0, length};
  assign odd   = odd_q || length > SlotBytes || length == '0 || (!status.eop && length != SlotBytes)
               || !begins || (last && (!status.eop || bytes > {1'b0, max_q}));
  assign done = has && last && ready;

  always_comb begin
    frame = '{
        pair: turn,
        index: seen_q == '0 ? at : first_q,
        bytes: bytes[13:0],
        slots: seen_q + 1'b1,
        verdict: !run ? BadStopped : odd ? BadSize : status.error || error_q ? BadError : Good
    };
    take_o = '0;
    for (int i = 0; i < int'(Queues); i++) take_o[i] = has && (!last || ready) && queue_t'(i) == turn;
  end

  always_ff @(posedge clk_i) begin
    if (seen_q == '0) first_q <= at;
    if (done || !has) begin
      seen_q  <= '0;
      bytes_q <= '0;
      error_q <= 1'b0;
      odd_q   <= 1'b0;
    end else if (!last) begin
      seen_q  <= seen_q + 1'b1;
      bytes_q <= bytes;
      error_q <= error_q || status.error;
      odd_q   <= odd;
    end
    if (rst_i) begin
      seen_q  <= '0;
      bytes_q <= '0;
      error_q <= 1'b0;
      odd_q   <= 1'b0;
    end
  end

  stream_fifo #(
      .Width($bits(frame_t)),
      .Depth(2)
  ) i_frames (
      .*,
      .s_valid  (has && last),
      .s_ready  (ready),
      .s_payload(frame),
      .m_payload(m_payload)
  );

  logic unused_next;
  assign unused_next = ^next;
endmodule
`default_nettype wire
