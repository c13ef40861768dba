// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Performs the immediate effects of a write to a register. A part of kv_registers.
///
/// Behaviour: direct_o and fetch_o are the registers of those names. `clear_counters_o` and clear_table_o pulse when
/// the bits of these names in `control` are written. `bucket_bits` and control.clear_table take effect only in no epoch
/// (none_i). `bucket_bits` accepts 8 to MostBucketBits (takes_bits_o), and clears the table if it changes.
/// Latency: 1 cycle; 0 to takes_bits_o, which shows whether a write of bucket_bits is accepted.
/// Reset: values as in docs/reference/kv-registers.md.
/// Requirements: none.
module kv_register_effects
  import kv_core_pkg::*;
  import kv_registers_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // not all of it matters here
    input wire register_write_t write_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire none_i,

    output logic takes_bits_o,
    output direct_t direct_o,
    output fetch_order_t fetch_o,
    output logic clear_counters_o,
    output logic clear_table_o
);

  // verilator lint_off UNUSEDSIGNAL
  control_t kept, given;
  // verilator lint_on UNUSEDSIGNAL
  assign kept = control_t'(write_i.value);
  assign given = control_t'(write_i.given);
  assign takes_bits_o = none_i && write_i.value >= MinBucketBits && write_i.value <= MostBucketBits;

  logic [31:0] from_q;
  logic count_write_q, lanes_write_q;
  assign fetch_o = '{count_write: count_write_q, lanes_write: lanes_write_q, data: write_i.value, from : from_q};

  always_ff @(posedge clk_i) begin
    clear_counters_o <= 1'b0;
    clear_table_o    <= 1'b0;
    count_write_q    <= write_i.valid && write_i.word == SyncCountWord;
    lanes_write_q    <= write_i.valid && write_i.word == SyncLanesWord;
    if (write_i.valid) begin
      case (write_i.word)
        ControlWord: begin
          direct_o.enable  <= kept.enable;
          direct_o.accept  <= kept.accept;
          clear_counters_o <= given.clear_counters;
          clear_table_o    <= given.clear_table && none_i;
        end
        RetryCyclesWord: direct_o.retry_cycles <= write_i.value;
        BucketBitsWord:
        if (takes_bits_o) begin
          direct_o.bucket_bits <= write_i.value[5:0];
          clear_table_o <= write_i.differs;
        end
        LineBaseWord: direct_o.line_base[31:0] <= write_i.value;
        LineBaseWord + 7'd1: direct_o.line_base[63:32] <= write_i.value;
        ValueBaseWord: direct_o.value_base[31:0] <= write_i.value;
        ValueBaseWord + 7'd1: direct_o.value_base[63:32] <= write_i.value;
        SyncFromWord: from_q <= write_i.value;
        default: ;
      endcase
    end
    if (rst_i) begin
      direct_o <= '{
          enable: ControlReset[ControlEnableLow],
          accept: ControlReset[ControlAcceptLow],
          retry_cycles: RetryCyclesReset,
          bucket_bits: BucketBitsReset[5:0],
          line_base: {LineBaseReset, LineBaseReset},
          value_base: {ValueBaseReset, ValueBaseReset}
      };
      clear_counters_o <= 1'b0;
      clear_table_o <= 1'b0;
      count_write_q <= 1'b0;
      lanes_write_q <= 1'b0;
      from_q <= SyncFromReset;
    end
  end

endmodule
`default_nettype wire
