// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The network functions behind the bypass core, with their registers: docs/design/bypass-functions.md.
///
/// Behaviour: all frames pass the filter, from the stream and in place. Register `receive` then directs them to
/// echo, to the checker, to an external function, or discards them. Frames of echo, the generator and the external
/// function leave at stream_o.tx, one frame at a time. Each head of a frame in place gets a verdict, in order.
/// Latency: stream to external function 2 cycles; stream to echo and back 6 if the output is free; head to verdict 5.
/// Combinational paths: elsewhere_i.rx_ready to stream_o.rx_ready and place_o.head_ready.
/// Reset: discards frames in progress. All frames are discarded until software writes `receive`.
/// Requirements: tuser as in bypass_core; apart from the cycle, it is the same in all beats of a frame.
module bypass_function_set
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
#(
    /// The filter's rules; 0 to MaxRules. 0: there is no filter.
    parameter int unsigned Rules = MaxRules,
    /// The generator and the checker are included.
    parameter bit Generator = 1'b1,
    /// Register `capability` reports that a kv core precedes these functions.
    parameter bit Kv = 1'b0
) (
    input wire clk_i,
    input wire rst_i,

    input  wire bypass_axil_req_t s_axil_req,
    output bypass_axil_resp_t     s_axil_resp,

    input  wire to_function_t stream_i,
    output from_function_t    stream_o,
    input  wire to_judge_t    place_i,
    output from_judge_t       place_o,

    // Streams between these functions and an external one.
    output to_function_t        elsewhere_o,
    input  wire from_function_t elsewhere_i
);

  functions_settings_t settings;
  rules_given_t rules_given;
  rules_asked_t rules_asked;
  function_events_t events;
  check_counts_t counts;
  bin_read_t bin_read;
  logic [31:0] bin;
  logic clear, clearing;
  bypass_functions_registers #(
      .Rules    (Rules),
      .Generator(Generator),
      .Kv       (Kv)
  ) i_registers (
      .*,
      .settings_o(settings),
      .rules_i   (rules_asked),
      .rules_o   (rules_given),
      .events_i  (events),
      .counts_i  (counts),
      .bin_o     (bin_read),
      .bin_i     (bin),
      .clear_o   (clear),
      .clearing_i(clearing)
  );

  // ---- input: frames and first beats, and their destinations

  typedef logic [$bits(bypass_axis_t)-1:0] raw_t;
  logic in_valid, in_ready, in_place, in_last, next_first_q, offered_q;
  bypass_axis_t in;
  way_t way, first_way, way_q;
  stream_arbiter #(
      .Inputs (2),
      .Width  ($bits(bypass_axis_t)),
      .Packets(1'b1)
  ) i_in (
      .*,
      .s_valid  ({place_i.head.valid, stream_i.rx.valid}),
      .s_ready  ({place_o.head_ready, stream_o.rx_ready}),
      .s_payload({raw_t'(place_i.head.beat), raw_t'(stream_i.rx.beat)}),
      // A frame in place has only its first beat here.
      .s_last   ({1'b1, stream_i.rx.beat.last}),
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
  // An offered beat keeps its destination when software writes the register meanwhile.
  assign way = next_first_q && !offered_q ? first_way : way_q;
  bypass_axis_t in_whole;
  always_comb begin
    in_whole      = in;
    in_whole.last = in_last;
  end

  always_ff @(posedge clk_i) begin
    offered_q <= in_valid && !in_ready;
    if (in_valid) way_q <= way;
    if (in_valid && in_ready) next_first_q <= in_last;
    if (rst_i) begin
      next_first_q <= 1'b1;
      offered_q    <= 1'b0;
    end
  end

  // ---- the filter

  logic filtered_valid, filtered_ready, filter_event;
  logic [3:0] filter_rule;
  way_t filtered_way;
  bypass_axis_t filtered;
  if (Rules == 0) begin : gen_no_filter
    assign filtered_valid = in_valid;
    assign in_ready       = filtered_ready;
    assign filtered_way   = way;
    assign filtered       = in_whole;
    assign rules_asked    = '0;
    assign filter_event   = 1'b0;
    assign filter_rule    = '0;
    logic unused;
    assign unused = ^{rules_given, settings.filter};
  end else begin : gen_filter
    bypass_filter #(
        .Rules(Rules)
    ) i_filter (
        .*,
        .settings_i  (settings.filter),
        .rules_i     (rules_given),
        .rules_o     (rules_asked),
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
      .m_valid  ({elsewhere_o.rx.valid, to_checker, to_echo, to_nobody}),
      .m_ready  ({elsewhere_i.rx_ready, checker_ready, echo_ready, 1'b1}),
      .m_payload(sorted)
  );
  assign elsewhere_o.rx.beat = sorted;

  // ---- functions

  logic [2:0] out_valid, out_ready;  // echo, generator, elsewhere
  bypass_axis_t [2:0] out;
  bypass_axis_t echoed;
  logic echo_event;
  echo_e echo_kind;
  bypass_echo i_echo (
      .*,
      .settings_i     (settings.echo),
      .s_valid        (to_echo),
      .s_ready        (echo_ready),
      .s_way          (filtered_way),
      .s_payload      (sorted),
      .m_tx_valid     (out_valid[0]),
      .m_tx_ready     (out_ready[0]),
      .m_verdict_valid(place_o.verdict.valid),
      .m_verdict_ready(place_i.verdict_ready),
      .m_payload      (echoed),
      .event_o        (echo_event),
      .event_kind_o   (echo_kind)
  );
  assign place_o.verdict.beat = echoed;
  assign out[0] = echoed;
  assign events = '{
          echo: echo_event,
          echo_kind: echo_kind,
          filter: filter_event,
          filter_rule: filter_rule,
          discarded: to_nobody && filtered.last
      };

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
        .settings_i(settings.generator),
        .now_i     (now_q),
        .s_valid   (to_checker),
        .s_ready   (checker_ready),
        .s_payload (sorted),
        .counts_o  (counts.of_checker),
        .bin_i     (bin_read),
        .bin_o     (bin),
        .clear_i   (clear),
        .clearing_o(clearing)
    );
  end else begin : gen_no_generator
    assign out_valid[1]  = 1'b0;
    assign out[1]        = '0;
    assign checker_ready = 1'b1;
    assign counts        = '0;
    assign bin           = '0;
    assign clearing      = 1'b0;
    logic unused;
    assign unused = ^{to_checker, out_ready[1], bin_read, clear, settings.generator};
  end

  assign out_valid[2]         = elsewhere_i.tx.valid;
  assign elsewhere_o.tx_ready = out_ready[2];
  assign out[2]               = elsewhere_i.tx.beat;

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
      .m_valid  (stream_o.tx.valid),
      .m_ready  (stream_i.tx_ready),
      .m_payload(stream_o.tx.beat)
  );
  logic unused_last;
  assign unused_last = tx_last;

endmodule
`default_nettype wire
