// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A queue pair: its two rings, their doorbells, and its running state.
///
/// Behaviour: the pair starts with empty rings when it is enabled and idle, and stops when it is disabled.
/// Then each block drops this pair's frames and counts them as usual, until none is left (state_o.idle).
/// Latency: see its parts.
/// Reset: stopped.
/// Requirements: as its parts.
module bypass_pair
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    parameter queue_t Queue = '0
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // of each what is this pair's
    input  wire settings_t settings_i,
    input  wire news_t     news_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire order_t    order_i,
    output pair_state_t    state_o,

    // Tails. 0: receive, 1: transmit
    output logic   [1:0] m_valid,
    input  wire    [1:0] m_ready,
    output index_t [1:0] m_payload
);

  logic run_q, idle, begins;
  rx_ring_t rx;
  tx_ring_t tx;
  assign idle    = rx.idle && tx.idle && m_valid == '0 && !run_q;
  assign begins  = idle && settings_i.enable[Queue];
  assign state_o = '{running: run_q, begins: begins, idle: idle, rx: rx, tx: tx};
  always_ff @(posedge clk_i) begin
    run_q <= settings_i.enable[Queue] && (run_q || begins);
    if (rst_i) run_q <= 1'b0;
  end

  // Fetches of this pair's descriptors.
  logic [1:0] fetched;
  for (genvar i = 0; i < 2; i++) begin : gen_fetched
    assign fetched[i] = news_i.fetch.valid && news_i.fetch.tx == 1'(i) && news_i.fetch.pair == Queue;
  end

  // ---- receive

  gave_t  gave;
  index_t unused_told;
  bypass_rx_ring #(
      .Queue(Queue),
      .Bits (Config.rx_bits)
  ) i_rx (
      .*,
      .run_i  (run_q),
      .begin_i(begins),
      .limit_i(settings_i.rx_limit),
      .take_i (order_i.take),
      .gave_i (gave),
      .state_o(rx)
  );
  bypass_doorbell #(
      .Bits(Config.rx_bits)
  ) i_rx_bell (
      .*,
      .run_i     (run_q),
      .begin_i   (begins),
      .settings_i(settings_i.rx_bell),
      .want_i    (rx.want),
      .grows_i   (1'b0),
      .fetched_i (fetched[0]),
      .group_i   (news_i.fetch.group[Config.rx_bits-3:0]),
      .m_valid   (m_valid[0]),
      .m_ready   (m_ready[0]),
      .m_payload (m_payload[0]),
      .told_o    (unused_told),
      .gave_o    (gave)
  );

  // ---- transmit

  gave_t  unused_gave;
  index_t told;
  bypass_tx_ring #(
      .Queue(Queue),
      .Bits (Config.tx_bits)
  ) i_tx (
      .*,
      .begin_i(begins),
      .limit_i(settings_i.tx_limit),
      .post_i (order_i.post),
      .told_i (told),
      .state_o(tx)
  );
  bypass_doorbell #(
      .Bits(Config.tx_bits)
  ) i_tx_bell (
      .*,
      .run_i     (run_q),
      .begin_i   (begins),
      .settings_i(settings_i.tx_bell),
      .want_i    (tx.tail),
      .grows_i   (order_i.coming),
      .fetched_i (fetched[1]),
      .group_i   (news_i.fetch.group[Config.tx_bits-3:0]),
      .m_valid   (m_valid[1]),
      .m_ready   (m_ready[1]),
      .m_payload (m_payload[1]),
      .told_o    (told),
      .gave_o    (unused_gave)
  );

endmodule
`default_nettype wire
