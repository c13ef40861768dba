// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// A memory in UltraRAM with two ports and one clock: one port writes, the other reads or writes.
///
/// Behaviour: read_data_o holds its value while read_i is low. A read of the entry that the other port writes in the
/// same cycle returns the new content. If both write the same entry, port_* wins. UltraRAM behaves like this by itself,
/// because its port A acts before its port B.
/// Latency: reading 1 cycle, 2 with OutputRegister (read_i then needs no second pulse); writing 1.
/// Reset: none. Contents start at 0.
/// Requirements: port_read_i and port_write_i are never high together.
module shared_port_ram #(
    /// Bits of an entry; at least 1.
    parameter int unsigned Width = 72,
    /// Entries; at least 2. UltraRAM comes in blocks of 4096 times 72 bits.
    parameter int unsigned Depth = 4096,
    /// Use the RAM's own output register. It adds one cycle and makes the path from clock to data much shorter.
    parameter bit OutputRegister = 1'b0,
    localparam int unsigned AddressWidth = $clog2(Depth)
) (
    input wire clk_i,

    input wire                    write_i,
    input wire [AddressWidth-1:0] write_address_i,
    input wire [       Width-1:0] write_data_i,

    input  wire                     port_read_i,
    input  wire                     port_write_i,
    input  wire  [AddressWidth-1:0] port_address_i,
    input  wire  [       Width-1:0] port_data_i,
    output logic [       Width-1:0] read_data_o
);

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end
  if (Depth < 2) begin : gen_check_depth
    $fatal(1, "Depth must be at least 2 in %m");
  end

  logic [Width-1:0] ram_q;
  (* ram_style = "ultra" *)
  logic [Width-1:0] memory[Depth];

  always_ff @(posedge clk_i) begin
    if (write_i) memory[write_address_i] <= write_data_i;
    if (port_write_i) memory[port_address_i] <= port_data_i;
    else if (port_read_i) begin
      ram_q <= write_i && write_address_i == port_address_i ? write_data_i : memory[port_address_i];
    end
  end

  if (OutputRegister) begin : gen_output_register
    logic read_q;
    logic [Width-1:0] data_q;
    always_ff @(posedge clk_i) begin
      read_q <= port_read_i;
      if (read_q) data_q <= ram_q;
    end
    assign read_data_o = data_q;
  end else begin : gen_no_output_register
    assign read_data_o = ram_q;
  end

endmodule
`default_nettype wire
