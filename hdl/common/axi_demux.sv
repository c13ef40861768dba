// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Connects one AXI4 manager to several subordinates, selected by address.
///
/// Behaviour: a transaction goes to the output whose region holds its address, with id 0. Responses return in request
/// order, separately for each direction, with the manager's ids. A transaction outside all regions is answered with
/// DECERR, and its write data are discarded.
/// Without Exclusive, transactions to several outputs may be in flight. If an output leads to an axi_mux, the orders of
/// two managers can deadlock. With Exclusive, a transaction waits until those to other outputs are answered. Throughput
/// over all outputs: one beat per cycle on W and on R; without Exclusive one transaction per cycle.
/// Cuts: no path. Only the routes of write data and responses come from registers.
/// Latency: 0 cycles. The data of a burst can pass from the cycle after its address.
/// Reset: forgets transactions in flight, so a reset must reach both sides of the bus.
/// Requirements: all valid signals are low during reset.
module axi_demux #(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Outputs; at least 2.
    parameter int unsigned Outputs = 2,
    /// The region of each output; they do not overlap.
    parameter axi_pkg::region_t [Outputs-1:0] Regions = {64'h1000, 64'h1000, 64'h0, 64'h1000},
    /// Allow transactions to only one output at a time. A crossbar needs this.
    parameter bit Exclusive = 1'b0,
    /// Transactions in flight in each direction; a power of two, at least 2.
    parameter int unsigned Outstanding = 32
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t                s_axi_req,
    output axi_resp_t                    s_axi_resp,
    output axi_req_t       [Outputs-1:0] m_axi_req,
    input  wire axi_resp_t [Outputs-1:0] m_axi_resp
);

  if (Outputs < 2) begin : gen_check_outputs
    $fatal(1, "Outputs must be at least 2 in %m");
  end
  if (Outstanding < 2 || 2 ** $clog2(Outstanding) != Outstanding) begin : gen_check_outstanding
    $fatal(1, "Outstanding must be a power of two and at least 2 in %m");
  end
  for (genvar i = 0; i < Outputs; i++) begin : gen_check_region
    if (!axi_pkg::region_is_valid(Regions[i])) begin : gen_invalid
      $fatal(1, "a region's size must be a power of two, and its base a multiple of it, in %m");
    end
    for (genvar j = 0; j < i; j++) begin : gen_other
      if (axi_pkg::in_region(
              Regions[i].base, Regions[j]
          ) || axi_pkg::in_region(
              Regions[j].base, Regions[i]
          )) begin : gen_overlap
        $fatal(1, "two regions overlap in %m");
      end
    end
  end

  localparam int unsigned IndexWidth = $clog2(Outputs + 1);
  localparam int unsigned IdWidth = $bits(s_axi_req.aw.id);
  localparam int unsigned CountWidth = $clog2(Outstanding + 1);
  typedef logic [IndexWidth-1:0] index_t;
  localparam index_t Nowhere = IndexWidth'(Outputs);

  function automatic index_t output_of(logic [63:0] address);
    index_t found;
    found = Nowhere;
    for (int i = 0; i < int'(Outputs); i++) if (axi_pkg::in_region(address, Regions[i])) found = index_t'(i);
    return found;
  endfunction

  // For each awaited response: the output, the manager's id and the length.
  typedef struct packed {
    index_t             where;
    logic [IdWidth-1:0] id;
    logic [7:0]         len;
  } awaited_t;

  // ---- addresses: 0 writes, 1 reads
  logic [1:0] s_valid, go, ready, room, is_awaited, came;
  logic [1:0][Outputs:0] m_ready;  // one more element, for Nowhere
  index_t [1:0] where, last_q;
  awaited_t [1:0] asked, awaited;
  logic data_room;

  assign s_valid = {s_axi_req.ar_valid, s_axi_req.aw_valid};
  assign where = {output_of(64'(s_axi_req.ar.addr)), output_of(64'(s_axi_req.aw.addr))};
  assign asked[0] = {where[0], s_axi_req.aw.id, s_axi_req.aw.len};
  assign asked[1] = {where[1], s_axi_req.ar.id, s_axi_req.ar.len};
  assign {s_axi_resp.ar_ready, s_axi_resp.aw_ready} = ready;

  for (genvar i = 0; i < 2; i++) begin : gen_direction
    assign go[i]    = room[i] && (i == 1 || data_room) && (!Exclusive || !is_awaited[i] || last_q[i] == where[i]);
    assign ready[i] = go[i] && m_ready[i][where[i]];

    always_ff @(posedge clk_i) begin
      if (s_valid[i] && ready[i]) last_q[i] <= where[i];
      if (rst_i) last_q[i] <= '0;
    end

    stream_fifo #(
        .Width($bits(awaited_t)),
        .Depth(Outstanding),
        .Block(1'b0)
    ) i_awaited (
        .*,
        `STREAM_PORTS(s, s_valid[i] && ready[i], room[i], asked[i]),
        `STREAM_PORTS(m, is_awaited[i], came[i], awaited[i])
    );
  end

  // ---- write data
  logic data_valid, data_take, w_ready;
  index_t data_where;
  logic [Outputs:0] m_w_ready;
  stream_fifo #(
      .Width(IndexWidth),
      .Depth(Outstanding),
      .Block(1'b0)
  ) i_data (
      .*,
      `STREAM_PORTS(s, s_valid[0] && ready[0], data_room, where[0]),
      `STREAM_PORTS(m, data_valid, data_take, data_where)
  );
  assign w_ready            = data_valid && m_w_ready[data_where];
  assign data_take          = s_axi_req.w_valid && w_ready && s_axi_req.w.last;
  assign s_axi_resp.w_ready = w_ready;

  // ---- responses. For addresses outside all regions: count of bursts whose data were taken, and beat number of a read
  logic [CountWidth-1:0] taken_q;
  logic [7:0] beat_q;
  assign came[0] = s_axi_resp.b_valid && s_axi_req.b_ready;
  assign came[1] = s_axi_resp.r_valid && s_axi_req.r_ready && s_axi_resp.r.last;

  always_comb begin
    s_axi_resp.b.resp  = axi_pkg::RespDecErr;
    s_axi_resp.b_valid = is_awaited[0] && taken_q != '0;
    s_axi_resp.r       = '0;
    s_axi_resp.r.resp  = axi_pkg::RespDecErr;
    s_axi_resp.r.last  = beat_q == awaited[1].len;
    s_axi_resp.r_valid = is_awaited[1];
    for (int i = 0; i < int'(Outputs); i++) begin
      if (32'(awaited[0].where) == i) begin
        s_axi_resp.b.resp  = m_axi_resp[i].b.resp;
        s_axi_resp.b_valid = is_awaited[0] && m_axi_resp[i].b_valid;
      end
      if (32'(awaited[1].where) == i) begin
        s_axi_resp.r       = m_axi_resp[i].r;
        s_axi_resp.r_valid = is_awaited[1] && m_axi_resp[i].r_valid;
      end
    end
    s_axi_resp.b.id = awaited[0].id;
    s_axi_resp.r.id = awaited[1].id;
  end

  always_ff @(posedge clk_i) begin
    taken_q <= taken_q + CountWidth'(data_take && data_where == Nowhere)
               - CountWidth'(came[0] && awaited[0].where == Nowhere);
    if (s_axi_resp.r_valid && s_axi_req.r_ready) beat_q <= s_axi_resp.r.last ? '0 : beat_q + 1'b1;
    if (rst_i) begin
      taken_q <= '0;
      beat_q  <= '0;
    end
  end

  // ---- the outputs
  assign {m_ready[1][Outputs], m_ready[0][Outputs], m_w_ready[Outputs]} = '1;
  for (genvar i = 0; i < Outputs; i++) begin : gen_output
    always_comb begin
      m_axi_req[i].aw       = s_axi_req.aw;
      m_axi_req[i].aw.id    = '0;
      m_axi_req[i].aw_valid = s_valid[0] && go[0] && 32'(where[0]) == i;
      m_axi_req[i].w        = s_axi_req.w;
      m_axi_req[i].w_valid  = s_axi_req.w_valid && data_valid && 32'(data_where) == i;
      m_axi_req[i].b_ready  = s_axi_req.b_ready && is_awaited[0] && 32'(awaited[0].where) == i;
      m_axi_req[i].ar       = s_axi_req.ar;
      m_axi_req[i].ar.id    = '0;
      m_axi_req[i].ar_valid = s_valid[1] && go[1] && 32'(where[1]) == i;
      m_axi_req[i].r_ready  = s_axi_req.r_ready && is_awaited[1] && 32'(awaited[1].where) == i;
    end
    assign m_ready[0][i] = m_axi_resp[i].aw_ready;
    assign m_ready[1][i] = m_axi_resp[i].ar_ready;
    assign m_w_ready[i]  = m_axi_resp[i].w_ready;
    `ASSERT(b_in_turn, !m_axi_resp[i].b_valid || is_awaited[0], "a response to a write that nobody asked for")
    `ASSERT(r_in_turn, !m_axi_resp[i].r_valid || is_awaited[1], "read data that nobody asked for")
  end

endmodule
`default_nettype wire
