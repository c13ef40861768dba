// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A memory of 64-byte lines in block RAM: 16 banks of 4 bytes, each with its own address.
///
/// Behaviour: a bank writes its enabled bytes, and reads its 4 bytes of its own line. So one cycle writes
/// or reads 64 bytes that begin at any word of a line: the banks below that word use the next line.
/// Latency: reading 1 cycle, writing 1. Without a read, the read data stay.
/// Reset: none.
/// Requirements: none. A read of a line that is written in the same cycle returns the old data.
module dma_banks
  import dma_data_pkg::*;
#(
    /// Lines of 64 bytes; a power of two, at least 2. 512 lines fill the 16 block RAMs of 18 Kbit.
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
