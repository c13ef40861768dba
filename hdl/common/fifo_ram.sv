// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "stream.svh"

/// The memory of a FIFO, with a stream as its read side. `stream_fifo` or packet_fifo owns the pointers.
///
/// Behaviour: the RAM's output is the stream's payload, without a multiplexer. In LUTs (Block = 0) the entry at
/// read_address_i is the payload in the same cycle. In block RAM the entry is fetched into the RAM's output register,
/// which holds one more entry (held_o).
/// Latency: from a write to m_valid 1 cycle in LUTs, 2 in block RAM.
/// Reset: forgets the fetched entry.
/// Requirements: available_i is high only while read_address_i names a written entry that has not been fetched.
module fifo_ram #(
    /// Bits of an entry; at least 1.
    parameter int unsigned Width = 8,
    /// Entries; at least 2.
    parameter int unsigned Depth = 32,
    /// In block RAM rather than in LUTs.
    parameter bit Block = Depth > 64,
    /// With Block: in UltraRAM.
    parameter bit Ultra = 1'b0,
    localparam int unsigned AddressWidth = $clog2(Depth)
) (
    input wire clk_i,
    input wire rst_i,

    `STREAM_SENDER(m, logic [Width-1:0])
    input wire                    write_i,
    input wire [AddressWidth-1:0] write_address_i,
    input wire [       Width-1:0] write_data_i,

    /// There is an entry at read_address_i.
    input  wire                     available_i,
    input  wire  [AddressWidth-1:0] read_address_i,
    /// The entry at read_address_i leaves the RAM in this cycle.
    output logic                    fetch_o,
    /// The output register holds an entry that left the RAM and has not been taken.
    output logic                    held_o
);

  if (Block) begin : gen_block
    logic valid_q;

    assign fetch_o = available_i && (!valid_q || m_ready);
    assign held_o  = valid_q;
    assign m_valid = valid_q;

    always_ff @(posedge clk_i) begin
      if (fetch_o) valid_q <= 1'b1;
      else if (m_ready) valid_q <= 1'b0;
      if (rst_i) valid_q <= 1'b0;
    end

    simple_dual_port_ram #(
        .Width(Width),
        .Depth(Depth),
        .Ultra(Ultra)
    ) i_ram (
        .*,
        .read_i(fetch_o),
        .read_data_o(m_payload)
    );
  end else begin : gen_lutram
    logic unused_rst;
    assign unused_rst = rst_i;

    assign fetch_o = available_i && m_ready;
    assign held_o = 1'b0;
    assign m_valid = available_i;

    lutram #(
        .Width(Width),
        .Depth(Depth)
    ) i_ram (
        .*,
        .read_data_o(m_payload)
    );
  end

endmodule
`default_nettype wire
