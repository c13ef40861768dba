// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The register bus, and the steps of an access. A part of kv_registers.
///
/// Behaviour: an access takes three or four cycles. The first registers the address, and the second requests the word
/// (look_o). The third is a read's last. In a write it merges the new bytes with the word, and in the fourth cycle the
/// write happens (write_o), if it has bytes and its word is in the file. Other addresses read as 0. No access begins
/// while the file is initialised, and none to a counter while the counters are cleared.
/// Latency: 5 cycles from address (and data) to response for a read, 6 for a write; one access every 5 or 6 cycles.
/// Reset: forgets the access in progress.
/// Requirements: word_i and counter_i come in the cycle after look_o.
module kv_register_access
  import kv_core_pkg::*;
  import kv_registers_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    input  wire kv_axil_req_t s_axil_req,
    output kv_axil_resp_t     s_axil_resp,

    /// The file is being initialised (initialises_i); the counters are being cleared (clearing_i).
    input wire initialises_i,
    input wire clearing_i,
    /// No epoch is being entered.
    input wire idle_i,

    output register_look_t         look_o,
    input  wire             [31:0] word_i,
    input  wire             [31:0] counter_i,
    output register_write_t        write_o
);

  logic write, read, done;
  logic [11:0] address;
  logic [31:0] write_data, read_data;
  logic [3:0] strobe;

  axi_lite_registers #(
      .axi_req_t (kv_axil_req_t),
      .axi_resp_t(kv_axil_resp_t)
  ) i_bus (
      .*,
      .write_o(write),
      .read_o(read),
      .address_o(address),
      .write_data_o(write_data),
      .write_strobe_o(strobe),
      .done_i(done),
      .read_data_i(read_data),
      .error_i(1'b0)
  );

  word_t word_q;
  logic starts, reads_q, second_q, third_q, fourth_q, in_file_q, in_counters_q;
  logic [31:0] bits_q;
  logic is_kept_q, is_staged_q, is_source_q;
  logic idle_q;  // no epoch was being entered when the word was read
  assign starts = (write || read) && !second_q && !third_q && !fourth_q && !initialises_i
      && !(address[11:9] == FramesKvOffset[11:9] && clearing_i);
  assign done = reads_q ? third_q : fourth_q;

  logic unused_address;
  assign unused_address = ^address[1:0];

  always_ff @(posedge clk_i) begin
    reads_q       <= read;
    word_q        <= address[8:2];
    in_file_q     <= address[11:9] == '0;
    in_counters_q <= address[11:9] == FramesKvOffset[11:9];
    bits_q        <= bits_of(word_q);
    is_kept_q     <= is_written(word_q) && word_q != EpochWord;  // that says which epoch is entered
    is_staged_q   <= is_staged(word_q);
    is_source_q   <= word_q[6:5] == SourceIpWord[6:5];
    if (second_q) idle_q <= idle_i;
    second_q <= starts;
    third_q  <= second_q;
    fourth_q <= third_q && !reads_q;
    if (rst_i) begin
      second_q <= 1'b0;
      third_q  <= 1'b0;
      fourth_q <= 1'b0;
    end
  end

  assign look_o = '{valid: second_q, reads: reads_q, in_file: in_file_q, in_counters: in_counters_q, word: word_q};
  assign read_data = in_file_q ? word_i : in_counters_q ? counter_i : '0;

  // ---- writes

  logic differs, differs_q;
  logic [31:0] given, merged, merged_q;
  always_comb begin
    differs = 1'b0;
    for (int i = 0; i < 32; i++) begin
      given[i]  = strobe[i/8] && write_data[i];
      merged[i] = (strobe[i/8] ? write_data[i] : word_i[i]) && bits_q[i];
      if (strobe[i/8] && write_data[i] != word_i[i]) differs = 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (third_q) begin
      merged_q  <= merged;
      differs_q <= differs;
    end
  end

  assign write_o = '{
          valid: fourth_q && in_file_q && strobe != '0,
          word: word_q,
          keeps: is_kept_q && (idle_q || !is_staged_q),
          source: is_source_q,
          idle: idle_q,
          differs: differs_q,
          value: merged_q,
          given: given
      };

endmodule
`default_nettype wire
