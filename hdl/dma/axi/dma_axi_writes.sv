// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Posted writes of the DMA engine as AXI4 bursts.
///
/// Behaviour: a write becomes one INCR burst of lines of 64 bytes from its first byte's address on, with id 0, in the
/// order of the writes. Bytes move up to the lanes of their addresses; strobes mark them. An error at B has no effect,
/// as with a posted write on PCIe. A write waits while Outstanding writes have no answer.
/// Throughput: a beat a cycle. A write whose last bytes reach into one more line takes one more cycle.
/// Cuts: valid and payload, and AW's ready.
/// Latency: write to its address 1 cycle, to its data 2.
/// Reset: forgets writes in flight, so both sides of the bus must be reset.
/// Requirements: no valid is high during reset. Writes are as in write_t.
module dma_axi_writes
  import dma_pkg::*;
#(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Bursts in flight; at least 1.
    parameter int unsigned Outstanding = 32
) (
    input wire clk_i,
    input wire rst_i,

    `STREAM_RECEIVER(s_write, write_t)

    // The write channels; the read channels are idle.
    output axi_req_t       m_axi_req,
    // verilator lint_off UNUSEDSIGNAL
    input  wire axi_resp_t m_axi_resp
    // verilator lint_on UNUSEDSIGNAL
);

  // ---- addresses
  typedef struct packed {
    logic [7:0]  len;
    logic [63:0] addr;
  } address_t;
  address_t asked, address;
  logic asks, may, credit, address_ready, up_valid, up_ready;
  logic [12:0] less, reach;  // bytes less 1, and the same from the first line's begin on
  assign less = s_write_payload.bytes - 13'd1;
  assign reach = 13'(s_write_payload.addr[5:0]) + less;
  assign asked = '{len: {1'b0, reach[12:6]}, addr: s_write_payload.addr};
  // The first beat leaves together with its address.
  assign may = !s_write_payload.first || (credit && address_ready);
  assign asks = s_write_valid && s_write_payload.first && credit && up_ready;
  assign up_valid = s_write_valid && may;
  assign s_write_ready = up_ready && may;
  stream_register #(
      .Width($bits(address_t))
  ) i_address (
      .*,
      `STREAM_PORTS(s, asks, address_ready, asked),
      `STREAM_PORTS(m, m_axi_req.aw_valid, m_axi_resp.aw_ready, address)
  );
  // verilator lint_off PINCONNECTEMPTY
  credit_counter #(
      .Credits(Outstanding)
  ) i_credit (
      .*,
      .take_i(asks && address_ready),
      .give_i(m_axi_resp.b_valid),
      .available_o(credit),
      .count_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- data, moved up to their lanes
  typedef struct packed {
    logic             more;  // the last bytes reach into one more line
    logic [5:0] from;        // the first byte's lane
    logic [5:0]       to;    // the last byte's lane
  } place_t;
  typedef struct packed {
    logic   first;
    logic   last;
    place_t place;
  } about_t;
  place_t place, place_q;
  about_t about;
  logic [511:0] data, before_q;
  logic valid, ready;
  // All beats but the last have 64 bytes. So the carry out of the lower bits says whether the last one needs two lines.
  always_comb begin
    place = place_q;
    if (s_write_payload.first) begin
      place.more = reach[6] != less[6];
      place.from = s_write_payload.addr[5:0];
      place.to   = reach[5:0];
    end
  end
  always_ff @(posedge clk_i) if (s_write_valid) place_q <= place;
  dma_axi_rotate #(
      .UserWidth($bits(about_t))
  ) i_up (
      .*,
      .s_valid(up_valid),
      .s_ready(up_ready),
      .s_data (s_write_payload.data),
      .s_down (-place.from),
      .s_user ({s_write_payload.first, s_write_payload.last, place}),
      .m_valid(valid),
      .m_ready(ready),
      .m_data (data),
      .m_user (about)
  );

  // ---- a beat: its lower lanes are the rest of the line before it
  logic rest_q, final_;  // the last line has only such a rest
  logic [5:0] from, to;
  assign from   = about.first && !rest_q ? about.place.from : '0;
  assign final_ = about.last && (!about.place.more || rest_q);
  assign to     = final_ ? about.place.to : '1;
  assign ready  = m_axi_resp.w_ready && (!about.last || final_);
  always_ff @(posedge clk_i) begin
    if (valid && m_axi_resp.w_ready) rest_q <= about.last && !final_;
    if (valid && ready) before_q <= data;
    if (rst_i) rest_q <= 1'b0;
  end

  always_comb begin
    m_axi_req.aw       = '0;
    m_axi_req.aw.addr  = address.addr;
    m_axi_req.aw.len   = address.len;
    m_axi_req.aw.size  = 3'd6;
    m_axi_req.aw.burst = axi_pkg::BurstIncr;
    m_axi_req.aw.cache = axi_pkg::CacheNormal;
    m_axi_req.aw.prot  = axi_pkg::ProtData;
    for (int i = 0; i < 64; i++) begin
      m_axi_req.w.data[8*i+:8] = rest_q || 6'(i) >= about.place.from ? data[8*i+:8] : before_q[8*i+:8];
      m_axi_req.w.strb[i]      = 6'(i) >= from && 6'(i) <= to;
    end
    m_axi_req.w.last   = final_;
    m_axi_req.w_valid  = valid;
    m_axi_req.b_ready  = 1'b1;
    m_axi_req.ar       = '0;
    m_axi_req.ar_valid = 1'b0;
    m_axi_req.r_ready  = 1'b0;
  end

  `ASSERT(within_page, !asks || 13'(s_write_payload.addr[11:0]) + s_write_payload.bytes <= 13'd4096,
          "a write crosses a page")
  `ASSERT(of_bytes, !asks || s_write_payload.bytes != '0, "a write of no bytes")
  `ASSERT_NEXT(data_kept, valid && !m_axi_resp.w_ready, valid && m_axi_req.w == $past(m_axi_req.w),
               "write data were withdrawn or changed before they were taken")

endmodule
`default_nettype wire
