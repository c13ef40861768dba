// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// A memory in block RAM or UltraRAM as an AXI4 subordinate.
///
/// Behaviour: INCR and FIXED bursts of every length and size, aligned or not, with strobes; WRAP is answered with
/// SLVERR (see axi_port). Address bits beyond the memory are ignored, so the memory repeats. A read that is requested
/// after a write's response sees that write. A read that overlaps a write sees each byte from before or after it.
/// Throughput: one beat per cycle in each direction.
/// Cuts: every path of the bus except those of W.
/// Latency: from the address to R 3 cycles, 4 with OutputRegister; from the last W to B 1.
/// Reset: forgets transactions in flight. The contents stay.
/// Requirements: all valid signals are low during reset.
module axi_ram #(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Number of words, each as wide as the bus; a power of two, at least 2.
    parameter int unsigned Depth = 512,
    /// Use UltraRAM instead of block RAM.
    parameter bit Ultra = 1'b0,
    /// Use the RAM's own output register.
    parameter bit OutputRegister = 1'b0,
    /// See axi_port.
    parameter int unsigned ReadBeats = 32
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t s_axi_req,
    output axi_resp_t     s_axi_resp
);

  localparam int unsigned AddressWidth = $bits(s_axi_req.aw.addr);
  localparam int unsigned DataWidth = $bits(s_axi_req.w.data);
  localparam int unsigned Lanes = $clog2(DataWidth / 8);
  localparam int unsigned IndexWidth = $clog2(Depth);

  if (2 ** IndexWidth != Depth || Lanes + IndexWidth > AddressWidth) begin : gen_check_depth
    $fatal(1, "Depth must be a power of two within the address space in %m");
  end

  logic write, read;
  logic [AddressWidth-1:0] write_address, read_address;
  logic [DataWidth-1:0] write_data, read_data;
  logic [DataWidth/8-1:0] write_strobe;
  logic [2:0] unused_size;
  axi_port #(
      .axi_req_t(axi_req_t),
      .axi_resp_t(axi_resp_t),
      .AddressWidth(AddressWidth),
      .DataWidth(DataWidth),
      .ReadLatency(OutputRegister ? 2 : 1),
      .ReadBeats(ReadBeats)
  ) i_port (
      .*,
      .read_size_o(unused_size),
      .write_o(write),
      .write_address_o(write_address),
      .write_data_o(write_data),
      .write_strobe_o(write_strobe),
      .write_error_i(1'b0),
      .read_o(read),
      .read_address_o(read_address),
      .read_data_i(read_data),
      .read_error_i(1'b0)
  );

  simple_dual_port_ram #(
      .Width(DataWidth),
      .Depth(Depth),
      .WriteWidth(8),
      .Ultra(Ultra),
      .OutputRegister(OutputRegister)
  ) i_ram (
      .*,
      .write_i(write ? write_strobe : '0),
      .write_address_i(write_address[Lanes+:IndexWidth]),
      .write_data_i(write_data),
      .read_i(read),
      .read_address_i(read_address[Lanes+:IndexWidth]),
      .read_data_o(read_data)
  );

  logic unused_address;
  assign unused_address = ^{write_address, read_address};

endmodule
`default_nettype wire
