// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Computes descriptors when the NIC reads them. No descriptor is stored.
///
/// Behaviour: a receive descriptor is its slot's address; its other bits are 0. A transmit descriptor is its
/// frame's address, and the personality's word with the frame's length inserted. One frame is one descriptor.
/// Latency: read_i requests the entries; beat_o follows a cycle later.
/// Reset: there is no state.
/// Requirements: one cycle after read_i, entries_i holds the entries of the group that was read.
module bypass_expand
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig
) (
    input wire clk_i,

    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here
    input wire settings_t    settings_i,
    input wire window_read_t read_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire tx_entry_t [3:0] entries_i,

    output data_t beat_o
);

  // verilator lint_off UNUSEDSIGNAL
  personality_t nic;
  // verilator lint_on UNUSEDSIGNAL
  assign nic = settings_i.personality;

  // Fields that are 0, or equal in all four descriptors, are ready together with the entries.
  logic tx, tx_q, at_0_q, at_34_q, at_46_q, wide_q, reports_q;
  logic [63:0] word_q;
  logic [63:WindowBits] odd_base_q;  // of the second and fourth
  queue_t pair_q;
  logic [9:0] line_q;  // of the ring
  assign tx = read_i.region == TxRing;
  always_ff @(posedge clk_i) begin
    tx_q       <= tx;
    at_0_q     <= tx && !nic.tx_length_34;
    at_34_q    <= tx && nic.tx_length_34;
    at_46_q    <= tx && nic.tx_total_46;
    wide_q     <= !tx && nic.rx_32_bytes;
    reports_q  <= tx && settings_i.report && (read_i.offset[15:6] | ~settings_i.report_mask[11:2]) == '1;
    pair_q     <= read_i.offset[20:17];
    line_q     <= read_i.offset[15:6];
    word_q     <= nic.tx_word;
    odd_base_q <= settings_i.base;
    if (!tx) word_q <= '0;
    if (!tx && nic.rx_32_bytes) odd_base_q <= '0;
  end

  always_comb begin
    for (int i = 0; i < 4; i++) begin
      logic reports;
      index_t index;
      logic [63:0] word;
      offset_t offset;
      bytes_t bytes;
      bytes   = entries_i[i].bytes;
      index   = wide_q ? {1'b0, line_q, 1'(i / 2)} : {line_q, 2'(i)};
      reports = reports_q && (2'(i) | ~settings_i.report_mask[1:0]) == '1;
      word    = word_q;
      word[13:0] |= bytes & {14{at_0_q}};
      word[47:34] |= bytes & {14{at_34_q}};
      word[59:46] |= bytes & {14{at_46_q}};
      word[5] |= reports && nic.tx_report_5;
      word[27] |= reports && !nic.tx_report_5;
      offset = tx_q ? {entries_i[i].line, 6'd0} : slot_offset(pair_q, index, Config);
      if (wide_q && i % 2 == 1) offset = '0;
      beat_o[128*i+:128] = {word, i % 2 == 1 ? odd_base_q : settings_i.base, offset};
    end
  end

endmodule
`default_nettype wire
