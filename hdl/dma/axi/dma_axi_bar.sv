// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "stream.svh"

/// The DMA engine's registers and doorbells as one AXI4 region of 8 KiB: a BAR.
///
/// Behaviour:
/// - 0 to 0xFFF: the registers (axi_to_lite). Accesses of more than 4 bytes become several of a word.
/// - 0x1000 to 0x1FFF: the doorbells, 64 bytes for each ring, repeated every 512 bytes. Each beat of a burst is a write
///   of its own. All 64 bytes: a descriptor and a tail. Other writes with the tail (bytes 32 and 33): the tail. Writes
///   without the tail have no effect. A write whose strobes have a hole rings nothing and gets SLVERR. A read gets SLVERR.
/// - Accesses to registers and doorbells of one direction happen in order.
/// Cuts: valid and payload of s_bell.
/// Latency: a doorbell's data to m_bell 1 cycle, its address 2; registers as axi_to_lite.
/// Reset: forgets accesses in flight, so both sides of the bus must be reset.
/// Requirements: only INCR bursts. All valid signals are low during reset.
module dma_axi_bar
  import dma_control_pkg::*;
#(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Accesses in flight in each direction; a power of two, at least 2.
    parameter int unsigned Outstanding = 32
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t s_axi_req,
    output axi_resp_t     s_axi_resp,

    output axi_pkg::axi_lite_req_t       m_axil_req,
    input  wire axi_pkg::axi_lite_resp_t m_axil_resp,
    `STREAM_SENDER(m_bell, bell_t)
    /// A doorbell that was refused: a pulse.
    output logic                         refused_o
);

  localparam axi_pkg::region_t Registers = '{base: 64'h0, size: 64'h1000};
  localparam axi_pkg::region_t Bells = '{base: 64'h1000, size: 64'h1000};
  localparam int unsigned BarBits = 13;

  // ---- which page
  axi_req_t near_req;
  axi_req_t [1:0] page_req;
  axi_resp_t [1:0] page_resp;
  always_comb begin
    near_req         = s_axi_req;
    near_req.aw.addr = $bits(s_axi_req.aw.addr)'(s_axi_req.aw.addr[BarBits-1:0]);
    near_req.ar.addr = $bits(s_axi_req.ar.addr)'(s_axi_req.ar.addr[BarBits-1:0]);
  end
  axi_demux #(
      .axi_req_t  (axi_req_t),
      .axi_resp_t (axi_resp_t),
      .Outputs    (2),
      .Regions    ({Bells, Registers}),
      .Exclusive  (1'b1),
      .Outstanding(Outstanding)
  ) i_pages (
      .*,
      .s_axi_req (near_req),
      .m_axi_req (page_req),
      .m_axi_resp(page_resp)
  );

  axi_to_lite #(
      .axi_req_t (axi_req_t),
      .axi_resp_t(axi_resp_t)
  ) i_registers (
      .*,
      .s_axi_req (page_req[0]),
      .s_axi_resp(page_resp[0])
  );

  // ---- doorbells: a beat waits before the port until the one before it has left
  logic write, refused, rings, room, whole, unused_read;
  // verilator lint_off UNUSEDSIGNAL  // the ring, of the address
  logic [$bits(s_axi_req.aw.addr)-1:0] bell_address, unused_address;
  // verilator lint_on UNUSEDSIGNAL
  logic [2:0] unused_size;
  logic [511:0] line;
  logic [63:0] strobe;
  axi_req_t bell_req;
  axi_resp_t bell_resp;
  always_comb begin
    bell_req             = page_req[1];
    bell_req.w_valid     = page_req[1].w_valid && room;
    page_resp[1]         = bell_resp;
    page_resp[1].w_ready = bell_resp.w_ready && room;
  end
  axi_port #(
      .axi_req_t   (axi_req_t),
      .axi_resp_t  (axi_resp_t),
      .AddressWidth($bits(s_axi_req.aw.addr)),
      .ReadBeats   (4)
  ) i_bells (
      .*,
      .s_axi_req      (bell_req),
      .s_axi_resp     (bell_resp),
      .write_o        (write),
      .write_address_o(bell_address),
      .write_data_o   (line),
      .write_strobe_o (strobe),
      .write_error_i  (refused),
      .read_o         (unused_read),
      .read_address_o (unused_address),
      .read_size_o    (unused_size),
      .read_data_i    ('0),
      .read_error_i   (1'b1)
  );

  // Strobes have a hole if they begin twice. In a tree: whether a part has a beginning, and whether it has two.
  logic [6:0][63:0] one, two;
  always_comb begin
    one    = '0;
    two    = '0;
    one[0] = strobe & ~{strobe[62:0], 1'b0};
    for (int level = 1; level <= 6; level++) begin
      for (int i = 0; i < 64 >> level; i++) begin
        one[level][i] = one[level-1][2*i] || one[level-1][2*i+1];
        two[level][i] = two[level-1][2*i] || two[level-1][2*i+1] || (one[level-1][2*i] && one[level-1][2*i+1]);
      end
    end
  end
  assign refused   = two[6][0];
  assign refused_o = write && refused;
  assign whole     = strobe == '1;
  assign rings     = write && !refused && strobe[TailOffset+:2] == '1;

  // The engine looks for the tail at the write's offset. What lies around a lone tail means nothing to it.
  bell_t bell;
  always_comb begin
    bell = '{offset: {bell_address[8:6], 6'd0}, bytes: 7'd64, data: line};
    if (!whole) begin
      bell.offset[5:0] = 6'(TailOffset);
      bell.bytes       = 7'd4;
      bell.data[31:0]  = line[8*TailOffset+:32];
    end
  end
  stream_register #(
      .Width($bits(bell_t))
  ) i_bell (
      .*,
      `STREAM_PORTS(s, rings, room, bell),
      `STREAM_PORTS(m, m_bell_valid, m_bell_ready, m_bell_payload)
  );

  logic unused;
  assign unused = ^{one[6], two[6][63:1], s_axi_req.aw.addr, s_axi_req.ar.addr};

endmodule
`default_nettype wire
