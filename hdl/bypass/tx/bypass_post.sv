// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Assigns transmit descriptors to frames, and holds the entries of all transmit rings.
///
/// Behaviour: one frame a cycle, from the packed buffer or in place, gets its ring's next
/// descriptor (post_o) and goes to the watch (m_*), if both have room. Frames with `skip` go to
/// the watch only. Four banks hold the entries, so that a beat of descriptors is read at once.
/// coming_o: a frame is offered for that ring. It is known earlier than post_o, and post_o may or may not follow.
/// Latency: to m_* and post_o 0; an entry can be read 2 cycles later. entries_o follows read_i by a cycle.
/// Combinational paths: s_* to m_*, post_o, coming_o; s_ready from m_ready and the other sender's s_*.
/// Reset: no entry is being written; the first sender has the turn.
/// Requirements: none.
module bypass_post
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    localparam int unsigned Queues = 1 << Config.queue_bits
) (
    input wire clk_i,
    input wire rst_i,

    // 0: from the packed buffer; 1: in place.
    input wire [1:0] s_valid,
    output logic [1:0] s_ready,
    input wire post_t [1:0] s_payload,

    input  wire         [Queues-1:0] room_i,
    // verilator lint_off UNUSEDSIGNAL  // its upper bits
    input  wire index_t [Queues-1:0] tail_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic        [Queues-1:0] post_o,
    output logic        [Queues-1:0] coming_o,

    output logic  m_valid,
    input  wire   m_ready,
    output post_t m_payload,

    // verilator lint_off UNUSEDSIGNAL  // where in its beat
    input  wire window_read_t       read_i,
    // verilator lint_on UNUSEDSIGNAL
    output tx_entry_t         [3:0] entries_o
);

  localparam int unsigned GroupBits = Config.queue_bits + Config.tx_bits - 2;
  typedef logic [GroupBits-1:0] group_t;

  // Only a sender that can be served takes a turn, so no choice waits. A sender's ready does not depend on its valid.
  logic [1:0] able, may, first;  // first: if both may
  logic  second_q;  // the second sender has the turn
  post_t post;
  assign first = {second_q, !second_q};
  always_comb begin
    coming_o = '0;
    for (int i = 0; i < 2; i++) begin
      able[i] = m_ready && s_payload[i].skip;
      for (int q = 0; q < int'(Queues); q++) begin
        if (s_payload[i].pair == queue_t'(q)) begin
          able[i] = m_ready && (room_i[q] || s_payload[i].skip);
          coming_o[q] |= s_valid[i] && !s_payload[i].skip;
        end
      end
      may[i] = s_valid[i] && able[i];
    end
    for (int i = 0; i < 2; i++) s_ready[i] = able[i] && (first[i] || !may[1-i]);
  end
  assign m_valid   = may != '0;
  assign m_payload = post;
  assign post      = s_payload[may[1]&&(second_q||!may[0])];
  always_ff @(posedge clk_i) begin
    if (m_valid) second_q <= may[0] && s_ready[0];
    if (rst_i) second_q <= 1'b0;
  end

  // ---- entries

  logic write_q;
  logic [1:0] bank_q;
  group_t group_q;
  tx_entry_t entry_q;
  index_t tail;
  always_comb begin
    tail = '0;
    for (int q = 0; q < int'(Queues); q++) begin
      post_o[q] = m_valid && !post.skip && post.pair == queue_t'(q);
      if (post.pair == queue_t'(q)) tail = tail_i[q];
    end
  end
  function automatic group_t group_of(queue_t pair, logic [9:0] group);
    return group_t'((32'(pair) << (Config.tx_bits - 2)) | (32'(group) & ((32'd1 << (Config.tx_bits - 2)) - 32'd1)));
  endfunction
  always_ff @(posedge clk_i) begin
    write_q <= m_valid && !post.skip;
    bank_q  <= tail[1:0];
    group_q <= group_of(post.pair, tail[11:2]);
    entry_q <= '{line: post.line, bytes: post.bytes};
    if (rst_i) write_q <= 1'b0;
  end
  for (genvar i = 0; i < 4; i++) begin : gen_bank
    simple_dual_port_ram #(
        .Width($bits(tx_entry_t)),
        .Depth(1 << GroupBits)
    ) i_entries (
        .*,
        .write_i(write_q && bank_q == 2'(i)),
        .write_address_i(group_q),
        .write_data_i(entry_q),
        .read_i(read_i.valid && read_i.region == TxRing),
        .read_address_i(group_of(read_i.offset[20:17], read_i.offset[15:6])),
        .read_data_o(entries_o[i])
    );
  end

endmodule
`default_nettype wire
