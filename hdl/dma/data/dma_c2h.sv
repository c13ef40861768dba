// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "stream.svh"

/// Executes turns from the card to host memory. The data come from AXI or from packets of a stream.
///
/// Behaviour: dma_c2h_reader fetches ahead into a ring of lines; dma_c2h_writer empties the ring by
/// posted writes. Turns are answered in order. stream_valid_o and stream_channel_o show whose packet is
/// next. Offer a stream turn only for that channel: otherwise it waits, and blocks the turns behind it.
/// stop_i: turns end with ErrorReset; a started write ends, and no other starts. It stays until idle_o.
/// Latency: turn to its address 3 cycles; a write's last byte at R to its first beat 4.
/// Reset: discards everything, so both sides of the bus must be reset.
/// Requirements: no valid is high during reset.
module dma_c2h
  import dma_pkg::*, dma_data_pkg::*;
#(
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Lines of 64 bytes for AXI reads in flight; a power of two, at least 128.
    parameter int unsigned Lines = 512,
    /// Whether there is a stream. It costs a multiplexer of 512 bits.
    parameter bit Stream = 1'b1
) (
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,
    input wire [2:0] mps_i,

    `STREAM_RECEIVER(s_turn, turn_t)
    `STREAM_SENDER(m_done, done_t)

    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp,

    `STREAM_RECEIVER(s_axis, dma_axis_t)

    `STREAM_SENDER(m_write, write_t)

    output logic       stream_valid_o,
    output logic [1:0] stream_channel_o,
    output logic       idle_o
);

  localparam int unsigned LineBits = $clog2(Lines);

  logic free, told_valid, told_ready, bad, stream_busy;
  logic [LineBits:0] arrived;
  logic [5:0] turn;
  turn_t told;
  bank_write_t write;
  bank_read_t read;
  bank_data_t read_data;

  dma_c2h_reader #(
      .axi_req_t(axi_req_t),
      .axi_resp_t(axi_resp_t),
      .Lines(Lines),
      .Stream(Stream)
  ) i_reader (
      .*,
      `STREAM_PORTS(s, s_turn_valid, s_turn_ready, s_turn_payload),
      .write_o(write),
      .free_i(free),
      `STREAM_PORTS(m, told_valid, told_ready, told),
      .arrived_o(arrived),
      .turn_i(turn),
      .bad_o(bad),
      .busy_o(stream_busy)
  );

  dma_banks #(
      .Lines(Lines)
  ) i_ring (
      .*,
      .write_i(write),
      .read_i (read),
      .read_o (read_data)
  );

  dma_c2h_writer #(
      .Lines(Lines)
  ) i_writer (
      .*,
      `STREAM_PORTS(s, told_valid, told_ready, told),
      .arrived_i(arrived),
      .turn_o(turn),
      .bad_i(bad),
      .read_o(read),
      .read_i(read_data),
      .free_o(free),
      `STREAM_PORTS(m, m_write_valid, m_write_ready, m_write_payload)
  );

  // Turns that were accepted and are not answered. A stream turn is accepted when it ends.
  logic [7:0] turns_q;
  assign idle_o = turns_q == '0 && !stream_busy;
  always_ff @(posedge clk_i) begin
    turns_q <= turns_q + 8'(s_turn_valid && s_turn_ready) - 8'(m_done_valid && m_done_ready);
    if (rst_i) turns_q <= '0;
  end

endmodule
`default_nettype wire
