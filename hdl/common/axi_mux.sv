// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Connects several AXI4 managers to one subordinate.
///
/// Behaviour: managers take turns for each burst, separately on AW and AR. Data bursts follow whole, in the order of
/// their addresses. A manager that delays its data delays the others' data. At the subordinate, the id begins with the
/// manager's index. It routes responses back, in any order and interleaved.
/// Cuts: no path. An axi_cut behind the mux is nearly always right.
/// Latency: 0 cycles. The data of a burst can pass from the cycle after its address.
/// Reset: forgets transactions in flight, so a reset must reach both sides of the bus.
/// Requirements: all valid signals are low during reset.
module axi_mux #(
    /// The managers' bundles: see axi.svh.
    parameter type s_axi_req_t = axi_pkg::axi_req_t,
    parameter type s_axi_resp_t = axi_pkg::axi_resp_t,
    /// The subordinate's types: like the managers', with $clog2(Inputs) more bits of id.
    parameter type m_axi_req_t = axi_pkg::axi_joined_req_t,
    parameter type m_axi_resp_t = axi_pkg::axi_joined_resp_t,
    /// Managers; at least 2.
    parameter int unsigned Inputs = 4,
    /// The most bursts whose address was sent and whose data are not complete. A power of two, at least 2.
    parameter int unsigned Outstanding = 32
) (
    input wire clk_i,
    input wire rst_i,

    input  wire s_axi_req_t  [Inputs-1:0] s_axi_req,
    output s_axi_resp_t      [Inputs-1:0] s_axi_resp,
    output m_axi_req_t                    m_axi_req,
    input  wire m_axi_resp_t              m_axi_resp
);

  localparam int unsigned IndexWidth = $clog2(Inputs);
  localparam int unsigned IdWidth = $bits(s_axi_req[0].aw.id);
  localparam int unsigned AddressBits = $bits(s_axi_req[0].aw);

  if (Inputs < 2) begin : gen_check_inputs
    $fatal(1, "Inputs must be at least 2 in %m");
  end
  if ($bits(
          m_axi_req.aw.id
      ) != IdWidth + IndexWidth || $bits(
          m_axi_req.aw
      ) != AddressBits + IndexWidth) begin : gen_check_id
    $fatal(1, "the subordinate's id must have $clog2(Inputs) bits more than the managers' in %m");
  end
  if ($bits(m_axi_req.w) != $bits(s_axi_req[0].w)) begin : gen_check_data
    $fatal(1, "both sides must have the same width of data in %m");
  end
  if (Outstanding < 2 || 2 ** $clog2(Outstanding) != Outstanding) begin : gen_check_outstanding
    $fatal(1, "Outstanding must be a power of two and at least 2 in %m");
  end

  typedef logic [IndexWidth-1:0] index_t;
  typedef logic [AddressBits-1:0] address_t;

  // ---- addresses: 0 writes, 1 reads
  logic [1:0][Inputs-1:0] s_valid, s_ready;
  address_t [1:0][Inputs-1:0] s_address;
  address_t [1:0] address;
  logic [1:0] valid, ready, unused_last;
  index_t [1:0] index;
  for (genvar i = 0; i < 2; i++) begin : gen_address
    stream_arbiter #(
        .Inputs(Inputs),
        .Width (AddressBits)
    ) i_arbiter (
        .*,
        `STREAM_PORTS(s, s_valid[i], s_ready[i], s_address[i]),
        .s_last ('1),
        `STREAM_PORTS(m, valid[i], ready[i], address[i]),
        .m_last (unused_last[i]),
        .m_index(index[i])
    );
  end

  // The id is the first field of an address.
  assign m_axi_req.aw = {index[0], address[0]};
  assign m_axi_req.ar = {index[1], address[1]};

  // ---- write data: an address goes only when there is room to record its manager
  logic order_ready, order_valid, order_take;
  index_t holder;
  assign m_axi_req.aw_valid = valid[0] && order_ready;
  assign ready[0]           = m_axi_resp.aw_ready && order_ready;
  assign m_axi_req.ar_valid = valid[1];
  assign ready[1]           = m_axi_resp.ar_ready;

  stream_fifo #(
      .Width(IndexWidth),
      .Depth(Outstanding),
      .Block(1'b0)
  ) i_order (
      .*,
      `STREAM_PORTS(s, valid[0] && ready[0], order_ready, index[0]),
      `STREAM_PORTS(m, order_valid, order_take, holder)
  );

  assign m_axi_req.w       = s_axi_req[holder].w;
  assign m_axi_req.w_valid = order_valid && s_axi_req[holder].w_valid;
  assign order_take        = m_axi_req.w_valid && m_axi_resp.w_ready && m_axi_req.w.last;

  // ---- responses
  logic [Inputs-1:0] b_valid, b_ready, r_valid, r_ready;
  logic [$bits(m_axi_resp.b)-1:0] b;
  logic [$bits(m_axi_resp.r)-1:0] r;
  stream_demux #(
      .Outputs(Inputs),
      .Width  ($bits(m_axi_resp.b))
  ) i_b (
      .*,
      .select_i(m_axi_resp.b.id[IdWidth+:IndexWidth]),
      `STREAM_PORTS(s, m_axi_resp.b_valid, m_axi_req.b_ready, m_axi_resp.b),
      `STREAM_PORTS(m, b_valid, b_ready, b)
  );
  stream_demux #(
      .Outputs(Inputs),
      .Width  ($bits(m_axi_resp.r))
  ) i_r (
      .*,
      .select_i(m_axi_resp.r.id[IdWidth+:IndexWidth]),
      `STREAM_PORTS(s, m_axi_resp.r_valid, m_axi_req.r_ready, m_axi_resp.r),
      `STREAM_PORTS(m, r_valid, r_ready, r)
  );

  for (genvar i = 0; i < Inputs; i++) begin : gen_input
    assign s_valid[0][i]          = s_axi_req[i].aw_valid;
    assign s_valid[1][i]          = s_axi_req[i].ar_valid;
    assign s_address[0][i]        = s_axi_req[i].aw;
    assign s_address[1][i]        = s_axi_req[i].ar;
    assign b_ready[i]             = s_axi_req[i].b_ready;
    assign r_ready[i]             = s_axi_req[i].r_ready;
    assign s_axi_resp[i].aw_ready = s_ready[0][i];
    assign s_axi_resp[i].ar_ready = s_ready[1][i];
    assign s_axi_resp[i].w_ready  = order_valid && 32'(holder) == i && m_axi_resp.w_ready;
    // The narrower type of the id drops the index in its top bits.
    assign s_axi_resp[i].b        = b[$bits(s_axi_resp[0].b)-1:0];
    assign s_axi_resp[i].b_valid  = b_valid[i];
    assign s_axi_resp[i].r        = r[$bits(s_axi_resp[0].r)-1:0];
    assign s_axi_resp[i].r_valid  = r_valid[i];
  end
  logic unused_index;
  assign unused_index = ^{b[$bits(b)-1:$bits(s_axi_resp[0].b)], r[$bits(r)-1:$bits(s_axi_resp[0].r)]};

  `ASSERT(holder_exists, !order_valid || 32'(holder) < Inputs,
          "write data are awaited of a manager that does not exist")

endmodule
`default_nettype wire
