// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Splits AXI4 bursts that are too long or that cross 4 KiB, and joins their responses.
///
/// Behaviour: a burst becomes bursts that lie between multiples of MaxBeats beats, and of 4 KiB: at most MaxBeats beats each, in the order of
/// their addresses. A write is answered once, with the worst response of its parts; of a read's parts only the last ends with RLAST. At
/// the subordinate all transactions have id 0, so they are answered in order, and the manager's ids come back in that order.
/// Throughput: a part a cycle on AW and on AR, a beat a cycle on W and on R, without a pause between bursts.
/// Cuts: valid and payload of AW and AR. W, B and R pass through, with their readies.
/// Latency: 1 cycle on AW and AR, 0 on B and R. A part's data go from the cycle after its address on.
/// Reset: forgets what is under way, so a reset must reach both sides of the bus.
/// Requirements: in reset no valid is high. Bursts are INCR; they may cross 4 KiB.
module axi_split #(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Beats of the longest part; a power of two, at most 256.
    parameter int unsigned MaxBeats = 256,
    /// Parts under way in each direction; a power of two, at least 2.
    parameter int unsigned Outstanding = 32
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t  s_axi_req,
    output axi_resp_t      s_axi_resp,
    output axi_req_t       m_axi_req,
    input  wire axi_resp_t m_axi_resp
);

  if (MaxBeats < 1 || MaxBeats > 256 || 2 ** $clog2(MaxBeats) != MaxBeats) begin : gen_check_beats
    $fatal(1, "MaxBeats must be a power of two and at most 256 in %m");
  end
  if (Outstanding < 2 || 2 ** $clog2(Outstanding) != Outstanding) begin : gen_check_outstanding
    $fatal(1, "Outstanding must be a power of two and at least 2 in %m");
  end

  localparam int unsigned AddressWidth = $bits(s_axi_req.aw.addr);
  localparam int unsigned IdWidth = $bits(s_axi_req.aw.id);
  localparam int unsigned LimitWidth = $clog2(axi_pkg::BoundaryBits + 1);

  // What the parts of a burst share.
  typedef struct packed {
    logic [IdWidth-1:0] id;
    logic [2:0]         size;
    logic [3:0]         cache;
    logic [2:0]         prot;
  } shared_t;

  // A part whose response is awaited: its burst's id, and whether it is the last.
  typedef struct packed {
    logic [IdWidth-1:0] id;
    logic               last;
  } awaited_t;

  // Parts are at most MaxBeats beats and 4 KiB long.
  function automatic logic [LimitWidth-1:0] limit_of(logic [2:0] size);
    logic [4:0] bits;
    bits = 5'($clog2(MaxBeats)) + 5'(size);
    return bits < 5'(axi_pkg::BoundaryBits) ? LimitWidth'(bits) : LimitWidth'(axi_pkg::BoundaryBits);
  endfunction

  // ---- AW and AR: direction 0 writes, direction 1 reads

  logic [1:0] s_valid, s_ready, valid, ready, last, room;
  logic [1:0][AddressWidth-1:0] s_address, address;
  logic [1:0][15:0] s_length;
  logic [1:0][2:0] s_size;
  logic [1:0][axi_pkg::BoundaryBits:0] length;
  shared_t [1:0] s_shared, shared;
  logic [1:0][7:0] len;
  logic lens_ready;

  assign s_valid = {s_axi_req.ar_valid, s_axi_req.aw_valid};
  assign {s_axi_resp.ar_ready, s_axi_resp.aw_ready} = s_ready;
  assign s_address = {s_axi_req.ar.addr, s_axi_req.aw.addr};
  assign s_size = {s_axi_req.ar.size, s_axi_req.aw.size};
  assign s_shared[0] = {s_axi_req.aw.id, s_axi_req.aw.size, s_axi_req.aw.cache, s_axi_req.aw.prot};
  assign s_shared[1] = {s_axi_req.ar.id, s_axi_req.ar.size, s_axi_req.ar.cache, s_axi_req.ar.prot};
  assign s_length[0] = axi_pkg::burst_bytes(s_axi_req.aw.addr[6:0], s_axi_req.aw.len, s_axi_req.aw.size);
  assign s_length[1] = axi_pkg::burst_bytes(s_axi_req.ar.addr[6:0], s_axi_req.ar.len, s_axi_req.ar.size);

  for (genvar i = 0; i < 2; i++) begin : gen_direction
    logic unused_first;
    range_split #(
        .AddressWidth(AddressWidth),
        .LengthWidth(16),
        .MaxLimit(axi_pkg::BoundaryBits),
        .UserWidth($bits(shared_t))
    ) i_parts (
        .*,
        .s_valid(s_valid[i]),
        .s_ready(s_ready[i]),
        .s_address(s_address[i]),
        .s_length(s_length[i]),
        .s_limit(limit_of(s_size[i])),
        .s_user(s_shared[i]),
        .m_valid(valid[i]),
        .m_ready(ready[i]),
        .m_address(address[i]),
        .m_length(length[i]),
        .m_first(unused_first),
        .m_last(last[i]),
        .m_user(shared[i])
    );
    assign len[i] = axi_pkg::burst_len(address[i][6:0], 16'(length[i]), shared[i].size);
  end

  always_comb begin
    m_axi_req.aw       = '0;
    m_axi_req.aw.addr  = address[0];
    m_axi_req.aw.len   = len[0];
    m_axi_req.aw.size  = shared[0].size;
    m_axi_req.aw.burst = axi_pkg::BurstIncr;
    m_axi_req.aw.cache = shared[0].cache;
    m_axi_req.aw.prot  = shared[0].prot;
    m_axi_req.ar       = '0;
    m_axi_req.ar.addr  = address[1];
    m_axi_req.ar.len   = len[1];
    m_axi_req.ar.size  = shared[1].size;
    m_axi_req.ar.burst = axi_pkg::BurstIncr;
    m_axi_req.ar.cache = shared[1].cache;
    m_axi_req.ar.prot  = shared[1].prot;
  end

  // A part goes when there is room to remember it.
  assign m_axi_req.aw_valid = valid[0] && room[0] && lens_ready;
  assign m_axi_req.ar_valid = valid[1] && room[1];
  assign ready              = {room[1] && m_axi_resp.ar_ready, room[0] && lens_ready && m_axi_resp.aw_ready};

  // ---- W: its last is made anew, where each part ends

  logic len_valid, w_take;
  logic [7:0] w_len, beat_q;
  stream_fifo #(
      .Width(8),
      .Depth(Outstanding),
      .Block(1'b0)
  ) i_lens (
      .*,
      .s_valid  (valid[0] && ready[0]),
      .s_ready  (lens_ready),
      .s_payload(len[0]),
      .m_valid  (len_valid),
      .m_ready  (w_take && m_axi_req.w.last),
      .m_payload(w_len)
  );

  assign m_axi_req.w_valid  = s_axi_req.w_valid && len_valid;
  assign s_axi_resp.w_ready = m_axi_resp.w_ready && len_valid;
  assign w_take             = m_axi_req.w_valid && m_axi_resp.w_ready;
  always_comb begin
    m_axi_req.w      = s_axi_req.w;
    m_axi_req.w.last = beat_q == w_len;
  end
  always_ff @(posedge clk_i) begin
    if (w_take) beat_q <= m_axi_req.w.last ? '0 : beat_q + 1'b1;
    if (rst_i) beat_q <= '0;
  end

  // ---- B and R: what is awaited, in order

  awaited_t [1:0] awaited;
  logic [1:0] is_awaited, came;
  for (genvar i = 0; i < 2; i++) begin : gen_awaited
    stream_fifo #(
        .Width($bits(awaited_t)),
        .Depth(Outstanding),
        .Block(1'b0)
    ) i_awaited (
        .*,
        .s_valid  (valid[i] && ready[i]),
        .s_ready  (room[i]),
        .s_payload({shared[i].id, last[i]}),
        .m_valid  (is_awaited[i]),
        .m_ready  (came[i]),
        .m_payload(awaited[i])
    );
  end

  // The worst response of the burst's parts so far.
  axi_pkg::resp_e worst_q;
  assign s_axi_resp.b.id    = awaited[0].id;
  assign s_axi_resp.b.resp  = axi_pkg::worse(worst_q, m_axi_resp.b.resp);
  assign s_axi_resp.b_valid = m_axi_resp.b_valid && awaited[0].last;
  assign m_axi_req.b_ready  = s_axi_req.b_ready || !awaited[0].last;
  assign came[0]            = m_axi_resp.b_valid && m_axi_req.b_ready;
  always_ff @(posedge clk_i) begin
    if (came[0]) worst_q <= awaited[0].last ? axi_pkg::RespOkay : s_axi_resp.b.resp;
    if (rst_i) worst_q <= axi_pkg::RespOkay;
  end

  always_comb begin
    s_axi_resp.r      = m_axi_resp.r;
    s_axi_resp.r.id   = awaited[1].id;
    s_axi_resp.r.last = m_axi_resp.r.last && awaited[1].last;
  end
  assign s_axi_resp.r_valid = m_axi_resp.r_valid;
  assign m_axi_req.r_ready  = s_axi_req.r_ready;
  assign came[1]            = m_axi_resp.r_valid && s_axi_req.r_ready && m_axi_resp.r.last;

  `ASSERT(writes_are_incr, !s_axi_req.aw_valid || s_axi_req.aw.burst == axi_pkg::BurstIncr, "a write that is not INCR")
  `ASSERT(reads_are_incr, !s_axi_req.ar_valid || s_axi_req.ar.burst == axi_pkg::BurstIncr, "a read that is not INCR")
  `ASSERT(last_agrees, !(m_axi_req.w_valid && s_axi_req.w.last) || m_axi_req.w.last, "write data ends within a part")
  `ASSERT(b_awaited, !m_axi_resp.b_valid || is_awaited[0], "a response to a write that nobody asked for")
  `ASSERT(r_awaited, !m_axi_resp.r_valid || is_awaited[1], "read data that nobody asked for")

endmodule
`default_nettype wire
