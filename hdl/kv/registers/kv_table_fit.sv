// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Checks whether the table fits into memory. A part of kv_registers.
///
/// Behaviour: a table does not fit if part of it is beyond memory or if it begins inside a page of 4096 bytes. Then
/// misplaced_o is high until a table that fits is cleared. `clear_i` becomes clear_o if the table fits.
/// Latency: clear_i to clear_o 3 cycles.
/// Reset: the table fits.
/// Requirements: bucket_bits is MinBucketBits to MostBucketBits.
module kv_table_fit
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // size and bases
    input  wire direct_t direct_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire          clear_i,
    output logic         clear_o,
    output logic         misplaced_o
);

  // A table of 2^n bytes with its base inside memory is too long if the base is within the last 2^n bytes, but not at
  // their start. `larger_q`: the address bits within the table, beyond those of the smallest table.
  localparam int unsigned Larger = MostBucketBits - MinBucketBits;
  logic [Larger-1:0] larger_q;
  function automatic logic fits(logic [63:0] base, logic [AddressBits-1:0] inside_bits);
    fits = base[63:AddressBits] == '0 && base[11:0] == '0
        && ((base[AddressBits-1:0] | inside_bits) != '1 || (base[AddressBits-1:0] & inside_bits) == '0);
  endfunction
  function automatic logic [AddressBits-1:0] inside_of(logic [Larger-1:0] larger, int unsigned bytes);
    inside_of = AddressBits'({larger, {MinBucketBits{1'b1}}}) * AddressBits'(bytes) | AddressBits'(bytes - 1);
  endfunction

  logic lines_fit_q, values_fit_q, clear_sized_q, clear_fits_q;  // the last: whether it fits is known of the clearing
  always_ff @(posedge clk_i) begin
    clear_sized_q <= clear_i;
    clear_fits_q  <= clear_sized_q;
    for (int i = 0; i < int'(Larger); i++) larger_q[i] <= direct_i.bucket_bits[4:0] > 5'(int'(MinBucketBits) + i);
    lines_fit_q  <= fits(direct_i.line_base, inside_of(larger_q, BeatBytes));
    values_fit_q <= fits(direct_i.value_base, inside_of(larger_q, Ways * MaxValueBytes));
    clear_o      <= clear_fits_q && lines_fit_q && values_fit_q;
    if (clear_fits_q) misplaced_o <= 1'b0;
    if (!lines_fit_q || !values_fit_q) misplaced_o <= 1'b1;
    if (rst_i) begin
      clear_sized_q <= 1'b0;
      clear_fits_q  <= 1'b0;
      lines_fit_q   <= 1'b1;
      values_fit_q  <= 1'b1;
      clear_o       <= 1'b0;
      misplaced_o   <= 1'b0;
    end
  end

endmodule
`default_nettype wire
