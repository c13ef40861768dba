// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Checks the generator's frames when they return: missing, misordered, duplicate or wrong ones, and their latency.
///
/// Behaviour: takes a beat a cycle. Frames of the run (settings_i.run) are compared with the generator's pattern
/// for their number, from byte AtPattern on; earlier bytes may change on the way. A number above the expected one
/// counts those between as skipped. One below is late, or a duplicate if it is the last of its value modulo 512.
/// Latency: a frame is counted 5 cycles after its last beat, and enters the histogram after 8.
/// Paths: none.
/// Reset: clears the counters and the remembered numbers, as clear_i does.
/// Requirements: tuser is the same in all beats of a frame.
module bypass_checker
  import bypass_pkg::*;
  import bypass_functions_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // what is the generator's
    input wire generator_settings_t        settings_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire                      [31:0] now_i,

    input  wire               s_valid,
    output logic              s_ready,
    // verilator lint_off UNUSEDSIGNAL  // the pair
    input  wire bypass_axis_t s_payload,
    // verilator lint_on UNUSEDSIGNAL

    output checked_t counts_o,

    input  wire bin_read_t        bin_i,
    output logic           [31:0] bin_o,

    input  wire  clear_i,
    output logic clearing_o
);

  localparam int unsigned KeptBits = 9;  // numbers that are remembered, as a power of two
  localparam int unsigned TagBits = 1 + 16 + 32 - KeptBits;  // there is one; run; number

  assign s_ready = 1'b1;

  // ---- stage 1: a beat, and whether its frame belongs to the run

  typedef struct packed {
    logic        ours;
    logic [31:0] number;
    logic [31:0] latency;
    logic        length;   // right
  } seen_t;

  logic next_first_q, valid1_q, first1_q, last1_q;
  seen_t frame, frame1_q;
  logic [  7:0] beat1_q;
  logic [ 63:0] keep1_q;
  logic [511:0] data1_q;
  always_comb begin
    frame.ours    = s_payload.user[13:0] >= 14'(LeastGenerated) && word_at(s_payload.data, AtRun) == settings_i.run;
    frame.number  = ip_at(s_payload.data, AtNumber);
    frame.latency = now_i - ip_at(s_payload.data, AtStamp);
    frame.length  = s_payload.user[13:0] == settings_i.bytes;
  end
  always_ff @(posedge clk_i) begin
    valid1_q <= s_valid;
    first1_q <= next_first_q;
    last1_q  <= s_payload.last;
    keep1_q  <= s_payload.keep;
    data1_q  <= s_payload.data;
    if (s_valid) begin
      next_first_q <= s_payload.last;
      beat1_q      <= next_first_q ? '0 : beat1_q + 1'b1;
      if (next_first_q) frame1_q <= frame;
    end
    if (rst_i) begin
      next_first_q <= 1'b1;
      valid1_q     <= 1'b0;
    end
  end

  // ---- stage 2: words that differ

  logic [15:0] differs, differs2_q;
  logic valid2_q, first2_q, last2_q;
  seen_t frame2_q;
  always_comb begin
    differs = '0;
    for (int unsigned i = 0; i < 16; i++) begin
      for (int unsigned b = 0; b < 4; b++) begin
        if (keep1_q[4*i+b] && data1_q[32*i+8*b+:8] != 8'(pattern(frame1_q.number, {beat1_q, 4'(i)}) >> (8 * b)))
          differs[i] = 1'b1;
      end
      if (first1_q && i < AtPattern / 4) differs[i] = 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    valid2_q   <= valid1_q;
    first2_q   <= first1_q;
    last2_q    <= last1_q;
    differs2_q <= differs;
    frame2_q   <= frame1_q;
    if (rst_i) valid2_q <= 1'b0;
  end

  // ---- stage 3: a frame is whole

  logic differs_before_q, differs_now, came_q, foreign_q, wrong3_q;
  // verilator lint_off UNUSEDSIGNAL  // ours, length
  seen_t frame3_q;
  // verilator lint_on UNUSEDSIGNAL
  assign differs_now = differs2_q != '0 || (!first2_q && differs_before_q);
  always_ff @(posedge clk_i) begin
    if (valid2_q) differs_before_q <= differs_now;
    came_q    <= valid2_q && last2_q && frame2_q.ours && !clearing_o;
    foreign_q <= valid2_q && last2_q && !frame2_q.ours;
    wrong3_q  <= differs_now || !frame2_q.length;
    frame3_q  <= frame2_q;
    if (rst_i) begin
      came_q    <= 1'b0;
      foreign_q <= 1'b0;
    end
  end

  // ---- stage 4: whether the number came before. Clearing forgets all numbers.

  logic judge_q, wrong4_q;
  logic [31:0] number4_q, after4_q, latency4_q;
  logic [KeptBits-1:0] clear_q;
  logic [TagBits-1:0] tag, remembered;
  always_ff @(posedge clk_i) begin
    judge_q    <= came_q;
    wrong4_q   <= wrong3_q;
    number4_q  <= frame3_q.number;
    after4_q   <= frame3_q.number + 1'b1;
    latency4_q <= frame3_q.latency;
    clear_q    <= clear_q + 1'b1;
    if (clear_i || rst_i) clear_q <= '0;
    if (rst_i) judge_q <= 1'b0;
  end
  assign tag = {1'b1, settings_i.run, number4_q[31:KeptBits]};
  simple_dual_port_ram #(
      .Width  (TagBits),
      .Depth  (1 << KeptBits),
      .Forward(1'b1)
  ) i_numbers (
      .*,
      .write_i        (judge_q || clearing_o),
      .write_address_i(clearing_o ? clear_q : number4_q[KeptBits-1:0]),
      .write_data_i   (clearing_o ? '0 : tag),
      .read_i         (1'b1),
      .read_address_i (frame3_q.number[KeptBits-1:0]),
      .read_data_o    (remembered)
  );

  logic [31:0] expected_q, ahead;
  logic again, counts;
  assign ahead  = number4_q - expected_q;
  assign again  = remembered == tag;
  assign counts = judge_q && !again;

  always_ff @(posedge clk_i) begin
    if (foreign_q) counts_o.foreign <= counts_o.foreign + 1'b1;
    if (judge_q && again) counts_o.duplicates <= counts_o.duplicates + 1'b1;
    if (counts) begin
      counts_o.checked <= counts_o.checked + 1'b1;
      if (wrong4_q) counts_o.wrong <= counts_o.wrong + 1'b1;
      if (ahead[31]) begin
        counts_o.late <= counts_o.late + 1'b1;
      end else begin
        counts_o.skipped <= counts_o.skipped + ahead;
        expected_q <= after4_q;
      end
      if (latency4_q < counts_o.latency_least) counts_o.latency_least <= latency4_q;
      if (latency4_q > counts_o.latency_most) counts_o.latency_most <= latency4_q;
      counts_o.latency_sum <= counts_o.latency_sum + 64'(latency4_q);
    end
    if (rst_i || clear_i || clearing_o) begin
      counts_o.checked       <= '0;
      counts_o.foreign       <= '0;
      counts_o.skipped       <= '0;
      counts_o.late          <= '0;
      counts_o.duplicates    <= '0;
      counts_o.wrong         <= '0;
      counts_o.latency_least <= '1;
      counts_o.latency_most  <= '0;
      counts_o.latency_sum   <= '0;
      expected_q             <= '0;
    end
  end

  // ---- the histogram

  logic bin_valid5_q, bin_valid6_q;
  logic [31:0] shifted_q, latency5_q;
  logic [8:0] bin;
  always_ff @(posedge clk_i) begin
    bin_valid5_q <= counts;
    latency5_q   <= latency4_q;
    bin_valid6_q <= bin_valid5_q;
    shifted_q    <= latency5_q >> settings_i.shift;
    if (rst_i) begin
      bin_valid5_q <= 1'b0;
      bin_valid6_q <= 1'b0;
    end
  end
  assign bin = shifted_q >= 32'(LatencyBins) ? 9'(LatencyBins - 1) : shifted_q[8:0];
  counter_ram #(
      .Counters(LatencyBins)
  ) i_bins (
      .*,
      .add_i       (bin_valid6_q),
      .index_i     (bin),
      .amount_i    (1'b1),
      .read_i      (bin_i.read),
      .read_index_i(bin_i.bin),
      .read_data_o (bin_o)
  );

  `ASSERT(counted_once, !(came_q && foreign_q), "a frame is of the run and is not")

endmodule
`default_nettype wire
