// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A memory of 64-byte lines in block RAM, in 16 banks of 4 bytes that each have their own address.
///
/// Behaviour: a bank writes the bytes whose enable is set, and reads its 4 bytes of its own line. So 64 bytes that begin at any word of a line
/// are written or read in one cycle: the banks below that word take the line after.
/// Latency: reading 1 cycle, writing 1. The read data hold while nothing is read.
/// Reset: none.
/// Requirements: none. A read of what is written in the same cycle returns the old data.
module dma_banks
  import dma_data_pkg::*;
#(
    /// Lines of 64 bytes; a power of two, at least 2. 512 take the whole of the 16 block RAMs of 18 Kbit.
    parameter int unsigned Lines = 512,
    localparam int unsigned LineBits = $clog2(Lines)
) (
    input wire clk_i,

    // verilator lint_off UNUSEDSIGNAL  // of a line as many bits as there are
    input  wire bank_write_t write_i,
    input  wire bank_read_t  read_i,
    // verilator lint_on UNUSEDSIGNAL
    output bank_data_t       read_o
);

  if (2 ** LineBits != Lines) begin : gen_check_lines
    $fatal(1, "Lines must be a power of two in %m");
  end

  for (genvar i = 0; i < 16; i++) begin : gen_bank
    simple_dual_port_ram #(
        .Width(32),
        .Depth(Lines),
        .WriteWidth(8)
    ) i_ram (
        .*,
        .write_i(write_i.enable[i]),
        .write_address_i(write_i.line[i][LineBits-1:0]),
        .write_data_i(write_i.data[i]),
        .read_i(read_i.enable),
        .read_address_i(read_i.line[i][LineBits-1:0]),
        .read_data_o(read_o[i])
    );
  end

endmodule
`default_nettype wire
