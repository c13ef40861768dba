// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The AXI4-Lite registers of the functions: docs/reference/bypass-functions-registers.md.
///
/// Behaviour: block RAM keeps written values for reading; flip-flops also keep those that functions need. The
/// filter reads its rules from the same RAM between accesses. A write of a partial word changes nothing (SLVERR).
/// Latency: address (and data) to response 5 cycles, plus the wait while the file is filled or counters are cleared.
/// Reset: all registers have the page's reset values within 515 cycles; settings_o has them at once.
/// Requirements: a counter's value (bin_i) follows its number by one cycle.
module bypass_functions_registers
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
  import bypass_functions_registers_pkg::*;
#(
    /// Rules of the filter; 0: there is no filter.
    parameter int unsigned Rules = MaxRules,
    parameter bit Generator = 1'b1,
    parameter bit Kv = 1'b0
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // upper bits of addresses
    input  wire bypass_axil_req_t s_axil_req,
    // verilator lint_on UNUSEDSIGNAL
    output bypass_axil_resp_t     s_axil_resp,

    output functions_settings_t settings_o,

    // The filter's rules.
    input  wire rules_asked_t rules_i,
    output rules_given_t      rules_o,

    input  wire function_events_t        events_i,
    input  wire check_counts_t           counts_i,
    output bin_read_t                    bin_o,
    input  wire                   [31:0] bin_i,
    output logic                         clear_o,
    input  wire                          clearing_i
);

  localparam bit CountersMoved = EchoArpOffset != 12'h100 || AsTheyAreOffset != 12'h11C || FilterHitsOffset != 12'h120
      || FilterMissedOffset != 12'h140 || GeneratedOffset != 12'h180 || LatencySumOffset != 12'h1A8;
  localparam bit FilterMoved = FilterMatchOffset != 12'h400 || FilterMaskOffset != 12'h600;
  localparam bit RulesChanged = FilterHitsCount != MaxRules || FilterRuleCount != MaxRules;
  if (CountersMoved || FilterMoved || RulesChanged || LatencyBinsOffset != 12'h800) begin : gen_check_layout
    $fatal(1, "registers have moved: look at the words in %m");
  end

  // ---- an access

  // verilator lint_off UNUSEDSIGNAL  // the lowest bits of the address
  register_access_t access;
  // verilator lint_on UNUSEDSIGNAL
  register_write_t  written;
  register_fill_t   fill;
  logic clearing, starts, kept, is_bin, is_bin_q;
  word_t word, word_q;
  logic [31:0] data_q, filed, read_data;
  assign starts = access.starts;
  assign is_bin = access.address[11];
  assign word   = access.address[10:2];
  assign kept   = written.valid;
  assign word_q = written.word;
  assign data_q = written.data;
  always_ff @(posedge clk_i) is_bin_q <= is_bin;

  localparam capability_t Capability = '{reserved_6: '0, kv: Kv, generator: Generator, rules: 4'(Rules)};
  register_word_t about;
  assign about = '{
          writable: !is_bin && is_written(word),
          bits: bits_of(word),
          reset: fill.word == CapabilityWord ? Capability : reset_of(fill.word)
      };
  bypass_register_file i_file (
      .*,
      .filed_o    (filed),
      .busy_i     (clearing),
      .read_data_i(read_data),
      .other_i    ({1'b1, rules_i.word})
  );
  logic build_q;
  assign rules_o = '{build: build_q, taken: starts, word: filed};

  // ---- counters

  logic [31:0] echo_count, filter_count, discarded_q;
  logic echo_clearing, filter_clearing;
  counter_ram #(
      .Counters(8)
  ) i_echo_counters (
      .*,
      .add_i       (events_i.echo),
      .index_i     (events_i.echo_kind),
      .amount_i    (1'b1),
      .read_i      (starts),
      .read_index_i(word[2:0]),
      .read_data_o (echo_count),
      .clear_i     (clear_o),
      .clearing_o  (echo_clearing)
  );
  // The counter after the last rule's is filter_missed.
  counter_ram #(
      .Counters(16)
  ) i_filter_counters (
      .*,
      .add_i       (events_i.filter),
      .index_i     (events_i.filter_rule),
      .amount_i    (1'b1),
      .read_i      (starts),
      .read_index_i({!word[3], word[2:0]}),
      .read_data_o (filter_count),
      .clear_i     (clear_o),
      .clearing_o  (filter_clearing)
  );
  assign clearing = echo_clearing || filter_clearing || clearing_i || clear_o;
  always_ff @(posedge clk_i) begin
    discarded_q <= discarded_q + 32'(events_i.discarded);
    if (rst_i || clear_o) discarded_q <= '0;
  end

  // ---- reads

  filter_state_t filter_state;
  logic [31:0] sum_q;
  assign filter_state = '{reserved_1: '0, building: rules_i.building || fill.valid};
  assign bin_o        = '{read: starts, bin: word};
  always_comb begin
    read_data = filed;
    if (word_q >= EchoArpWord && word_q <= AsTheyAreWord) read_data = echo_count;
    if (word_q >= FilterHitsWord && word_q <= FilterMissedWord) read_data = filter_count;
    case (word_q)
      FilterStateWord: read_data = filter_state;
      DiscardedWord: read_data = discarded_q;
      GeneratedWord: read_data = counts_i.generated;
      GeneratorBehindWord: read_data = counts_i.behind;
      CheckedWord: read_data = counts_i.of_checker.checked;
      CheckForeignWord: read_data = counts_i.of_checker.foreign;
      CheckSkippedWord: read_data = counts_i.of_checker.skipped;
      CheckLateWord: read_data = counts_i.of_checker.late;
      CheckDuplicatesWord: read_data = counts_i.of_checker.duplicates;
      CheckWrongWord: read_data = counts_i.of_checker.wrong;
      LatencyLeastWord: read_data = counts_i.of_checker.latency_least;
      LatencyMostWord: read_data = counts_i.of_checker.latency_most;
      LatencySumWord: read_data = counts_i.of_checker.latency_sum[31:0];
      LatencySumWord + 9'd1: read_data = sum_q;
      default: ;
    endcase
    if (is_bin_q) read_data = bin_i;
  end
  always_ff @(posedge clk_i) begin
    if (access.ends && access.read && !is_bin_q && word_q == LatencySumWord)
      sum_q <= counts_i.of_checker.latency_sum[63:32];
  end

  // ---- writes

  control_t control;
  logic acts;
  assign control = control_t'(access.data);
  assign acts    = starts && access.write && !is_bin && word == ControlWord;
  always_ff @(posedge clk_i) begin
    clear_o <= acts && control.clear_counters;
    // The table is also built when the file has received its reset values.
    build_q <= (acts && control.build_filter) || (fill.valid && fill.word == '1);
    if (rst_i) begin
      clear_o <= 1'b0;
      build_q <= 1'b0;
    end
  end
  logic unused_control;
  assign unused_control = ^control.reserved_2;

  // verilator lint_off UNUSEDSIGNAL  // reserved bits
  receive_t receive;
  echo_control_t echo_control;
  filter_rule_t filter_rule;
  generator_t generator;
  // verilator lint_on UNUSEDSIGNAL
  assign receive      = receive_t'(data_q);
  assign echo_control = echo_control_t'(data_q);
  assign filter_rule  = filter_rule_t'(data_q);
  assign generator    = generator_t'(data_q);

  always_ff @(posedge clk_i) begin
    if (kept) begin
      case (word_q)
        ReceiveWord: begin
          settings_o.stream   <= target_e'(receive.stream);
          settings_o.in_place <= receive.in_place;
        end
        EchoMacLowWord:        settings_o.echo.mac[31:0] <= data_q;
        EchoMacHighWord:       settings_o.echo.mac[47:32] <= data_q[15:0];
        EchoIpWord:            settings_o.echo.ip <= data_q;
        EchoControlWord: begin
          settings_o.echo.arp      <= echo_control.arp;
          settings_o.echo.icmp     <= echo_control.icmp;
          settings_o.echo.udp      <= echo_control.udp;
          settings_o.echo.udp_any  <= echo_control.udp_any;
          settings_o.echo.reflect  <= echo_control.reflect;
          settings_o.echo.udp_port <= echo_control.udp_port;
        end
        FilterDefaultWord:     settings_o.filter.drop_default <= data_q[0];
        GeneratorWord: begin
          settings_o.generator.enable <= generator.enable;
          settings_o.generator.pair   <= generator.pair;
        end
        GeneratorBytesWord:    settings_o.generator.bytes <= data_q[13:0];
        GeneratorIntervalWord: settings_o.generator.interval <= data_q;
        GeneratorCountWord:    settings_o.generator.count <= data_q;
        GeneratorRunWord:      settings_o.generator.run <= data_q[15:0];
        HistogramWord:         settings_o.generator.shift <= data_q[4:0];
        default:               ;
      endcase
      for (int i = 0; i < int'(MaxRules); i++) begin
        if (word_q == FilterRuleWord + 9'(i)) begin
          settings_o.filter.enable[i] <= filter_rule.enable;
          settings_o.filter.drop[i]   <= filter_rule.drop;
        end
      end
      for (int i = 0; i < int'(GeneratorHeaderCount); i++)
      if (word_q == GeneratorHeaderWord + 9'(i)) settings_o.generator.header[i] <= data_q;
    end
    if (rst_i) begin
      settings_o                    <= '0;
      settings_o.generator.bytes    <= GeneratorBytesReset[13:0];
      settings_o.generator.interval <= GeneratorIntervalReset;
      settings_o.generator.run      <= GeneratorRunReset[15:0];
    end
  end

endmodule
`default_nettype wire
