// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

// Asserts a rule for one side. In a proof about the other side the rule is assumed instead.
`define RULE(assumed, name, condition, sentence) \
  if (assumed) begin : gen_assume_``name \
    `ASSUME(name, condition) \
  end else begin : gen_``name \
    `ASSERT(name, condition, sentence) \
  end
`define KEPT(assumed, name, valid, ready, payload, sentence) \
  if (assumed) begin : gen_assume_``name \
    `ASSUME_NEXT(name, (valid) && !(ready), (valid) && (payload) == $past(payload)) \
  end else begin : gen_``name \
    `ASSERT_NEXT(name, (valid) && !(ready), (valid) && (payload) == $past(payload), sentence) \
  end

/// Watches an AXI4 port and holds both sides to the rules of the bus. For simulations and proofs: it has no outputs.
///
/// Behaviour: asserts these rules. Valid and payload stay until they are taken (A3.2.1). A burst has a legal length and
/// size, and stays within 4 KiB (A3.4.1). Write data end where AWLEN says. A write is answered once, after its address
/// and its last data (A3.3.1). A read is answered with one last beat. Responses carry ids of requests. In a proof,
/// AssumeManager or AssumeSubordinate turns the rules of that side into assumptions.
/// Reset: forgets transactions in flight.
/// Requirements: at most Outstanding transactions are in flight in each direction. At most Outstanding bursts of data
/// arrive before their addresses.
module axi_monitor #(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// The most transactions in flight that it can follow in each direction; a power of two, at least 2.
    parameter int unsigned Outstanding = 64,
    /// Also check that bursts stay within 4 KiB.
    parameter bit Boundary = 1'b1,
    /// In a proof: assume the rules of the manager, or of the subordinate, instead of asserting them.
    parameter bit AssumeManager = 1'b0,
    parameter bit AssumeSubordinate = 1'b0
) (
    input wire            clk_i,
    input wire            rst_i,
    input wire axi_req_t  axi_req,
    input wire axi_resp_t axi_resp
);

  if (Outstanding < 2 || 2 ** $clog2(Outstanding) != Outstanding) begin : gen_check_outstanding
    $fatal(1, "Outstanding must be a power of two and at least 2 in %m");
  end

`ifdef SYNTHESIS
  logic unused;
  assign unused = ^{clk_i, rst_i, axi_req, axi_resp};
`else
  localparam int unsigned Bits = $clog2(Outstanding);
  localparam int unsigned Ids = 2 ** $bits(axi_req.aw.id);
  localparam logic [2:0] FullSize = 3'($clog2($bits(axi_req.w.strb)));
  typedef logic [Bits:0] count_t;

  function automatic logic legal(axi_pkg::burst_e burst, logic [7:0] len, logic [2:0] size, logic [11:0] address);
    case (burst)
      axi_pkg::BurstIncr: return size <= FullSize && !(Boundary && axi_pkg::crosses_boundary(address, len, size));
      axi_pkg::BurstFixed: return size <= FullSize && len < 16;
      axi_pkg::BurstWrap:
      return size <= FullSize && (len inside {8'd1, 8'd3, 8'd7, 8'd15}) && (address & ((12'd1 << size) - 12'd1)) == '0;
      default: return 1'b0;
    endcase
  endfunction

  logic aw, w, b, ar, r;
  assign aw = axi_req.aw_valid && axi_resp.aw_ready;
  assign w  = axi_req.w_valid && axi_resp.w_ready;
  assign b  = axi_resp.b_valid && axi_req.b_ready;
  assign ar = axi_req.ar_valid && axi_resp.ar_ready;
  assign r  = axi_resp.r_valid && axi_req.r_ready;

  // ---- writes: counts of addresses, data bursts and responses so far, and the beats of the current burst
  count_t aw_q, w_q, b_q, data_ahead;
  logic [7:0] w_beats_q;
  logic [7:0] aw_len_q[Outstanding];
  logic [7:0] w_len_q[Outstanding];
  count_t [Ids-1:0] unanswered_q;
  logic aw_first;  // the address came before the data or with them
  logic [7:0] expected_len;
  assign data_ahead   = w_q - aw_q;
  assign aw_first     = data_ahead[Bits] || (data_ahead == '0 && aw);
  assign expected_len = data_ahead == '0 ? axi_req.aw.len : aw_len_q[w_q[Bits-1:0]];

  always_ff @(posedge clk_i) begin
    if (aw) begin
      aw_len_q[aw_q[Bits-1:0]] <= axi_req.aw.len;
      aw_q <= aw_q + 1'b1;
    end
    if (w) begin
      w_beats_q <= axi_req.w.last ? '0 : w_beats_q + 1'b1;
      if (axi_req.w.last) begin
        w_len_q[w_q[Bits-1:0]] <= w_beats_q;
        w_q <= w_q + 1'b1;
      end
    end
    if (b) b_q <= b_q + 1'b1;
    for (int i = 0; i < int'(Ids); i++) begin
      unanswered_q[i] <= unanswered_q[i] + count_t'(aw && 32'(axi_req.aw.id) == i)
                         - count_t'(b && 32'(axi_resp.b.id) == i);
    end
    if (rst_i) begin
      aw_q <= '0;
      w_q <= '0;
      b_q <= '0;
      w_beats_q <= '0;
      unanswered_q <= '0;
    end
  end

  // ---- reads: for each id the lengths of the reads in flight, and the beats of the oldest
  count_t [Ids-1:0] ar_q, r_q;
  logic [Ids-1:0][7:0] r_beats_q;
  logic [7:0] ar_len_q[Ids*Outstanding];
  count_t ar_now, r_now;
  logic [7:0] r_len;
  logic r_under_way;
  assign ar_now = ar_q[axi_req.ar.id];
  assign r_now = r_q[axi_resp.r.id];
  assign r_under_way = ar_q[axi_resp.r.id] != r_now;
  assign r_len = ar_len_q[32'(axi_resp.r.id)*Outstanding+32'(r_now[Bits-1:0])];

  always_ff @(posedge clk_i) begin
    if (ar) begin
      ar_len_q[32'(axi_req.ar.id)*Outstanding+32'(ar_now[Bits-1:0])] <= axi_req.ar.len;
      ar_q[axi_req.ar.id] <= ar_now + 1'b1;
    end
    if (r) begin
      r_beats_q[axi_resp.r.id] <= axi_resp.r.last ? '0 : r_beats_q[axi_resp.r.id] + 1'b1;
      if (axi_resp.r.last) r_q[axi_resp.r.id] <= r_now + 1'b1;
    end
    if (rst_i) begin
      ar_q <= '0;
      r_q <= '0;
      r_beats_q <= '0;
    end
  end

  logic len_fits;  // the length on AW agrees with the data that came before it
  assign len_fits = data_ahead == '0 ? axi_req.aw.len >= w_beats_q : axi_req.aw.len == w_len_q[aw_q[Bits-1:0]];

  localparam count_t Room = count_t'(Outstanding);
  `KEPT(AssumeManager, aw_kept, axi_req.aw_valid, axi_resp.aw_ready, axi_req.aw, "AW was withdrawn or changed")
  `KEPT(AssumeManager, w_kept, axi_req.w_valid, axi_resp.w_ready, axi_req.w, "W was withdrawn or changed")
  `KEPT(AssumeManager, ar_kept, axi_req.ar_valid, axi_resp.ar_ready, axi_req.ar, "AR was withdrawn or changed")
  `KEPT(AssumeSubordinate, b_kept, axi_resp.b_valid, axi_req.b_ready, axi_resp.b, "B was withdrawn or changed")
  `KEPT(AssumeSubordinate, r_kept, axi_resp.r_valid, axi_req.r_ready, axi_resp.r, "R was withdrawn or changed")

  `RULE(AssumeManager, aw_legal, !axi_req.aw_valid || legal(axi_req.aw.burst, axi_req.aw.len, axi_req.aw.size,
                                                            axi_req.aw.addr[11:0]), "an illegal burst on AW")
  `RULE(AssumeManager, ar_legal, !axi_req.ar_valid || legal(axi_req.ar.burst, axi_req.ar.len, axi_req.ar.size,
                                                            axi_req.ar.addr[11:0]), "an illegal burst on AR")
  `RULE(AssumeManager, last_placed, !(axi_req.w_valid && aw_first) || axi_req.w.last == (w_beats_q == expected_len),
        "WLAST is not where AWLEN says")
  `RULE(AssumeManager, data_ahead_fits, !(axi_req.aw_valid && !data_ahead[Bits]) || len_fits,
        "AWLEN does not say how much data came ahead of it")
  `RULE(AssumeManager, addresses_followed, count_t'(aw_q - b_q) < Room, "more writes are under way than it can follow")
  `RULE(AssumeManager, data_followed, count_t'(w_q - b_q) < Room, "more write data is under way than it can follow")
  `RULE(AssumeManager, reads_followed, count_t'(ar_now - r_q[axi_req.ar.id]) < Room,
        "more reads are under way than it can follow")
  `RULE(AssumeSubordinate, b_asked, !axi_resp.b_valid || unanswered_q[axi_resp.b.id] != '0,
        "a response to a write that nobody asked for")
  `RULE(AssumeSubordinate, b_after_data, !axi_resp.b_valid || (aw_q != b_q && w_q != b_q),
        "a response to a write before its address or its data")
  `RULE(AssumeSubordinate, r_asked, !axi_resp.r_valid || r_under_way, "read data that nobody asked for")
  `RULE(AssumeSubordinate, r_last_placed,
        !(axi_resp.r_valid && r_under_way) || axi_resp.r.last == (r_beats_q[axi_resp.r.id] == r_len),
        "RLAST is not where ARLEN says")
`endif

endmodule

`undef RULE
`undef KEPT
`default_nettype wire
