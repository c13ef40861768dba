// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A memory in block RAM or UltraRAM with one write port, one read port and one clock.
///
/// Behaviour: each bit of write_i enables the write of its part of the entry. `read_data_o` holds its value while
/// read_i is low. A read of the entry that is written in the same cycle returns the old content (Forward = 0) or the
/// new content (Forward = 1).
/// Latency: reading 1 cycle, 2 with OutputRegister (read_i then needs no second pulse); writing 1.
/// Reset: none. Contents start at 0 in block RAM and simulation. UltraRAM always starts at 0.
/// Requirements: none.
module simple_dual_port_ram #(
    /// Bits of an entry; at least 1.
    parameter int unsigned Width = 8,
    /// Entries; at least 2.
    parameter int unsigned Depth = 512,
    /// Bits with a common write enable; divides Width. Block RAM and UltraRAM have write enables for 8 or 9 bits.
    parameter int unsigned WriteWidth = Width,
    /// Use UltraRAM, in blocks of 4096 times 72 bits, instead of block RAM (512 times 72).
    parameter bit Ultra = 1'b0,
    /// A read of the entry being written returns the new data; costs a register and a multiplexer of Width bits.
    parameter bit Forward = 1'b0,
    /// Use the RAM's own output register. It adds one cycle and makes the path from clock to data much shorter.
    parameter bit OutputRegister = 1'b0,
    localparam int unsigned AddressWidth = $clog2(Depth),
    localparam int unsigned Writes = Width / WriteWidth
) (
    input wire clk_i,

    input wire [      Writes-1:0] write_i,
    input wire [AddressWidth-1:0] write_address_i,
    input wire [       Width-1:0] write_data_i,

    input  wire                     read_i,
    input  wire  [AddressWidth-1:0] read_address_i,
    output logic [       Width-1:0] read_data_o
);

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end
  if (Depth < 2) begin : gen_check_depth
    $fatal(1, "Depth must be at least 2 in %m");
  end

  if (WriteWidth < 1 || Writes * WriteWidth != Width) begin : gen_check_write_width
    $fatal(1, "WriteWidth must divide Width in %m");
  end

  logic [Width-1:0] ram_q;

  if (Ultra) begin : gen_ultra
    (* ram_style = "ultra" *)
    logic [Width-1:0] memory[Depth];
    always_ff @(posedge clk_i) begin
      for (int i = 0; i < int'(Writes); i++) begin
        if (write_i[i]) memory[write_address_i][i*WriteWidth+:WriteWidth] <= write_data_i[i*WriteWidth+:WriteWidth];
      end
      if (read_i) ram_q <= memory[read_address_i];
    end
  end else begin : gen_block
    (* ram_style = "block" *)
    logic [Width-1:0] memory[Depth];
    initial begin
      for (int i = 0; i < int'(Depth); i++) memory[i] = '0;
    end
    always_ff @(posedge clk_i) begin
      for (int i = 0; i < int'(Writes); i++) begin
        if (write_i[i]) memory[write_address_i][i*WriteWidth+:WriteWidth] <= write_data_i[i*WriteWidth+:WriteWidth];
      end
      if (read_i) ram_q <= memory[read_address_i];
    end
  end

  logic [Width-1:0] data;
  if (Forward) begin : gen_forward
    logic [Writes-1:0] hit_q;
    logic [ Width-1:0] written_q;
    always_ff @(posedge clk_i) begin
      if (read_i) begin
        hit_q <= write_address_i == read_address_i ? write_i : '0;
        written_q <= write_data_i;
      end
    end
    for (genvar i = 0; i < Writes; i++) begin : gen_part
      assign data[i*WriteWidth+:WriteWidth] = hit_q[i] ? written_q[i*WriteWidth+:WriteWidth]
                                              : ram_q[i*WriteWidth+:WriteWidth];
    end
  end else begin : gen_no_forward
    assign data = ram_q;
  end

  if (OutputRegister) begin : gen_output_register
    logic read_q;
    logic [Width-1:0] data_q;
    always_ff @(posedge clk_i) begin
      read_q <= read_i;
      if (read_q) data_q <= data;
    end
    assign read_data_o = data_q;
  end else begin : gen_no_output_register
    assign read_data_o = data;
  end

endmodule
`default_nettype wire
