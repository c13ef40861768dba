// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// A simple AXI4-Lite subordinate for registers. It handles one access at a time.
///
/// Behaviour: write_o or read_o, never both, stays high until done_i. The two lowest bits of address_o are 0. In the
/// cycle of done_i the user takes the write or gives read_data_i, and sets error_i if the register does not exist
/// (SLVERR). Registers that answer at once tie done_i to 1. The address and the data of a write may come in any order,
/// any time apart. Waiting reads and writes alternate. Cuts all paths between bus and user.
/// Latency: with done_i = 1, 3 cycles from address (and data) to response; an access every 3 cycles.
/// Reset: forgets accesses in flight.
/// Requirements: the user must obey write_strobe_o, and done_i must come eventually.
module axi_lite_registers #(
    parameter type axi_req_t = axi_pkg::axi_lite_req_t,
    parameter type axi_resp_t = axi_pkg::axi_lite_resp_t,
    /// Number of low address bits that are decoded; at least 3, at most the width of the bus's address.
    parameter int unsigned AddressWidth = 12
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL
    input  wire axi_req_t s_axil_req,
    // verilator lint_on UNUSEDSIGNAL
    output axi_resp_t     s_axil_resp,

    output logic                    write_o,
    output logic                    read_o,
    output logic [AddressWidth-1:0] address_o,
    output logic [            31:0] write_data_o,
    output logic [             3:0] write_strobe_o,
    input  wire                     done_i,
    input  wire  [            31:0] read_data_i,
    input  wire                     error_i
);

  if (AddressWidth < 3 || AddressWidth > $bits(s_axil_req.aw.addr)) begin : gen_check_address_width
    $fatal(1, "AddressWidth must be at least 3, and at most the address's, in %m");
  end

  // Requests that have arrived and are not yet carried out.
  logic aw_valid_q, w_valid_q, ar_valid_q;
  logic [AddressWidth-3:0] aw_q, ar_q;
  logic [31:0] data_q;
  logic [ 3:0] strobe_q;
  // Responses, and the access in progress.
  logic b_valid_q, r_valid_q, error_q, read_error_q;
  logic [31:0] read_data_q;
  logic write_q, read_q, read_next_q;

  logic may_write, may_read;
  assign may_write = aw_valid_q && w_valid_q && !b_valid_q;
  assign may_read = ar_valid_q && !r_valid_q;

  assign s_axil_resp = '{
          aw_ready: !aw_valid_q,
          w_ready: !w_valid_q,
          b: '{resp: error_q ? axi_pkg::RespSlvErr : axi_pkg::RespOkay},
          b_valid: b_valid_q,
          ar_ready: !ar_valid_q,
          r: '{data: read_data_q, resp: read_error_q ? axi_pkg::RespSlvErr : axi_pkg::RespOkay},
          r_valid: r_valid_q
      };

  assign write_o = write_q;
  assign read_o = read_q;
  assign address_o = {write_q ? aw_q : ar_q, 2'b00};
  assign write_data_o = data_q;
  assign write_strobe_o = strobe_q;

  always_ff @(posedge clk_i) begin
    if (!aw_valid_q) begin
      aw_valid_q <= s_axil_req.aw_valid;
      aw_q <= s_axil_req.aw.addr[AddressWidth-1:2];
    end
    if (!w_valid_q) begin
      w_valid_q <= s_axil_req.w_valid;
      data_q <= s_axil_req.w.data;
      strobe_q <= s_axil_req.w.strb;
    end
    if (!ar_valid_q) begin
      ar_valid_q <= s_axil_req.ar_valid;
      ar_q <= s_axil_req.ar.addr[AddressWidth-1:2];
    end
    if (s_axil_req.b_ready) b_valid_q <= 1'b0;
    if (s_axil_req.r_ready) r_valid_q <= 1'b0;

    if (write_q && done_i) begin
      write_q <= 1'b0;
      aw_valid_q <= 1'b0;
      w_valid_q <= 1'b0;
      b_valid_q <= 1'b1;
      error_q <= error_i;
    end else if (read_q && done_i) begin
      read_q <= 1'b0;
      ar_valid_q <= 1'b0;
      r_valid_q <= 1'b1;
      read_error_q <= error_i;
      read_data_q <= read_data_i;
    end else if (!write_q && !read_q) begin
      read_q <= may_read && (read_next_q || !may_write);
      write_q <= may_write && !(may_read && read_next_q);
      read_next_q <= !may_read || (may_write && !read_next_q);
    end

    if (rst_i) begin
      aw_valid_q <= 1'b0;
      w_valid_q <= 1'b0;
      ar_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
      r_valid_q <= 1'b0;
      write_q <= 1'b0;
      read_q <= 1'b0;
      read_next_q <= 1'b0;
    end
  end

  `ASSERT(one_access, !(write_o && read_o), "a read and a write at once")
  `ASSERT_NEXT(b_kept, s_axil_resp.b_valid && !s_axil_req.b_ready, s_axil_resp.b_valid && s_axil_resp.b.resp == $past
               (s_axil_resp.b.resp), "a write's response was withdrawn or changed")
  `ASSERT_NEXT(r_kept, s_axil_resp.r_valid && !s_axil_req.r_ready, s_axil_resp.r_valid && s_axil_resp.r.resp == $past
               (s_axil_resp.r.resp), "a read's response was withdrawn or changed")
  `ASSERT_NEXT(data_kept, s_axil_resp.r_valid && !s_axil_req.r_ready, s_axil_resp.r.data == $past(s_axil_resp.r.data),
               "the data of a read's response changed")

endmodule
`default_nettype wire
