// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Converts writes of an AXI4-Lite manager to AXI4 writes of one beat.
///
/// Behaviour: each word becomes a burst of one beat of the full bus width, with id 0. The data appear in all lanes. The
/// strobes are set only in the lanes of the address, which is passed on unchanged. So a subordinate without narrow
/// bursts accepts the beat. Address and data of a word are sent in the same cycle. Reads are not supported.
/// Latency: 1 cycle; one word per cycle. Responses pass without delay.
/// Paths: the B channel, and from aw_ready and w_ready to the manager's readies.
/// Reset: forgets waiting words.
/// Requirements: all valid signals are low during reset; no reads.
module axi_from_lite #(
    /// The bundles of both buses: see axi.svh. AXI4-Lite has 32 data bits, and at most the address bits of AXI4.
    parameter type lite_req_t  = axi_pkg::axi_lite_req_t,
    parameter type lite_resp_t = axi_pkg::axi_lite_resp_t,
    parameter type axi_req_t   = axi_pkg::axi_req_t,
    parameter type axi_resp_t  = axi_pkg::axi_resp_t
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // nothing is read
    input  wire lite_req_t s_axil_req,
    // verilator lint_on UNUSEDSIGNAL
    output lite_resp_t     s_axil_resp,

    output axi_req_t       m_axi_req,
    // verilator lint_off UNUSEDSIGNAL
    input  wire axi_resp_t m_axi_resp
    // verilator lint_on UNUSEDSIGNAL
);

  localparam int unsigned AddressWidth = $bits(s_axil_req.aw.addr);
  localparam int unsigned Words = $bits(m_axi_req.w.data) / 32;
  localparam int unsigned WordBits = $clog2(Words);

  if ($bits(s_axil_req.w.data) != 32 || Words < 2) begin : gen_check_data
    $fatal(1, "data must have 32 bits on AXI4-Lite, and 64 or more on AXI4, in %m");
  end

  typedef struct packed {
    logic [31:0]         data;
    logic [3:0]          strb;
    logic [WordBits-1:0] word;
  } word_t;

  // Address and data go in the same cycle, because the address selects the lanes of the data.
  logic both, goes;
  logic [1:0] room;
  logic [AddressWidth-1:0] address;
  word_t word, out;
  assign both = s_axil_req.aw_valid && s_axil_req.w_valid;
  assign goes = both && room == '1;
  assign word = '{data: s_axil_req.w.data, strb: s_axil_req.w.strb, word: s_axil_req.aw.addr[2+:WordBits]};

  stream_register #(
      .Width(AddressWidth)
  ) i_aw (
      .*,
      `STREAM_PORTS(s, goes, room[0], s_axil_req.aw.addr),
      `STREAM_PORTS(m, m_axi_req.aw_valid, m_axi_resp.aw_ready, address)
  );
  stream_register #(
      .Width($bits(word_t))
  ) i_w (
      .*,
      `STREAM_PORTS(s, goes, room[1], word),
      `STREAM_PORTS(m, m_axi_req.w_valid, m_axi_resp.w_ready, out)
  );

  always_comb begin
    m_axi_req.aw       = '0;
    m_axi_req.aw.addr  = $bits(m_axi_req.aw.addr)'(address);
    m_axi_req.aw.size  = 3'(WordBits + 2);
    m_axi_req.aw.burst = axi_pkg::BurstIncr;
    m_axi_req.aw.prot  = axi_pkg::ProtData;
    m_axi_req.w.data   = {Words{out.data}};
    for (int i = 0; i < int'(Words); i++) m_axi_req.w.strb[4*i+:4] = out.strb & {4{32'(out.word) == i}};
    m_axi_req.w.last = 1'b1;
  end
  assign m_axi_req.b_ready = s_axil_req.b_ready;
  assign m_axi_req.ar = '0;
  assign m_axi_req.ar_valid = 1'b0;
  assign m_axi_req.r_ready = 1'b1;

  assign s_axil_resp = '{
          aw_ready: goes,
          w_ready: goes,
          b: '{resp: m_axi_resp.b.resp},
          b_valid: m_axi_resp.b_valid,
          ar_ready: 1'b0,
          r: '0,
          r_valid: 1'b0
      };

  `ASSERT(no_reads, !s_axil_req.ar_valid, "a read of a port that only writes")

endmodule
`default_nettype wire
