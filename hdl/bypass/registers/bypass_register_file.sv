// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Common to register blocks: one access at a time, and a block RAM file from which written values are read.
///
/// Behaviour: an access begins with access.starts and lasts Cycles + 1 cycles, in which its other fields stay. A whole
/// word is stored if it is writable (written). A partial write changes nothing (SLVERR). Reset restores each word.
/// Latency: address (and data) to response 3 + Cycles cycles; longer in the 512 after a reset, and during busy_i.
/// Paths: none.
/// Reset: fills the file with the reset values.
/// Requirements: `about` describes the word as register_word_t says; read_data_i is valid with access.ends.
module bypass_register_file
  import bypass_pkg::*;
#(
    /// Width of a byte address; 11 to 16.
    parameter int unsigned AddressWidth = 12,
    /// Cycles of an access without its last one; 2 or 3.
    parameter int unsigned Cycles       = 2
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // upper bits of addresses
    input  wire bypass_axil_req_t s_axil_req,
    // verilator lint_on UNUSEDSIGNAL
    output bypass_axil_resp_t     s_axil_resp,

    output register_access_t        access,
    output register_write_t         written,
    output register_fill_t          fill,
    output logic             [31:0] filed_o,

    input wire                        busy_i,
    input wire register_word_t        about,
    input wire                 [31:0] read_data_i,
    /// The word that is read while no access begins; filed_o has its value a cycle later.
    input wire                 [ 8:0] other_i
);

  if (AddressWidth < 11 || AddressWidth > 16 || Cycles < 2 || Cycles > 3) begin : gen_check
    $fatal(1, "AddressWidth must be 11 to 16, and Cycles 2 or 3, in %m");
  end

  logic write, read, done_q, refused_q, starts;
  logic [AddressWidth-1:0] address;
  logic [31:0] write_data, read_data_q;
  logic [3:0] strobe;
  axi_lite_registers #(
      .axi_req_t(bypass_axil_req_t),
      .axi_resp_t(bypass_axil_resp_t),
      .AddressWidth(AddressWidth)
  ) i_bus (
      .*,
      .write_o(write),
      .read_o(read),
      .address_o(address),
      .write_data_o(write_data),
      .write_strobe_o(strobe),
      .done_i(done_q),
      .read_data_i(read_data_q),
      .error_i(refused_q)
  );

  logic [Cycles-2:0] waits_q;  // its cycles after the first one
  logic [8:0] word;
  assign word = address[10:2];
  assign starts = (write || read) && waits_q == '0 && !done_q && !fill.valid && !busy_i;
  assign access = '{
          starts: starts,
          second: waits_q[0],
          ends: waits_q[Cycles-2],
          read: read,
          write: write && strobe == '1,
          address: 16'(address),
          data: write_data
      };
  logic unused_address;
  assign unused_address = ^address[1:0];

  always_ff @(posedge clk_i) begin
    waits_q       <= (Cycles - 1)'({waits_q, starts});
    done_q        <= access.ends;
    written.valid <= starts && access.write && about.writable;
    written.word  <= word;
    written.data  <= write_data & about.bits;
    refused_q     <= write && strobe != '1;
    read_data_q   <= read_data_i;
    if (fill.valid) fill.word <= fill.word + 1'b1;
    if (fill.word == '1) fill.valid <= 1'b0;
    if (rst_i) begin
      waits_q       <= '0;
      done_q        <= 1'b0;
      written.valid <= 1'b0;
      fill          <= '{valid: 1'b1, word: '0};
    end
  end

  simple_dual_port_ram #(
      .Width(32),
      .Depth(512)
  ) i_file (
      .*,
      .write_i(fill.valid || written.valid),
      .write_address_i(fill.valid ? fill.word : written.word),
      .write_data_i(fill.valid ? about.reset : written.data),
      .read_i(1'b1),
      .read_address_i(starts ? word : other_i),
      .read_data_o(filed_o)
  );

endmodule
`default_nettype wire
