// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "axi.svh"

/// Of axi_split: between a manager and a subordinate that keep the rules of AXI, both sees the other keep them: bursts that are short enough
/// at the subordinate, and at the manager one response for each write, one last beat for each read.
module axi_split_proof #(
    parameter int unsigned MaxBeats = 2,
    // One direction at a time: they share nothing.
    parameter bit Writes = 1'b1,
    localparam int unsigned AddressWidth = 13,
    localparam int unsigned DataWidth = 8,
    localparam int unsigned IdWidth = 1
) (
    input wire       clk_i,
    input wire       rst_i,
    input wire       aw_valid,
    input wire       aw_id,
    input wire [1:0] aw_len,
    input wire [2:0] aw_addr,
    input wire       w_valid,
    input wire       w_last,
    input wire       b_ready,
    input wire       ar_valid,
    input wire       ar_id,
    input wire [1:0] ar_len,
    input wire [2:0] ar_addr,
    input wire       r_ready,
    input wire       aw_ready,
    input wire       w_ready,
    input wire       b_valid,
    input wire       b_error,
    input wire       ar_ready,
    input wire       r_valid,
    input wire       r_last
);

  `AXI_TYPES(axi, AddressWidth, DataWidth, IdWidth)
  // Addresses about 4 KiB.
  function automatic logic [AddressWidth-1:0] near(logic [2:0] address);
    return {address[2], {10{~address[2]}}, address[1:0]};
  endfunction

  axi_req_t s_axi_req, m_axi_req;
  axi_resp_t s_axi_resp, m_axi_resp;
  always_comb begin
    s_axi_req           = '0;
    s_axi_req.aw_valid  = aw_valid && Writes;
    s_axi_req.aw.id     = aw_id;
    s_axi_req.aw.len    = 8'(aw_len);
    s_axi_req.aw.addr   = near(aw_addr);
    s_axi_req.aw.burst  = axi_pkg::BurstIncr;
    s_axi_req.w_valid   = w_valid && Writes;
    s_axi_req.w.last    = w_last;
    s_axi_req.b_ready   = b_ready;
    s_axi_req.ar_valid  = ar_valid && !Writes;
    s_axi_req.ar.id     = ar_id;
    s_axi_req.ar.len    = 8'(ar_len);
    s_axi_req.ar.addr   = near(ar_addr);
    s_axi_req.ar.burst  = axi_pkg::BurstIncr;
    s_axi_req.r_ready   = r_ready;

    m_axi_resp          = '0;
    m_axi_resp.aw_ready = aw_ready;
    m_axi_resp.w_ready  = w_ready;
    m_axi_resp.b_valid  = b_valid;
    m_axi_resp.b.resp   = axi_pkg::resp_e'({b_error, 1'b0});
    m_axi_resp.ar_ready = ar_ready;
    m_axi_resp.r_valid  = r_valid;
    m_axi_resp.r.last   = r_last;
  end

  axi_split #(
      .axi_req_t(axi_req_t),
      .axi_resp_t(axi_resp_t),
      .MaxBeats(MaxBeats),
      .Outstanding(2)
  ) dut (
      .*
  );
  axi_monitor #(
      .axi_req_t(axi_req_t),
      .axi_resp_t(axi_resp_t),
      .Outstanding(4),
      .Boundary(1'b0),
      .AssumeManager(1'b1)
  ) i_manager (
      .clk_i,
      .rst_i,
      .axi_req (s_axi_req),
      .axi_resp(s_axi_resp)
  );
  axi_monitor #(
      .axi_req_t(axi_req_t),
      .axi_resp_t(axi_resp_t),
      .Outstanding(8),
      .AssumeSubordinate(1'b1)
  ) i_subordinate (
      .clk_i,
      .rst_i,
      .axi_req (m_axi_req),
      .axi_resp(m_axi_resp)
  );

  `RESET_FIRST
  `ASSERT(short_writes, !m_axi_req.aw_valid || 32'(m_axi_req.aw.len) < MaxBeats, "a write that is too long")
  `ASSERT(short_reads, !m_axi_req.ar_valid || 32'(m_axi_req.ar.len) < MaxBeats, "a read that is too long")

  // A burst with an error in any of its parts is answered with one.
  logic failed_q;
  always_ff @(posedge clk_i) begin
    if (b_valid && m_axi_req.b_ready) failed_q <= (failed_q || b_error) && !s_axi_resp.b_valid;
    if (rst_i) failed_q <= 1'b0;
  end
  `ASSERT(error_is_told, !s_axi_resp.b_valid || s_axi_resp.b.resp == axi_pkg::resp_e'({failed_q || b_error, 1'b0}),
          "the response is not the worst of the parts'")

  if (Writes) begin : gen_writes
    `COVER(joined_write, s_axi_resp.b_valid && b_ready && $past(b_valid && m_axi_req.b_ready && !s_axi_resp.b_valid))
  end else begin : gen_reads
    `COVER(joined_read, s_axi_resp.r_valid && r_ready && s_axi_resp.r.last && $past(
           r_valid && r_last && !s_axi_resp.r.last))
  end

endmodule
`default_nettype wire
