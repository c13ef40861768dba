// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The LUT RAM with all writable registers, and the values that replace it for reads of other blocks' registers. A part
/// of kv_registers.
///
/// Behaviour: one word is read per cycle, with this priority: for an access (look_i), for kv_configuration (walk_i),
/// for kv_sources (source_i). `word_o` is the value for an access, and filed_o the content of the file. A valid write
/// (kept_i) has priority over kv_configuration's writes, which are the reset values and the entered epoch.
/// Latency: 1 cycle.
/// Reset: none. `kv_configuration` initialises the file.
/// Requirements: none.
module kv_register_file
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_registers_pkg::*;
#(
    /// The core's parameters that software reads in `capability`.
    parameter kv_config_t Config = DefaultConfig
) (
    input wire clk_i,

    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here
    input wire register_look_t look_i,
    input wire register_walk_t walk_i,
    /// The word of the source list that is read.
    input wire [4:0] source_i,
    input wire register_write_t write_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire kept_i,

    /// The present epoch.
    input wire [31:0] epoch_i,
    input wire state_t state_i,
    /// The high word is latched when the low word is read.
    input wire [63:0] cycles_i,
    input wire fetch_left_t left_i,

    output logic [31:0] word_o,
    output logic [31:0] filed_o
);

  localparam capability_t Capability = '{
      reserved_25: '0,
      sources: 4'(Sources),
      bucket_bits: 6'(MostBucketBits),
      channels: 3'(Config.channels),
      place_bits: 3'($clog2(Places)),
      lane_bits: 5'(Config.lane_bits),
      max_followers: 4'(Config.max_followers)
  };

  word_t at;
  logic  written;
  logic [31:0] begins, data;
  assign at      = look_i.valid ? look_i.word : walk_i.reads ? walk_i.word : {SourceIpWord[6:5], source_i};
  assign written = write_i.valid ? kept_i : walk_i.initialises || walk_i.reports;
  assign begins  = walk_i.word == CapabilityWord ? Capability : reset_of(walk_i.word);
  assign data    = write_i.valid ? write_i.value : walk_i.initialises ? begins : epoch_i;

  simple_dual_port_ram #(
      .Width(32),
      .Depth(128)
  ) i_ram (
      .*,
      .write_i(written),
      .write_address_i(write_i.valid ? write_i.word : walk_i.word),
      .write_data_i(data),
      .read_i(1'b1),
      .read_address_i(at),
      .read_data_o(filed_o)
  );

  // ---- values that come from other blocks

  logic is_special, is_special_q;
  logic [31:0] special, special_q;
  always_comb begin
    is_special = 1'b1;
    special = '0;
    case (at)
      StateWord: special = state_i;
      CyclesWord: special = cycles_i[31:0];
      CyclesWord + 7'd1: special = cycles_i[63:32];
      SyncCountWord: special = left_i.count;
      SyncLanesWord: special = 32'(left_i.lanes);
      default: is_special = 1'b0;
    endcase
  end
  always_ff @(posedge clk_i) begin
    special_q    <= special;
    is_special_q <= is_special && look_i.reads;
  end
  assign word_o = is_special_q ? special_q : filed_o;

endmodule
`default_nettype wire
