// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The DMA engine: descriptors in host memory, bytes between host memory and the card's memory or packet streams (docs/dma.md).
///
/// Behaviour: dma_control, which reads descriptors and makes turns of them, and dma_data, which moves the bytes of turns; they share one requester.
/// Latency: docs/dma.md; nothing is added here.
/// Reset: 520 cycles until registers answer. flr_i: all turns end with ErrorReset; flr_done_o when none is under way and nothing of before is posted.
/// Requirements: those of the two parts.
module dma_engine
  import dma_pkg::*;
  import dma_control_pkg::*;
#(
    /// Channels in each direction; 1 to 4.
    parameter int unsigned Channels = 4,
    /// Of the port to the card's memory: see axi.svh.
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

    input  wire axi_pkg::axi_lite_req_t s_axil_req,
    output axi_pkg::axi_lite_resp_t     s_axil_resp,

    input  wire function_t       function_i,
    /// Bytes of a write: 128 << x.
    input  wire            [2:0] mps_i,
    /// Until a read has failed, in ticks of 2^TickBits cycles; 0: never.
    input  wire            [6:0] timeout_i,
    input  wire                  flr_i,
    output logic                 flr_done_o,

    input  wire        s_bell_valid,
    output logic       s_bell_ready,
    input  wire bell_t s_bell_payload,

    // The host.
    output logic             m_read_valid,
    input  wire              m_read_ready,
    output read_t            m_read_payload,
    input  wire              s_completion_valid,
    output logic             s_completion_ready,
    input  wire completion_t s_completion_payload,
    output logic             m_write_valid,
    input  wire              m_write_ready,
    output write_t           m_write_payload,

    // The card.
    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp,
    output logic           m_axis_valid,
    input  wire            m_axis_ready,
    output dma_axis_t      m_axis_payload,
    input  wire            s_axis_valid,
    output logic           s_axis_ready,
    input  wire dma_axis_t s_axis_payload,

    /// Pulses: a completion of no request; a request that got none.
    output logic unexpected_o,
    output logic timed_out_o
);

  logic fetch_valid, fetch_ready, fetched_valid, fetched_ready, status_valid, status_ready;
  read_t fetch;
  completion_t fetched;
  write_t status;
  logic [1:0] turn_valid, turn_ready, done_valid, done_ready;
  turn_t [1:0] turn;
  done_t [1:0] done;
  logic stop, stream_room, stream_valid, control_done, data_idle;
  logic [1:0] stream_channel;

  dma_control #(
      .Channels  (Channels),
      .axi_req_t (axi_pkg::axi_lite_req_t),
      .axi_resp_t(axi_pkg::axi_lite_resp_t)
  ) i_control (
      .*,
      .stream_room_i       (stream_room),
      .stream_valid_i      (stream_valid),
      .stream_channel_i    (stream_channel),
      .flr_done_o          (control_done),
      .stop_o              (stop),
      .m_read_valid        (fetch_valid),
      .m_read_ready        (fetch_ready),
      .m_read_payload      (fetch),
      .s_completion_valid  (fetched_valid),
      .s_completion_ready  (fetched_ready),
      .s_completion_payload(fetched),
      .m_write_valid       (status_valid),
      .m_write_ready       (status_ready),
      .m_write_payload     (status),
      .m_turn_valid        (turn_valid),
      .m_turn_ready        (turn_ready),
      .m_turn_payload      (turn),
      .s_done_valid        (done_valid),
      .s_done_ready        (done_ready),
      .s_done_payload      (done)
  );
  assign flr_done_o = control_done && data_idle;

  dma_data #(
      .axi_req_t      (axi_req_t),
      .axi_resp_t     (axi_resp_t),
      .Tags           (Tags),
      .H2cLines       (H2cLines),
      .C2hLines       (C2hLines),
      .CompletionLines(CompletionLines),
      .TickBits       (TickBits),
      .Stream         (Stream)
  ) i_data (
      .*,
      .stop_i              (stop),
      .mrrs_i              (function_i.max_read),
      .s_h2c_valid         (turn_valid[0]),
      .s_h2c_ready         (turn_ready[0]),
      .s_h2c_payload       (turn[0]),
      .m_h2c_done_valid    (done_valid[0]),
      .m_h2c_done_ready    (done_ready[0]),
      .m_h2c_done_payload  (done[0]),
      .s_c2h_valid         (turn_valid[1]),
      .s_c2h_ready         (turn_ready[1]),
      .s_c2h_payload       (turn[1]),
      .m_c2h_done_valid    (done_valid[1]),
      .m_c2h_done_ready    (done_ready[1]),
      .m_c2h_done_payload  (done[1]),
      .s_fetch_valid       (fetch_valid),
      .s_fetch_ready       (fetch_ready),
      .s_fetch_payload     (fetch),
      .m_fetched_valid     (fetched_valid),
      .m_fetched_ready     (fetched_ready),
      .m_fetched_payload   (fetched),
      .s_status_valid      (status_valid),
      .s_status_ready      (status_ready),
      .s_status_payload    (status),
      .h2c_stream_room_o   (stream_room),
      .c2h_stream_valid_o  (stream_valid),
      .c2h_stream_channel_o(stream_channel),
      .idle_o              (data_idle)
  );

endmodule
`default_nettype wire
