// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "dma.svh"
`include "stream.svh"

/// The data part of the DMA engine: it moves the bytes of turns in both directions.
///
/// Behaviour: contains dma_h2c, dma_c2h and dma_requester; docs/design/dma-data.md follows a
/// byte. The AXI port's write channels belong to dma_h2c, its read channels to dma_c2h. The
/// control part shares the requester for descriptors and status words. stop_i resets the
/// function: all turns end with ErrorReset, reads of both clients are discarded, and requests in
/// flight are dead. It lasts until stop_i is low and idle_o is high. Offered writes continue.
/// Reset: discards everything. Both sides of AXI must be reset, and the host's side must send no older completion.
/// Requirements: no valid is high during reset.
module dma_data
  import dma_pkg::*;
#(
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Parameters of dma_requester and dma_h2c.
    parameter int unsigned Tags = 128,
    parameter int unsigned FetchTags = Tags,
    parameter int unsigned H2cLines = 512,
    parameter int unsigned C2hLines = 512,
    parameter int unsigned CompletionLines = 1024,
    parameter int unsigned TickBits = 16,
    parameter int unsigned StatusBytes = 32,
    parameter bit Stream = 1'b1
) (
    input wire clk_i,
    input wire rst_i,
    input wire stop_i,

    /// 128 bytes << x.
    input wire [2:0] mrrs_i,
    input wire [2:0] mps_i,
    /// In ticks of 2^TickBits cycles; 0: reads never time out.
    input wire [6:0] timeout_i,
    /// See dma_h2c_cutter.
    input wire [7:0] reserve_i,

    `STREAM_RECEIVER(s_h2c, turn_t)
    `STREAM_SENDER(m_h2c_done, done_t)

    `STREAM_RECEIVER(s_c2h, turn_t)
    `STREAM_SENDER(m_c2h_done, done_t)

    // Descriptors, and status words.
    `STREAM_RECEIVER(s_fetch, read_t)
    `STREAM_SENDER(m_fetched, completion_t)
    `STREAM_RECEIVER(s_status, write_t)

    `DMA_HOST_PORTS
    // The card.
    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp,
    `DMA_STREAM_PORTS

    /// The stream has room for a turn; and the channel of the next packet.
    output logic       h2c_stream_room_o,
    output logic       c2h_stream_valid_o,
    output logic [1:0] c2h_stream_channel_o,
    /// Pulses: a completion without a request; a request without a completion.
    output logic       unexpected_o,
    output logic       timed_out_o,
    /// All turns have been answered.
    output logic       idle_o
);

  logic stop, stop_q, h2c_idle, c2h_idle, unused_requester_idle;
  assign stop   = stop_i || stop_q;
  assign idle_o = h2c_idle && c2h_idle;
  always_ff @(posedge clk_i) begin
    stop_q <= stop_i || (stop_q && !idle_o);
    if (rst_i) stop_q <= 1'b0;
  end

  logic read_valid, read_ready, completion_valid, completion_ready, write_valid, write_ready;
  // A completion between the requester and its client. A stop discards it, like later completions.
  logic [1:0] told_valid;
  logic told_room, came_valid, came_ready, of_fetch;
  completion_t told;
  read_t read;
  write_t write;
  completion_t completion;
  axi_req_t h2c_req, c2h_req;

  dma_h2c #(
      .axi_req_t(axi_req_t),
      .axi_resp_t(axi_resp_t),
      .Tags(Tags),
      .Lines(H2cLines),
      .Stream(Stream)
  ) i_h2c (
      .*,
      .stop_i(stop),
      `STREAM_PORTS(s_turn, s_h2c_valid, s_h2c_ready, s_h2c_payload),
      `STREAM_PORTS(m_done, m_h2c_done_valid, m_h2c_done_ready, m_h2c_done_payload),
      `STREAM_PORTS(m_read, read_valid, read_ready, read),
      `STREAM_PORTS(s_completion, completion_valid, completion_ready, completion),
      .m_axi_req(h2c_req),
      .stream_room_o(h2c_stream_room_o),
      .idle_o(h2c_idle)
  );

  dma_c2h #(
      .axi_req_t(axi_req_t),
      .axi_resp_t(axi_resp_t),
      .Lines(C2hLines),
      .Stream(Stream)
  ) i_c2h (
      .*,
      .stop_i(stop),
      `STREAM_PORTS(s_turn, s_c2h_valid, s_c2h_ready, s_c2h_payload),
      `STREAM_PORTS(m_done, m_c2h_done_valid, m_c2h_done_ready, m_c2h_done_payload),
      .m_axi_req(c2h_req),
      `STREAM_PORTS(m_write, write_valid, write_ready, write),
      .stream_valid_o(c2h_stream_valid_o),
      .stream_channel_o(c2h_stream_channel_o),
      .idle_o(c2h_idle)
  );

  always_comb begin
    m_axi_req          = h2c_req;
    m_axi_req.ar       = c2h_req.ar;
    m_axi_req.ar_valid = c2h_req.ar_valid;
    m_axi_req.r_ready  = c2h_req.r_ready;
  end
  logic unused_writing;
  assign unused_writing = ^{c2h_req.aw, c2h_req.aw_valid, c2h_req.w, c2h_req.w_valid, c2h_req.b_ready};

  dma_requester #(
      .Tags(Tags),
      .FetchTags(FetchTags),
      .CompletionLines(CompletionLines),
      .TickBits(TickBits),
      .StatusBytes(StatusBytes)
  ) i_requester (
      .*,
      .stop_i(stop),
      `STREAM_PORTS(s_read, {s_fetch_valid, read_valid}, {s_fetch_ready, read_ready}, {s_fetch_payload, read}),
      `STREAM_PORTS(m_completion, told_valid, told_room, told),
      `STREAM_PORTS(s_write, {s_status_valid, write_valid}, {s_status_ready, write_ready}, {s_status_payload, write}),
      .idle_o(unused_requester_idle)
  );

  stream_register #(
      .Width(1 + $bits(completion_t))
  ) i_completion (
      .*,
      .rst_i(rst_i || stop),
      `STREAM_PORTS(s, told_valid != '0, told_room, {told_valid[1], told}),
      `STREAM_PORTS(m, came_valid, came_ready, {of_fetch, completion})
  );
  assign completion_valid  = came_valid && !of_fetch && !stop;
  assign m_fetched_valid   = came_valid && of_fetch && !stop;
  assign came_ready        = of_fetch ? m_fetched_ready : completion_ready;
  assign m_fetched_payload = completion;

endmodule
`default_nettype wire
