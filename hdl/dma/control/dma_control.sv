// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The control part of the DMA engine: from doorbells to turns, and from answered turns to status words and interrupts (docs/dma.md).
///
/// Behaviour: each channel has a ring of descriptors in the host's memory. Doorbells (s_bell) say how far it is filled; descriptors are fetched ahead (m_read,
/// s_completion), cut into turns that the channels of a direction take by bytes (m_turn[0]: to the card, m_turn[1]: to the host), and when the data part has
/// answered these (s_done), their count is posted to the host (m_write), with an MSI-X message if there is to be one.
/// Rings are numbered {to the host, channel}.
/// Latency: doorbell to read of its descriptor 7 cycles; fetched descriptor to turn 4 to 5; doorbell with its descriptor to turn 9; last answer to status word 7.
/// Reset: 520 cycles until registers answer. flr_i: as docs/dma.md has it.
/// Requirements: those of the streams (dma_pkg). Every turn and every read is answered in the end. A reset (rst_i) reaches the data part, too.
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

    // What the data part can move of packets: see dma_turns.
    input wire stream_room_i,
    input wire stream_valid_i,
    input wire [1:0] stream_channel_i,

    input  wire function_t function_i,
    input  wire            flr_i,
    output logic           flr_done_o,
    /// The function is under reset: the data part is to stop, too.
    output logic           stop_o,

    input  wire        s_bell_valid,
    output logic       s_bell_ready,
    input  wire bell_t s_bell_payload,

    output logic  m_read_valid,
    input  wire   m_read_ready,
    output read_t m_read_payload,

    input  wire              s_completion_valid,
    output logic             s_completion_ready,
    input  wire completion_t s_completion_payload,

    output logic   m_write_valid,
    input  wire    m_write_ready,
    output write_t m_write_payload,

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

  setting_t setting, setting_here;
  each_t
      run,
      resetting,
      may_q,
      failed,
      turns_bad,
      fetch_bad,
      empty,
      turns_busy,
      fetch_busy,
      teller_busy,
      answered_q,
      drained_q,
      failing_q;
  code_t [Rings-1:0] fetch_code, code;
  logic hold, clear, asking, restart, forget, filling, idle, bus_master_q;
  ring_t clear_ring;
  always_comb begin
    setting_here = setting;
    setting_here.ring_valid = setting.ring_valid && Exist[setting.ring];
  end
  always_ff @(posedge clk_i) begin
    bus_master_q <= function_i.bus_master && !rst_i;
    may_q        <= rst_i ? '0 : run & ~resetting & ~failed & {Rings{bus_master_q}};
  end
  // A cycle late: dma_life looks again while it holds everybody.
  always_ff @(posedge clk_i) begin
    answered_q <= ~(turns_busy | teller_busy);
    drained_q  <= ~(turns_busy | fetch_busy | teller_busy);
    if (rst_i) begin
      answered_q <= '1;
      drained_q  <= '1;
    end
  end


  // ---- registers, and the lives of rings

  logic [63:9] status_base;
  logic [7:0] pace;
  each_t pending;
  dma_control_registers #(
      .Channels  (Channels),
      .axi_req_t (axi_req_t),
      .axi_resp_t(axi_resp_t)
  ) i_registers (
      .*,
      .restart_i    (restart),
      .filling_o    (filling),
      .setting_o    (setting),
      .status_base_o(status_base),
      .pace_o       (pace),
      .run_i        (run),
      .idle_i       (drained_q),
      .resetting_i  (resetting),
      .failed_i     (failed),
      .pending_i    (pending)
  );
  dma_life i_life (
      .*,
      .setting_i   (setting_here),
      .drained_i   (drained_q),
      .posted_i    (idle),
      .run_o       (run),
      .resetting_o (resetting),
      .hold_o      (hold),
      .clear_o     (clear),
      .clear_ring_o(clear_ring),
      .stop_o      (stop_o),
      .answered_i  (answered_q),
      .asking_i    (asking),
      .restart_o   (restart),
      .forget_o    (forget),
      .filling_i   (filling)
  );

  // ---- doorbells, descriptors

  logic bell_valid, bell_ready, bell_carries, carry, stored;
  ring_t bell_ring, fetch_ring, write_ring, carry_ring, stored_ring;
  count_t bell_tail, taken;
  descriptor_t bell_descriptor, carry_data, store_data;
  logic [1:0] row_write;
  logic [AheadBits-2:0] row;
  descriptor_t [1:0] row_data;
  logic [4:0] stored_count;
  dma_bells i_bells (
      .*,
      .s_valid     (s_bell_valid),
      .s_ready     (s_bell_ready),
      .s_payload   (s_bell_payload),
      .ignore_i    (resetting | ~Exist),
      .m_valid     (bell_valid),
      .m_ready     (bell_ready),
      .m_ring      (bell_ring),
      .m_tail      (bell_tail),
      .m_carries   (bell_carries),
      .m_descriptor(bell_descriptor)
  );
  assign s_completion_ready = 1'b1;
  dma_fetch i_fetch (
      .*,
      .setting_i        (setting_here),
      .may_i            (may_q),
      .max_read_i       (function_i.max_read),
      .hold_i           (hold),
      .clear_i          (clear),
      .clear_ring_i     (clear_ring),
      .ignore_i         (resetting),
      .s_bell_valid     (bell_valid),
      .s_bell_ready     (bell_ready),
      .s_bell_ring      (bell_ring),
      .s_bell_tail      (bell_tail),
      .s_bell_carries   (bell_carries),
      .s_bell_descriptor(bell_descriptor),
      .ring_o           (fetch_ring),
      .taken_i          (taken),
      .write_o          (row_write),
      .write_ring_o     (write_ring),
      .write_row_o      (row),
      .write_data_o     (row_data),
      .carry_o          (carry),
      .carry_ring_o     (carry_ring),
      .carry_data_o     (carry_data),
      .stored_o         (stored),
      .stored_ring_o    (stored_ring),
      .stored_count_o   (stored_count),
      .bad_o            (fetch_bad),
      .code_o           (fetch_code),
      .busy_o           (fetch_busy),
      .asking_o         (asking),
      .forget_i         (forget)
  );
  ring_t  store_ring;
  ahead_t store_index;
  logic   store_carried;
  dma_store i_store (
      .*,
      .write_i       (row_write),
      .write_ring_i  (write_ring),
      .write_row_i   (row),
      .write_data_i  (row_data),
      .carry_i       (carry),
      .carry_ring_i  (carry_ring),
      .carry_data_i  (carry_data),
      .read_ring_i   (store_ring),
      .read_index_i  (store_index),
      .read_carried_i(store_carried),
      .read_o        (store_data)
  );

  // ---- turns

  logic flight, answered, answered_packet, packet_room;
  ring_t flight_ring, answered_ring;
  flight_t flight_index;
  flight_info_t flight_info;
  dma_turns i_turns (
      .*,
      .may_i            (may_q),
      .hold_i           (hold),
      .clear_i          (clear),
      .clear_ring_i     (clear_ring),
      .stored_i         (stored),
      .stored_ring_i    (stored_ring),
      .stored_count_i   (stored_count),
      .carry_i          (carry),
      .carry_ring_i     (carry_ring),
      .store_ring_o     (store_ring),
      .store_index_o    (store_index),
      .store_carried_o  (store_carried),
      .store_i          (store_data),
      .taken_ring_i     (fetch_ring),
      .taken_o          (taken),
      .flight_o         (flight),
      .flight_ring_o    (flight_ring),
      .flight_index_o   (flight_index),
      .flight_info_o    (flight_info),
      .answered_i       (answered),
      .answered_ring_i  (answered_ring),
      .answered_packet_i(answered_packet),
      .packet_room_i    (packet_room),
      .bad_o            (turns_bad),
      .empty_o          (empty),
      .busy_o           (turns_busy)
  );

  // ---- what is told: a ring fails when all that is before the failure was told

  // (and then it does so until a reset: nothing of it can begin).
  always_ff @(posedge clk_i) begin
    failing_q <= rst_i ? '0 : ~resetting & ~turns_busy & ~teller_busy & (turns_bad | (fetch_bad & empty));
  end
  for (genvar i = 0; i < int'(Rings); i++) begin : gen_code
    assign code[i] = turns_bad[i] ? ErrorMalformed : fetch_code[i];
  end

  each_t waiting, expired, held;
  ring_t threshold_ring, fire_ring, message_ring, vector, back_ring;
  logic [7:0] threshold;
  logic fire, message, message_taken, back, post_valid, post_ready;
  logic [63:0] vector_address;
  logic [31:0] vector_data;
  post_t post;
  dma_teller i_teller (
      .*,
      .hold_i           (hold),
      .clear_i          (clear),
      .clear_ring_i     (clear_ring),
      .ignore_i         (resetting),
      .may_post_i       (bus_master_q),
      .pace_i           (pace),
      .flight_i         (flight),
      .flight_ring_i    (flight_ring),
      .flight_index_i   (flight_index),
      .flight_info_i    (flight_info),
      .answered_o       (answered),
      .answered_ring_o  (answered_ring),
      .answered_packet_o(answered_packet),
      .failing_i        (failing_q),
      .code_i           (code),
      .failed_o         (failed),
      .busy_o           (teller_busy),
      .threshold_ring_o (threshold_ring),
      .threshold_i      (threshold),
      .waiting_o        (waiting),
      .expired_i        (expired),
      .fire_o           (fire),
      .fire_ring_o      (fire_ring),
      .message_i        (message),
      .message_ring_i   (message_ring),
      .message_taken_o  (message_taken),
      .packet_room_o    (packet_room),
      .m_valid          (post_valid),
      .m_ready          (post_ready),
      .m_payload        (post)
  );
  dma_moderation i_moderation (
      .*,
      .setting_i       (setting_here),
      .threshold_ring_i(threshold_ring),
      .threshold_o     (threshold),
      .waiting_i       (waiting),
      .expired_o       (expired)
  );
  dma_msix i_msix (
      .*,
      .setting_i      (setting),
      .enable_i       (function_i.msix_enable),
      .mask_i         (function_i.msix_mask),
      .clear_i        (clear),
      .clear_ring_i   (clear_ring),
      .fire_i         (fire),
      .fire_ring_i    (fire_ring),
      .back_i         (back),
      .back_ring_i    (back_ring),
      .message_o      (message),
      .message_ring_o (message_ring),
      .message_taken_i(message_taken),
      .ring_i         (vector),
      .address_o      (vector_address),
      .data_o         (vector_data),
      .held_o         (held),
      .pending_o      (pending)
  );
  dma_poster i_poster (
      .*,
      .setting_i       (setting_here),
      .status_base_i   (status_base),
      .may_post_i      (bus_master_q),
      .flush_i         (stop_o),
      .s_valid         (post_valid),
      .s_ready         (post_ready),
      .s_payload       (post),
      .vector_o        (vector),
      .vector_address_i(vector_address),
      .vector_data_i   (vector_data),
      .held_i          (held),
      .back_o          (back),
      .back_ring_o     (back_ring),
      .m_valid         (m_write_valid),
      .m_ready         (m_write_ready),
      .m_payload       (m_write_payload),
      .idle_o          (idle)
  );

endmodule
`default_nettype wire
