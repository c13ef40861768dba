// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A memory in LUTs with one write port and asynchronous read ports.
///
/// Behaviour: a write can be read in the next cycle. A read in the same cycle returns the old content.
/// Latency: reading 0 cycles, writing 1.
/// Reset: none. Contents start at 0 if the device loads them (an FPGA, a simulation).
/// Requirements: none.
module lutram #(
    /// Bits of an entry; at least 1.
    parameter int unsigned Width = 8,
    /// Entries; at least 2. A LUT holds 32 or 64.
    parameter int unsigned Depth = 32,
    /// Read ports; at least 1. Each costs nearly as much as the memory itself.
    parameter int unsigned ReadPorts = 1,
    localparam int unsigned AddressWidth = $clog2(Depth)
) (
    input wire clk_i,

    input wire                    write_i,
    input wire [AddressWidth-1:0] write_address_i,
    input wire [       Width-1:0] write_data_i,

    input  wire  [ReadPorts-1:0][AddressWidth-1:0] read_address_i,
    output logic [ReadPorts-1:0][       Width-1:0] read_data_o
);

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end
  if (Depth < 2) begin : gen_check_depth
    $fatal(1, "Depth must be at least 2 in %m");
  end
  if (ReadPorts < 1) begin : gen_check_ports
    $fatal(1, "ReadPorts must be at least 1 in %m");
  end

  (* ram_style = "distributed" *)
  logic [Width-1:0] memory[Depth];

  initial begin
    for (int i = 0; i < int'(Depth); i++) memory[i] = '0;
  end

  always_ff @(posedge clk_i) begin
    if (write_i) memory[write_address_i] <= write_data_i;
  end

  for (genvar i = 0; i < ReadPorts; i++) begin : gen_read
    assign read_data_o[i] = memory[read_address_i[i]];
  end

endmodule
`default_nettype wire
