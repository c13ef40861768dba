// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A queue pair: its two rings, their doorbells, and whether it runs.
///
/// Behaviour: it begins to run, with empty rings, when it is enabled and nothing of it is under way; it stops when it is not enabled any more.
/// What is under way then is dropped by the blocks that have it, which say so as always, until nothing is left (state_o.idle).
/// Latency: see its parts.
/// Reset: stopped.
/// Requirements: those of its parts.
module bypass_pair
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    parameter queue_t Queue = '0
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // of each what is this pair's
    input  wire settings_t   settings_i,
    input  wire rx_written_t rx_written_i,
    input  wire tx_written_t tx_written_i,
    input  wire fetch_t      fetch_i,
    // verilator lint_on UNUSEDSIGNAL
    output pair_state_t      state_o,
    /// It runs from the next cycle on.
    output logic             begin_o,

    output logic [3:0] accept_o,
    output logic [2:0] ended_o,
    output logic [2:0] rx_unexpected_o,
    output logic       tx_unexpected_o,

    // Received frames.
    input  wire    take_i,
    output index_t taken_o,
    output logic   has_o,
    // Slots that are free: of the reader, of the watch.
    input  wire release_t [1:0] release_i,

    // Frames to be transmitted.
    input  wire           post_i,
    input  wire tx_done_t done_i,
    output index_t        tail_o,
    output logic          room_o,
    output logic          reported_o,
    output logic          told_o,

    // Whether the NIC may write to a slot, and read it.
    input wire index_t writes_i,
    output logic may_write_o,
    input wire index_t reads_i,
    output logic may_read_o,

    // 0: receive, 1: transmit
    output logic   [1:0] m_valid,
    input  wire    [1:0] m_ready,
    output index_t [1:0] m_payload
);

  logic run_q, rx_idle, tx_idle, idle;
  assign idle    = rx_idle && tx_idle && m_valid == '0 && !run_q;
  assign begin_o = idle && settings_i.enable[Queue];
  assign state_o.running = run_q;
  assign state_o.idle    = idle;
  always_ff @(posedge clk_i) begin
    run_q <= settings_i.enable[Queue] && (run_q || begin_o);
    if (rst_i) run_q <= 1'b0;
  end

  // ---- receive

  index_t [1:0] want;
  logic gave;
  index_t gave_count, unused_told;
  logic [1:0] mine;
  for (genvar i = 0; i < 2; i++) begin : gen_release
    assign mine[i] = release_i[i].valid && release_i[i].pair == Queue;
  end
  bypass_rx_ring #(
      .Queue(Queue),
      .Bits (Config.rx_bits)
  ) i_rx (
      .*,
      .run_i          (run_q),
      .begin_i        (begin_o),
      .limit_i        (settings_i.rx_limit),
      .written_i      (rx_written_i),
      .unexpected_o   (rx_unexpected_o),
      .gave_i         (gave),
      .gave_count_i   (gave_count),
      .release_i      (mine != '0),
      .release_count_i(mine[0] ? release_i[0].slots : release_i[1].slots),
      .want_o         (want[0]),
      .given_o        (state_o.rx_given),
      .idle_o         (rx_idle)
  );
  bypass_doorbell #(
      .Bits(Config.rx_bits)
  ) i_rx_bell (
      .*,
      .run_i       (run_q),
      .begin_i     (begin_o),
      .settings_i  (settings_i.rx_bell),
      .want_i      (want[0]),
      .grows_i     (1'b0),
      .fetched_i   (fetch_i.valid && !fetch_i.tx && fetch_i.pair == Queue),
      .group_i     (fetch_i.group),
      .m_valid     (m_valid[0]),
      .m_ready     (m_ready[0]),
      .m_payload   (m_payload[0]),
      .told_o      (unused_told),
      .gave_o      (gave),
      .gave_count_o(gave_count)
  );

  // ---- transmit

  logic unused_gave;
  index_t unused_count, tx_told;
  assign tail_o = want[1];
  bypass_tx_ring #(
      .Queue(Queue),
      .Bits (Config.tx_bits)
  ) i_tx (
      .*,
      .begin_i     (begin_o),
      .limit_i     (settings_i.tx_limit),
      .done_i      (done_i.valid && done_i.pair == Queue),
      .written_i   (tx_written_i),
      .unexpected_o(tx_unexpected_o),
      .tail_o      (want[1]),
      .told_i      (tx_told),
      .given_o     (state_o.tx_given),
      .idle_o      (tx_idle)
  );
  bypass_doorbell #(
      .Bits(Config.tx_bits)
  ) i_tx_bell (
      .*,
      .run_i       (run_q),
      .begin_i     (begin_o),
      .settings_i  (settings_i.tx_bell),
      .want_i      (want[1]),
      .grows_i     (post_i),
      .fetched_i   (fetch_i.valid && fetch_i.tx && fetch_i.pair == Queue),
      .group_i     (fetch_i.group),
      .m_valid     (m_valid[1]),
      .m_ready     (m_ready[1]),
      .m_payload   (m_payload[1]),
      .told_o      (tx_told),
      .gave_o      (unused_gave),
      .gave_count_o(unused_count)
  );

endmodule
`default_nettype wire
