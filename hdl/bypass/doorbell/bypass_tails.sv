// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Writes tail pointers to the NIC's registers.
///
/// Behaviour: one tail a cycle leaves, in rotation, for the address from software. Inputs 2 q and 2 q + 1: queue
/// q's receive and transmit ring. Writes are posted: this block does not wait for answers, but counts errors.
/// Latency: 1 cycle.
/// Reset: discards tails that wait for the bus. Addresses need no reset.
/// Requirements: none.
module bypass_tails
  import bypass_pkg::*;
#(
    parameter int unsigned Queues = 1,
    localparam int unsigned Rings = 2 * Queues,
    localparam int unsigned RingBits = $clog2(Rings)
) (
    input wire clk_i,
    input wire rst_i,

    // Software writes an address in two halves.
    input wire [         1:0] write_i,
    input wire [RingBits-1:0] write_ring_i,
    input wire [        31:0] write_data_i,

    input  wire         [Rings-1:0] s_valid,
    output logic        [Rings-1:0] s_ready,
    input  wire index_t [Rings-1:0] s_payload,

    output tail_req_t       m_axil_req,
    // verilator lint_off UNUSEDSIGNAL  // nothing is read
    input  wire tail_resp_t m_axil_resp,
    // verilator lint_on UNUSEDSIGNAL

    output events_t events_o
);

  logic valid, ready, unused_last;
  logic [1:0] room;
  index_t tail;
  logic [RingBits-1:0] ring;
  logic [1:0][31:0] address;
  stream_arbiter #(
      .Inputs(Rings),
      .Width ($bits(index_t))
  ) i_turns (
      .*,
      .s_last   ('1),
      .m_valid  (valid),
      .m_ready  (ready),
      .m_payload(tail),
      .m_last   (unused_last),
      .m_index  (ring)
  );
  for (genvar i = 0; i < 2; i++) begin : gen_half
    lutram #(
        .Width(32),
        .Depth(Rings)
    ) i_addresses (
        .*,
        .write_i(write_i[i]),
        .write_address_i(write_ring_i),
        .read_address_i(ring),
        .read_data_o(address[i])
    );
  end

  // The address and data channels accept a tail in the same cycle.
  assign ready = room == '1;
  stream_register #(
      .Width(64)
  ) i_aw (
      .*,
      .s_valid  (valid && ready),
      .s_ready  (room[0]),
      .s_payload(address),
      .m_valid  (m_axil_req.aw_valid),
      .m_ready  (m_axil_resp.aw_ready),
      .m_payload(m_axil_req.aw.addr)
  );
  index_t out;
  stream_register #(
      .Width($bits(index_t))
  ) i_w (
      .*,
      .s_valid  (valid && ready),
      .s_ready  (room[1]),
      .s_payload(tail),
      .m_valid  (m_axil_req.w_valid),
      .m_ready  (m_axil_resp.w_ready),
      .m_payload(out)
  );
  assign m_axil_req.w = '{data: 32'(out), strb: '1};
  assign m_axil_req.b_ready = 1'b1;
  assign m_axil_req.ar = '0;
  assign m_axil_req.ar_valid = 1'b0;
  assign m_axil_req.r_ready = 1'b1;
  always_comb begin
    events_o            = '0;
    events_o.tail       = valid && ready;
    events_o.tail_error = m_axil_resp.b_valid && m_axil_resp.b.resp[1];
  end

endmodule
`default_nettype wire
