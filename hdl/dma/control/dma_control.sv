// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// The control part of the DMA engine: from doorbells to turns, and from
/// completed turns to status words and interrupts (docs/design/dma.md).
///
/// Behaviour: each channel has a ring of descriptors in host memory, and doorbells (s_bell) give its fill.
/// Descriptors are fetched ahead (m_read, s_completion) and cut into turns, which a direction's channels share by
/// bytes (m_turn[0]: to the card, m_turn[1]: to the host). When the data part has completed turns (s_done), the count
/// is posted to the host (m_write), with an MSI-X message if one is due. Rings are numbered {to the host, channel}.
/// Latency: doorbell to read 7 cycles; fetched descriptor to turn 5 to 6, carried one 9; last answer to status word 7.
/// Reset: registers answer after 520 cycles. flr_i: see docs/design/dma.md.
/// Requirements: as the streams (dma_pkg). Every turn and read is answered. rst_i also resets the data part.
module dma_control
  import dma_pkg::*;
  import dma_control_pkg::*;
#(
    /// Channels in each direction; 1 to 4.
    parameter int unsigned Channels = 4,
    parameter type axi_req_t = axi_pkg::axi_lite_req_t,
    parameter type axi_resp_t = axi_pkg::axi_lite_resp_t
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t s_axil_req,
    output axi_resp_t     s_axil_resp,

    // Whether the data part can move packets: see dma_turns.
    input wire stream_room_i,
    input wire stream_valid_i,
    input wire [1:0] stream_channel_i,

    input  wire function_t       function_i,
    input  wire                  flr_i,
    output logic                 flr_done_o,
    /// The function is being reset, so the data part must also stop.
    output logic                 stop_o,
    /// Free space that the data part's reads must leave: see dma_h2c_cutter.
    output logic           [7:0] reserve_o,

    `STREAM_RECEIVER(s_bell, bell_t)

    `STREAM_SENDER(m_read, read_t)

    `STREAM_RECEIVER(s_completion, completion_t)

    `STREAM_SENDER(m_write, write_t)

    output logic  [1:0] m_turn_valid,
    input  wire   [1:0] m_turn_ready,
    output turn_t [1:0] m_turn_payload,

    input  wire        [1:0] s_done_valid,
    output logic       [1:0] s_done_ready,
    input  wire done_t [1:0] s_done_payload
);

  if (Channels < 1 || Channels > MaxChannels) begin : gen_check_channels
    $fatal(1, "Channels must be 1 to 4 in %m");
  end

  localparam each_t Exist = {2{4'((1 << Channels) - 1)}};

  // A net between blocks has the name of the port that it drives.
  setting_t setting, setting_i;
  life_t life_i;
  each_t
      run_i,
      may_i,
      failed_i,
      pending_i,
      turns_bad,
      fetch_bad,
      empty,
      turns_busy,
      fetch_busy,
      teller_busy,
      at_rest_i,
      drained_i,
      failing_i;
  code_t [Rings-1:0] fetch_code, code_i;
  logic asking_i, filling_i, posted_i, may_post_i, carried_i;
  always_comb begin
    setting_i = setting;
    setting_i.ring_valid = setting.ring_valid && Exist[setting.ring];
  end
  always_ff @(posedge clk_i) begin
    may_post_i <= function_i.bus_master && !rst_i;
    may_i      <= rst_i ? '0 : run_i & ~life_i.ignore & ~failed_i & {Rings{may_post_i}};
  end
  // One cycle late: dma_life checks again while it holds all blocks.
  always_ff @(posedge clk_i) begin
    at_rest_i <= ~(turns_busy | teller_busy);
    drained_i <= ~(turns_busy | fetch_busy | teller_busy);
    if (rst_i) begin
      at_rest_i <= '1;
      drained_i <= '1;
    end
  end

  // ---- registers, and the states of rings

  logic [63:9] status_base_i;
  logic [ 7:0] pace_i;
  dma_control_registers #(
      .Channels  (Channels),
      .axi_req_t (axi_req_t),
      .axi_resp_t(axi_resp_t)
  ) i_registers (
      .*,
      .filling_o    (filling_i),
      .setting_o    (setting),
      .status_base_o(status_base_i),
      .pace_o       (pace_i),
      .idle_i       (drained_i)
  );
  dma_life i_life (
      .*,
      .run_o (run_i),
      .life_o(life_i)
  );

  // ---- doorbells, descriptors

  logic doorbell_valid, doorbell_ready;
  doorbell_t doorbell;
  dma_bells i_bells (
      .*,
      .ignore_i(life_i.ignore | ~Exist)
  );
  ring_t taken_ring_i;
  count_t taken_i;
  row_t row_i;
  carry_t carry_i;
  stored_t stored_i;
  assign s_completion_ready = 1'b1;
  dma_fetch i_fetch (
      .*,
      .taken_ring_o(taken_ring_i),
      .row_o       (row_i),
      .carry_o     (carry_i),
      .stored_o    (stored_i),
      .bad_o       (fetch_bad),
      .code_o      (fetch_code),
      .busy_o      (fetch_busy),
      .asking_o    (asking_i)
  );
  look_t look_i;
  descriptor_t store_i;
  dma_store i_store (
      .*,
      .store_o(store_i)
  );

  // ---- turns

  flight_event_t flight_i;
  answer_t answered_i;
  logic packet_room_i;
  dma_turns i_turns (
      .*,
      .look_o  (look_i),
      .taken_o (taken_i),
      .flight_o(flight_i),
      .carried_o(carried_i),
      .bad_o   (turns_bad),
      .empty_o (empty),
      .busy_o  (turns_busy)
  );

  // ---- reports: a ring fails only when all turns before the failure have been reported

  // (The failure lasts until a reset, because no turn of the ring can begin.)
  always_ff @(posedge clk_i) begin
    failing_i <= rst_i ? '0 : ~life_i.ignore & ~turns_busy & ~teller_busy & (turns_bad | (fetch_bad & empty));
  end
  for (genvar i = 0; i < int'(Rings); i++) begin : gen_code
    assign code_i[i] = turns_bad[i] ? ErrorMalformed : fetch_code[i];
  end

  each_t waiting_i, expired_i, held_i;
  ring_t threshold_ring_i;
  logic [7:0] threshold_i;
  event_t fire_i, message_i, back_i, vector_of_i;
  logic message_taken_i, post_valid, post_ready;
  logic [95:0] vector_i;
  post_t post;
  dma_teller i_teller (
      .*,
      .answered_o      (answered_i),
      .failed_o        (failed_i),
      .busy_o          (teller_busy),
      .threshold_ring_o(threshold_ring_i),
      .waiting_o       (waiting_i),
      .fire_o          (fire_i),
      .message_taken_o (message_taken_i),
      .packet_room_o   (packet_room_i)
  );
  dma_moderation i_moderation (
      .*,
      .threshold_o(threshold_i),
      .expired_o  (expired_i)
  );
  dma_msix i_msix (
      .*,
      .message_o(message_i),
      .vector_o (vector_i),
      .held_o   (held_i),
      .pending_o(pending_i)
  );
  dma_poster i_poster (
      .*,
      .flush_i    (stop_o),
      .vector_of_o(vector_of_i),
      .back_o     (back_i),
      .idle_o     (posted_i)
  );

endmodule
`default_nettype wire
