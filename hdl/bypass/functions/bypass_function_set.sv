// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The network functions behind the bypass core, and their registers: docs/bypass-functions.md.
///
/// Behaviour: all frames, of the stream (s_rx) and in place (s_head), pass the filter; then they go where register `receive` says: to echo, to the
/// checker, to m_rx, or to nobody. What echo answers, what the generator makes and what comes at s_tx leave at m_tx, a frame at a time. For each
/// beat of s_head there is a verdict, in order.
/// Latency: s_rx to m_rx 2 cycles; to m_tx by echo 6, while nothing else leaves; s_head to m_verdict 5.
/// Paths: s_rx_ready and s_head_ready from m_rx_ready.
/// Reset: forgets what is under way; nobody gets a frame until `receive` is written.
/// Requirements: tuser as bypass_core has it, the same with all beats of a frame but for the cycle.
module bypass_function_set
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
#(
    /// Of the filter; 0 to MaxRules. 0: there is no filter.
    parameter int unsigned Rules = MaxRules,
    /// Generator and checker are built in.
    parameter bit Generator = 1'b1,
    /// Register `capability` says that a kv core lies before it.
    parameter bit Kv = 1'b0
) (
    input wire clk_i,
    input wire rst_i,

    input  wire bypass_axil_req_t s_axil_req,
    output bypass_axil_resp_t     s_axil_resp,

    input  wire               s_rx_valid,
    output logic              s_rx_ready,
    input  wire bypass_axis_t s_rx_payload,

    input  wire               s_head_valid,
    output logic              s_head_ready,
    input  wire bypass_axis_t s_head_payload,

    output logic         m_verdict_valid,
    input  wire          m_verdict_ready,
    output bypass_axis_t m_verdict_payload,

    output logic         m_tx_valid,
    input  wire          m_tx_ready,
    output bypass_axis_t m_tx_payload,

    // From and to a function elsewhere.
    output logic         m_rx_valid,
    input  wire          m_rx_ready,
    output bypass_axis_t m_rx_payload,

    input  wire               s_tx_valid,
    output logic              s_tx_ready,
    input  wire bypass_axis_t s_tx_payload
);

  functions_settings_t settings;
  logic build, building, rules_taken;
  logic [7:0] rules_word;
  logic [31:0] rules_data, bin;
  logic echo_event, filter_event, discarded, bin_read, clear, clearing;
  echo_e echo_kind;
  logic [3:0] filter_rule;
  logic [8:0] bin_index;
  check_counts_t counts;
  bypass_functions_registers #(
      .Rules    (Rules),
      .Generator(Generator),
      .Kv       (Kv)
  ) i_registers (
      .*,
      .settings_o    (settings),
      .build_o       (build),
      .building_i    (building),
      .rules_word_i  (rules_word),
      .rules_taken_o (rules_taken),
      .rules_word_o  (rules_data),
      .echo_event_i  (echo_event),
      .echo_kind_i   (echo_kind),
      .filter_event_i(filter_event),
      .filter_rule_i (filter_rule),
      .discarded_i   (discarded),
      .counts_i      (counts),
      .bin_read_o    (bin_read),
      .bin_o         (bin_index),
      .bin_i         (bin),
      .clear_o       (clear),
      .clearing_i    (clearing)
  );

  // ---- in: frames and first beats, and where they are to go

  typedef logic [$bits(bypass_axis_t)-1:0] raw_t;
  logic in_valid, in_ready, in_place, in_last, next_first_q;
  bypass_axis_t in;
  way_t way, first_way, way_q;
  stream_arbiter #(
      .Inputs (2),
      .Width  ($bits(bypass_axis_t)),
      .Packets(1'b1)
  ) i_in (
      .*,
      .s_valid  ({s_head_valid, s_rx_valid}),
      .s_ready  ({s_head_ready, s_rx_ready}),
      .s_payload({raw_t'(s_head_payload), raw_t'(s_rx_payload)}),
      // Of a frame in place the first beat is all that there is.
      .s_last   ({1'b1, s_rx_payload.last}),
      .m_valid  (in_valid),
      .m_ready  (in_ready),
      .m_payload(in),
      .m_last   (in_last),
      .m_index  (in_place)
  );
  assign first_way = '{
          place: in_place,
          look: !in_place || settings.in_place,
          drop: 1'b0,
          target: in_place ? ToEcho : settings.stream
      };
  assign way = next_first_q ? first_way : way_q;
  bypass_axis_t in_whole;
  always_comb begin
    in_whole      = in;
    in_whole.last = in_last;
  end

  always_ff @(posedge clk_i) begin
    if (in_valid && in_ready) begin
      next_first_q <= in_last;
      way_q        <= way;
    end
    if (rst_i) next_first_q <= 1'b1;
  end

  // ---- the filter

  logic filtered_valid, filtered_ready;
  way_t filtered_way;
  bypass_axis_t filtered;
  if (Rules == 0) begin : gen_no_filter
    assign filtered_valid = in_valid;
    assign in_ready       = filtered_ready;
    assign filtered_way   = way;
    assign filtered       = in_whole;
    assign building       = 1'b0;
    assign rules_word     = '0;
    assign filter_event   = 1'b0;
    assign filter_rule    = '0;
    logic unused;
    assign unused = ^{build, rules_taken, rules_data, settings.filter};
  end else begin : gen_filter
    bypass_filter #(
        .Rules(Rules)
    ) i_filter (
        .*,
        .settings_i  (settings.filter),
        .build_i     (build),
        .building_o  (building),
        .word_o      (rules_word),
        .taken_i     (rules_taken),
        .word_i      (rules_data),
        .s_valid     (in_valid),
        .s_ready     (in_ready),
        .s_way       (way),
        .s_payload   (in_whole),
        .m_valid     (filtered_valid),
        .m_ready     (filtered_ready),
        .m_way       (filtered_way),
        .m_payload   (filtered),
        .event_o     (filter_event),
        .event_rule_o(filter_rule)
    );
  end

  // ---- where they go

  logic to_nobody, to_echo, to_checker, echo_ready, checker_ready;
  raw_t sorted;
  stream_demux #(
      .Outputs(4),
      .Width  ($bits(bypass_axis_t))
  ) i_sort (
      .*,
      .select_i (filtered_way.target),
      .s_valid  (filtered_valid),
      .s_ready  (filtered_ready),
      .s_payload(filtered),
      .m_valid  ({m_rx_valid, to_checker, to_echo, to_nobody}),
      .m_ready  ({m_rx_ready, checker_ready, echo_ready, 1'b1}),
      .m_payload(sorted)
  );
  assign m_rx_payload = sorted;
  assign discarded    = to_nobody && filtered.last;

  // ---- functions

  logic [2:0] out_valid, out_ready;  // echo, generator, elsewhere
  bypass_axis_t [2:0] out;
  bypass_axis_t echoed;
  bypass_echo i_echo (
      .*,
      .settings_i  (settings.echo),
      .s_valid     (to_echo),
      .s_ready     (echo_ready),
      .s_way       (filtered_way),
      .s_payload   (sorted),
      .m_tx_valid  (out_valid[0]),
      .m_tx_ready  (out_ready[0]),
      .m_payload   (echoed),
      .event_o     (echo_event),
      .event_kind_o(echo_kind)
  );
  assign m_verdict_payload = echoed;
  assign out[0]            = echoed;

  if (Generator) begin : gen_generator
    logic [31:0] now_q;
    always_ff @(posedge clk_i) begin
      now_q <= now_q + 1'b1;
      if (rst_i) now_q <= '0;
    end
    bypass_generator i_generator (
        .*,
        .settings_i (settings.generator),
        .now_i      (now_q),
        .clear_i    (clear),
        .m_valid    (out_valid[1]),
        .m_ready    (out_ready[1]),
        .m_payload  (out[1]),
        .generated_o(counts.generated),
        .behind_o   (counts.behind)
    );
    bypass_checker i_checker (
        .*,
        .settings_i  (settings.generator),
        .now_i       (now_q),
        .s_valid     (to_checker),
        .s_ready     (checker_ready),
        .s_payload   (sorted),
        .checked_o   (counts.checked),
        .foreign_o   (counts.foreign),
        .skipped_o   (counts.skipped),
        .late_o      (counts.late),
        .duplicates_o(counts.duplicates),
        .wrong_o     (counts.wrong),
        .least_o     (counts.latency_least),
        .most_o      (counts.latency_most),
        .sum_o       (counts.latency_sum),
        .bin_read_i  (bin_read),
        .bin_i       (bin_index),
        .bin_o       (bin),
        .clear_i     (clear),
        .clearing_o  (clearing)
    );
  end else begin : gen_no_generator
    assign out_valid[1]  = 1'b0;
    assign out[1]        = '0;
    assign checker_ready = 1'b1;
    assign counts        = '0;
    assign bin           = '0;
    assign clearing      = 1'b0;
    logic unused;
    assign unused = ^{to_checker, out_ready[1], bin_read, bin_index, clear, settings.generator};
  end

  assign out_valid[2] = s_tx_valid;
  assign s_tx_ready   = out_ready[2];
  assign out[2]       = s_tx_payload;

  // ---- out, a frame at a time

  logic tx_valid, tx_ready, tx_last;
  logic [1:0] unused_tx_index;
  bypass_axis_t tx;
  stream_arbiter #(
      .Inputs (3),
      .Width  ($bits(bypass_axis_t)),
      .Packets(1'b1)
  ) i_out (
      .*,
      .s_valid  (out_valid),
      .s_ready  (out_ready),
      .s_payload(out),
      .s_last   ({out[2].last, out[1].last, out[0].last}),
      .m_valid  (tx_valid),
      .m_ready  (tx_ready),
      .m_payload(tx),
      .m_last   (tx_last),
      .m_index  (unused_tx_index)
  );
  stream_register #(
      .Width($bits(bypass_axis_t))
  ) i_tx (
      .*,
      .s_valid  (tx_valid),
      .s_ready  (tx_ready),
      .s_payload(tx),
      .m_valid  (m_tx_valid),
      .m_ready  (m_tx_ready),
      .m_payload(m_tx_payload)
  );
  logic unused_last;
  assign unused_last = tx_last;

endmodule
`default_nettype wire
