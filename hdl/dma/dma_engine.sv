// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "dma.svh"
`include "stream.svh"

/// The DMA engine: it executes descriptors from host memory, and moves bytes between
/// host memory and the card's memory or packet streams (docs/design/dma.md).
///
/// Behaviour: dma_control makes turns of descriptors, and dma_data moves their bytes. They share one requester.
/// Latency: see docs/design/dma.md. This module adds a cycle to each turn and to each answer.
/// Reset: registers answer after 520 cycles. flr_i: turns end with ErrorReset; flr_done_o follows the last old post.
/// Requirements: as the two parts.
module dma_engine
  import dma_pkg::*;
  import dma_control_pkg::*;
#(
    /// Channels in each direction; 1 to 4.
    parameter int unsigned Channels = 4,
    /// Types of the port to the card's memory: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// See dma_data.
    parameter int unsigned Tags = 128,
    parameter int unsigned H2cLines = 512,
    parameter int unsigned C2hLines = 512,
    parameter int unsigned CompletionLines = 1024,
    parameter int unsigned TickBits = 16,
    parameter bit Stream = 1'b1
) (
    input wire clk_i,
    input wire rst_i,
    `DMA_FUNCTION_PORTS
    `DMA_HOST_PORTS
    `DMA_STREAM_PORTS

    // The card's memory.
    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp
);

  // Signals between the parts have dma_data's names. The streams of turns and of answers have registers, which cut all paths.
  logic s_fetch_valid, s_fetch_ready, m_fetched_valid, m_fetched_ready, s_status_valid, s_status_ready;
  read_t s_fetch_payload;
  completion_t m_fetched_payload;
  write_t s_status_payload;
  logic s_h2c_valid, s_h2c_ready, s_c2h_valid, s_c2h_ready;
  turn_t s_h2c_payload, s_c2h_payload;
  logic m_h2c_done_valid, m_h2c_done_ready, m_c2h_done_valid, m_c2h_done_ready;
  done_t m_h2c_done_payload, m_c2h_done_payload;
  logic [1:0]
      turn_valid, turn_ready, turn_out_valid, turn_out_ready, done_valid, done_ready, done_in_valid, done_in_ready;
  turn_t [1:0] turn, turn_out;
  done_t [1:0] done, done_in;
  logic stop_i, h2c_stream_room_o, c2h_stream_valid_o, control_done, idle_o;
  logic [1:0] c2h_stream_channel_o;
  logic [7:0] reserve_i;

  logic [2:0] mrrs_i;
  assign mrrs_i = function_i.max_read;
  dma_control #(
      .Channels(Channels)
  ) i_control (
      .*,
      .stream_room_i   (h2c_stream_room_o),
      .stream_valid_i  (c2h_stream_valid_o),
      .stream_channel_i(c2h_stream_channel_o),
      .flr_done_o      (control_done),
      .stop_o          (stop_i),
      .reserve_o       (reserve_i),
      `STREAM_PORTS(m_read, s_fetch_valid, s_fetch_ready, s_fetch_payload),
      `STREAM_PORTS(s_completion, m_fetched_valid, m_fetched_ready, m_fetched_payload),
      `STREAM_PORTS(m_write, s_status_valid, s_status_ready, s_status_payload),
      `STREAM_PORTS(m_turn, turn_valid, turn_ready, turn),
      `STREAM_PORTS(s_done, done_valid, done_ready, done)
  );
  assign flr_done_o = control_done && idle_o;

  // In each direction, turns and answers come at most every other cycle.
  for (genvar i = 0; i < 2; i++) begin : gen_side
    stream_register #(
        .Width($bits(turn_t)),
        .Half (1'b1)
    ) i_turn (
        .*,
        `STREAM_PORTS(s, turn_valid[i], turn_ready[i], turn[i]),
        `STREAM_PORTS(m, turn_out_valid[i], turn_out_ready[i], turn_out[i])
    );
    stream_register #(
        .Width($bits(done_t)),
        .Half (1'b1)
    ) i_done (
        .*,
        `STREAM_PORTS(s, done_in_valid[i], done_in_ready[i], done_in[i]),
        `STREAM_PORTS(m, done_valid[i], done_ready[i], done[i])
    );
  end
  assign {s_c2h_valid, s_h2c_valid} = turn_out_valid;
  assign {s_c2h_payload, s_h2c_payload} = turn_out;
  assign turn_out_ready = {s_c2h_ready, s_h2c_ready};
  assign done_in_valid = {m_c2h_done_valid, m_h2c_done_valid};
  assign done_in = {m_c2h_done_payload, m_h2c_done_payload};
  assign {m_c2h_done_ready, m_h2c_done_ready} = done_in_ready;

  dma_data #(
      .axi_req_t      (axi_req_t),
      .axi_resp_t     (axi_resp_t),
      .Tags           (Tags),
      .FetchTags      (dma_control_pkg::FetchTags),
      .H2cLines       (H2cLines),
      .C2hLines       (C2hLines),
      .CompletionLines(CompletionLines),
      .TickBits       (TickBits),
      .StatusBytes    (16),
      .Stream         (Stream)
  ) i_data (
      .*
  );

endmodule
`default_nettype wire
