// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Descriptors as the NIC reads them: made of what is known of them, stored nowhere.
///
/// Behaviour: a receive descriptor is its slot's address, the rest 0. A transmit descriptor is its frame's address and the personality's word
/// with the frame's length where the NIC wants it; one frame is one descriptor.
/// Latency: the entries are asked for with read_i; beat_o a cycle later.
/// Reset: it has no state.
/// Requirements: entries_i are those of the group that was read, a cycle after read_i.
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

  typedef logic [63:0] word_t;

  logic tx_q;
  queue_t queue_q;
  logic [9:0] line_q;  // of the ring
  always_ff @(posedge clk_i) begin
    tx_q    <= read_i.region == TxRing;
    queue_q <= read_i.offset[20:17];
    line_q  <= read_i.offset[15:6];
  end

  // verilator lint_off UNUSEDSIGNAL
  personality_t nic;
  // verilator lint_on UNUSEDSIGNAL
  assign nic = settings_i.personality;

  logic [3:0][127:0] descriptor;
  always_comb begin
    for (int i = 0; i < 4; i++) begin
      logic empty, reports;  // the second half of a descriptor of 32 bytes
      index_t index;
      word_t length, total, report, word;
      offset_t offset;
      empty   = !tx_q && nic.rx_32_bytes && i % 2 == 1;
      index   = nic.rx_32_bytes ? {1'b0, line_q, 1'(i / 2)} : {line_q, 2'(i)};
      length  = nic.tx_length_34 ? word_t'(entries_i[i].bytes) << 34 : word_t'(entries_i[i].bytes);
      total   = nic.tx_total_46 ? word_t'(entries_i[i].bytes) << 46 : '0;
      reports = settings_i.report && ({line_q, 2'(i)} & settings_i.report_mask) == settings_i.report_mask;
      report  = reports ? nic.tx_report_5 ? 64'd1 << 5 : 64'd1 << 27 : '0;
      word    = tx_q ? nic.tx_word | length | total | report : '0;
      offset  = tx_q ? {entries_i[i].line, 6'd0} : slot_offset(queue_q, index, Config);
      descriptor[i] = empty ? '0 : {word, settings_i.base, offset};
    end
  end
  assign beat_o = descriptor;

endmodule
`default_nettype wire
