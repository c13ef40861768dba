// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Connects the shell's AXI4-Lite at 125 MHz to the registers of the cores at 250 MHz.
///
/// Behaviour: core n is at 4096 n. Other addresses, and a core in reset, read as 0 and ignore
/// writes, with OKAY: an error would become a failed PCIe transaction at the host, which some
/// hosts do not survive. There is one access at a time; reads and writes alternate.
/// Latency: about ten cycles of axil_clk_i, plus the core's access.
/// Reset: none, because an access in progress must be answered during any reset. It starts idle. rst_i
/// says that the cores are in reset: an access in progress is then answered as one to another address.
/// Requirements: whole-word writes (the shell has no strobes). Clocks may have any relation; accesses use cdc_bus.
module kv_box_registers
  import kv_core_pkg::*;
#(
    /// At most 256.
    parameter int unsigned Cores = 1
) (
    input wire axil_clk_i,
    input wire clk_i,
    input wire rst_i,

    // In the domain of axil_clk_i. The box has 2^20 bytes, so higher address bits are ignored.
    // verilator lint_off UNUSEDSIGNAL
    input  wire axi_pkg::axi_lite_req_t s_axil_req,
    // verilator lint_on UNUSEDSIGNAL
    output axi_pkg::axi_lite_resp_t     s_axil_resp,

    // In the domain of clk_i.
    output kv_axil_req_t       [Cores-1:0] m_axil_req,
    input  wire kv_axil_resp_t [Cores-1:0] m_axil_resp
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  if (Cores < 1 || Cores > 256) begin : gen_check_cores
    $fatal(1, "Cores must be 1 to 256 in %m");
  end

  // ---- the shell's side

  logic aw_there_q = 1'b0;
  logic w_there_q = 1'b0;
  logic ar_there_q = 1'b0;
  logic [19:0] aw_q, ar_q;
  logic [31:0] w_q;

  // The signals that cross between the clocks: an access, and its answer.
  typedef struct packed {
    logic write;
    logic [19:0] address;
    logic [31:0] data;
  } access_t;
  typedef struct packed {
    logic [31:0]    data;
    axi_pkg::resp_e resp;
  } answer_t;
  access_t ask_payload, access;
  answer_t answer_payload, answer;
  logic ask_valid, ask_ready, access_valid, access_ready, answer_valid, answer_ready, answered;

  logic b_valid_q = 1'b0;
  logic r_valid_q = 1'b0;
  logic under_way_q = 1'b0;
  logic write_q = 1'b0;  // the access under way, or the one before
  logic want_write, want_read, begin_write, begin_read, done;

  axi_pkg::resp_e b_resp_q;
  answer_t r_q;
  assign s_axil_resp = '{
          aw_ready: !aw_there_q,
          w_ready: !w_there_q,
          b: '{resp: b_resp_q},
          b_valid: b_valid_q,
          ar_ready: !ar_there_q,
          r: '{data: r_q.data, resp: r_q.resp},
          r_valid: r_valid_q
      };

  assign want_write = aw_there_q && w_there_q && !b_valid_q;
  assign want_read = ar_there_q && !r_valid_q;
  // No access is in progress, so the path to the cores is free.
  assign begin_write = !under_way_q && want_write && !(write_q && want_read);
  assign begin_read = !under_way_q && want_read && !begin_write;
  assign ask_valid = begin_write || begin_read;
  assign ask_payload = '{write: begin_write, address: begin_write ? aw_q : ar_q, data: w_q};
  assign done = under_way_q && answered && ask_ready;

  cdc_bus #(
      .Width($bits(access_t))
  ) i_access (
      .s_clk_i(axil_clk_i),
      .s_rst_i(1'b0),
      `STREAM_PORTS(s, ask_valid, ask_ready, ask_payload),
      .m_clk_i(clk_i),
      .m_rst_i(1'b0),
      `STREAM_PORTS(m, access_valid, access_ready, access)
  );
  cdc_bus #(
      .Width($bits(answer_t))
  ) i_answer (
      .s_clk_i(clk_i),
      .s_rst_i(1'b0),
      `STREAM_PORTS(s, answer_valid, answer_ready, answer_payload),
      .m_clk_i(axil_clk_i),
      .m_rst_i(1'b0),
      `STREAM_PORTS(m, answered, done, answer)
  );

  always_ff @(posedge axil_clk_i) begin
    if (s_axil_req.aw_valid && !aw_there_q) begin
      aw_there_q <= 1'b1;
      aw_q       <= s_axil_req.aw.addr[19:0];
    end
    if (s_axil_req.w_valid && !w_there_q) begin
      w_there_q <= 1'b1;
      w_q       <= s_axil_req.w.data;
    end
    if (s_axil_req.ar_valid && !ar_there_q) begin
      ar_there_q <= 1'b1;
      ar_q       <= s_axil_req.ar.addr[19:0];
    end
    if (s_axil_req.b_ready) b_valid_q <= 1'b0;
    if (s_axil_req.r_ready) r_valid_q <= 1'b0;
    if (ask_valid) begin
      under_way_q <= 1'b1;
      write_q     <= begin_write;
    end
    if (done) begin
      under_way_q <= 1'b0;
      if (write_q) begin
        b_valid_q  <= 1'b1;
        b_resp_q   <= answer.resp;
        aw_there_q <= 1'b0;
        w_there_q  <= 1'b0;
      end else begin
        r_valid_q  <= 1'b1;
        r_q        <= answer;
        ar_there_q <= 1'b0;
      end
    end
  end

  // ---- the cores' side

  logic busy_q = 1'b0;  // a core has the access
  logic [Cores-1:0] aw_valid_q = '0;
  logic [Cores-1:0] w_valid_q = '0;
  logic [Cores-1:0] ar_valid_q = '0;
  logic [7:0] core;
  logic [Cores-1:0] core_q;  // one of them
  logic fresh, beside, ends, forgets;
  // verilator lint_off UNUSEDSIGNAL
  kv_axil_resp_t of_core;  // what the one says that has the access
  // verilator lint_on UNUSEDSIGNAL
  logic [Cores-1:0] answers;

  assign core    = access.address[19:12];
  assign fresh   = access_valid && answer_ready && !busy_q;
  assign beside  = fresh && 32'(core) >= Cores;
  assign ends    = busy_q && |(core_q & answers);
  // A core in reset has lost the access or does not accept it.
  assign forgets = rst_i && (busy_q || fresh);

  always_comb begin
    of_core = '0;
    for (int i = 0; i < int'(Cores); i++) begin
      answers[i] = m_axil_resp[i].b_valid || m_axil_resp[i].r_valid;
      if (core_q[i]) of_core = m_axil_resp[i];
    end
  end

  // The access stays until its answer.
  assign answer_valid = beside || ends || forgets;
  assign access_ready = answer_valid;
  always_comb begin
    answer_payload = '0;
    if (ends && !forgets)
      answer_payload = '{data: of_core.r.data, resp: access.write ? of_core.b.resp : of_core.r.resp};
  end

  always_ff @(posedge clk_i) begin
    for (int i = 0; i < int'(Cores); i++) begin
      aw_valid_q[i] <= aw_valid_q[i] && !m_axil_resp[i].aw_ready;
      w_valid_q[i]  <= w_valid_q[i] && !m_axil_resp[i].w_ready;
      ar_valid_q[i] <= ar_valid_q[i] && !m_axil_resp[i].ar_ready;
    end
    if (fresh) begin
      for (int i = 0; i < int'(Cores); i++) begin
        core_q[i] <= 32'(core) == i;
        if (32'(core) == i) begin
          aw_valid_q[i] <= access.write;
          w_valid_q[i]  <= access.write;
          ar_valid_q[i] <= !access.write;
        end
      end
      busy_q <= !beside;
    end
    if (ends) busy_q <= 1'b0;
    if (forgets) begin
      busy_q     <= 1'b0;
      aw_valid_q <= '0;
      w_valid_q  <= '0;
      ar_valid_q <= '0;
    end
  end

  for (genvar i = 0; i < Cores; i++) begin : gen_core
    assign m_axil_req[i] = '{
            aw: '{addr: access.address[11:0]},
            aw_valid: aw_valid_q[i],
            w: '{data: access.data, strb: '1},
            w_valid: w_valid_q[i],
            b_ready: 1'b1,
            ar: '{addr: access.address[11:0]},
            ar_valid: ar_valid_q[i],
            r_ready: 1'b1
        };
  end

  `ASSERT(one_at_a_time, $onehot0(aw_valid_q | ar_valid_q), "two accesses at once")
  `ASSERT(answers_are_asked_for, answers == '0 || busy_q, "a core answers what nobody asked")
  `ASSERT(answer_fits, !answer_valid || answer_ready, "the answer before has not been taken")

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
