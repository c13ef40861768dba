// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// From the shell's AXI4-Lite, at 125 MHz, to the registers of the cores, at 250 MHz.
///
/// Behaviour: core n is at 4096 n. What lies beside the cores, and a core that is in reset, reads as 0 and ignores writes, with OKAY: an
/// error would come to the host as a failed PCIe transaction, which some hosts do not survive. One access at a time; reads and writes take turns.
/// Latency: an access takes some ten cycles of axil_clk_i and what the core takes.
/// Reset: none, since an access under way must be answered whatever is reset; it begins idle when the FPGA has been configured. rst_i says that
/// the cores are being reset: the access under way is answered as one beside the cores.
/// Requirements: the two clocks may have any relation; an access and its answer cross by cdc_bus. The shell has no strobes: words are written whole.
module kv_box_registers #(
    /// At most 256.
    parameter int unsigned Cores = 1
) (
    input wire axil_clk_i,
    input wire clk_i,
    input wire rst_i,

    // In the domain of axil_clk_i. The box has 2^20 bytes, and higher bits of addresses say nothing.
    // verilator lint_off UNUSEDSIGNAL
    input  wire  [31:0] s_axil_awaddr,
    // verilator lint_on UNUSEDSIGNAL
    input  wire         s_axil_awvalid,
    output logic        s_axil_awready,
    input  wire  [31:0] s_axil_wdata,
    input  wire         s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  wire         s_axil_bready,
    // verilator lint_off UNUSEDSIGNAL
    input  wire  [31:0] s_axil_araddr,
    // verilator lint_on UNUSEDSIGNAL
    input  wire         s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  wire         s_axil_rready,

    // In the domain of clk_i. What all cores may see alike is there once.
    output logic [     11:0]       m_axil_awaddr,
    output logic [Cores-1:0]       m_axil_awvalid,
    input  wire  [Cores-1:0]       m_axil_awready,
    output logic [     31:0]       m_axil_wdata,
    output logic [Cores-1:0]       m_axil_wvalid,
    input  wire  [Cores-1:0]       m_axil_wready,
    input  wire  [Cores-1:0][ 1:0] m_axil_bresp,
    input  wire  [Cores-1:0]       m_axil_bvalid,
    output logic [Cores-1:0]       m_axil_bready,
    output logic [     11:0]       m_axil_araddr,
    output logic [Cores-1:0]       m_axil_arvalid,
    input  wire  [Cores-1:0]       m_axil_arready,
    input  wire  [Cores-1:0][31:0] m_axil_rdata,
    input  wire  [Cores-1:0][ 1:0] m_axil_rresp,
    input  wire  [Cores-1:0]       m_axil_rvalid,
    output logic [Cores-1:0]       m_axil_rready
);

  // Initial values are meant: those of the FPGA's configuration.
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

  // What crosses: an access, and its answer.
  typedef struct packed {
    logic write;
    logic [19:0] address;
    logic [31:0] data;
  } access_t;
  typedef struct packed {
    logic [31:0] data;
    logic [1:0]  resp;
  } answer_t;
  access_t ask_payload, access;
  answer_t answer_payload, answer;
  logic ask_valid, ask_ready, access_valid, access_ready, answer_valid, answer_ready, answered;

  logic b_valid_q = 1'b0;
  logic r_valid_q = 1'b0;
  logic under_way_q = 1'b0;
  logic write_q = 1'b0;  // the access under way, or the one before
  logic want_write, want_read, begin_write, begin_read, done;

  assign s_axil_awready = !aw_there_q;
  assign s_axil_wready  = !w_there_q;
  assign s_axil_arready = !ar_there_q;
  assign s_axil_bvalid  = b_valid_q;
  assign s_axil_rvalid  = r_valid_q;

  assign want_write     = aw_there_q && w_there_q && !b_valid_q;
  assign want_read      = ar_there_q && !r_valid_q;
  // Nothing is under way, so the way to the cores is free.
  assign begin_write    = !under_way_q && want_write && !(write_q && want_read);
  assign begin_read     = !under_way_q && want_read && !begin_write;
  assign ask_valid      = begin_write || begin_read;
  assign ask_payload    = '{write: begin_write, address: begin_write ? aw_q : ar_q, data: w_q};
  assign done           = under_way_q && answered && ask_ready;

  cdc_bus #(
      .Width($bits(access_t))
  ) i_access (
      .s_clk_i  (axil_clk_i),
      .s_rst_i  (1'b0),
      .s_valid  (ask_valid),
      .s_ready  (ask_ready),
      .s_payload(ask_payload),
      .m_clk_i  (clk_i),
      .m_rst_i  (1'b0),
      .m_valid  (access_valid),
      .m_ready  (access_ready),
      .m_payload(access)
  );
  cdc_bus #(
      .Width($bits(answer_t))
  ) i_answer (
      .s_clk_i  (clk_i),
      .s_rst_i  (1'b0),
      .s_valid  (answer_valid),
      .s_ready  (answer_ready),
      .s_payload(answer_payload),
      .m_clk_i  (axil_clk_i),
      .m_rst_i  (1'b0),
      .m_valid  (answered),
      .m_ready  (done),
      .m_payload(answer)
  );

  always_ff @(posedge axil_clk_i) begin
    if (s_axil_awvalid && s_axil_awready) begin
      aw_there_q <= 1'b1;
      aw_q       <= s_axil_awaddr[19:0];
    end
    if (s_axil_wvalid && s_axil_wready) begin
      w_there_q <= 1'b1;
      w_q       <= s_axil_wdata;
    end
    if (s_axil_arvalid && s_axil_arready) begin
      ar_there_q <= 1'b1;
      ar_q       <= s_axil_araddr[19:0];
    end
    if (s_axil_bready) b_valid_q <= 1'b0;
    if (s_axil_rready) r_valid_q <= 1'b0;
    if (ask_valid) begin
      under_way_q <= 1'b1;
      write_q     <= begin_write;
    end
    if (done) begin
      under_way_q <= 1'b0;
      if (write_q) begin
        b_valid_q    <= 1'b1;
        s_axil_bresp <= answer.resp;
        aw_there_q   <= 1'b0;
        w_there_q    <= 1'b0;
      end else begin
        r_valid_q    <= 1'b1;
        s_axil_rresp <= answer.resp;
        s_axil_rdata <= answer.data;
        ar_there_q   <= 1'b0;
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
  logic [31:0] read_data;
  logic [1:0] read_resp, write_resp;

  assign core    = access.address[19:12];
  assign fresh   = access_valid && answer_ready && !busy_q;
  assign beside  = fresh && 32'(core) >= Cores;
  assign ends    = busy_q && (|(core_q & m_axil_bvalid) || |(core_q & m_axil_rvalid));
  // A core in reset has forgotten the access, or does not take it.
  assign forgets = rst_i && (busy_q || fresh);

  always_comb begin
    read_data  = '0;
    read_resp  = '0;
    write_resp = '0;
    for (int i = 0; i < int'(Cores); i++) begin
      if (core_q[i]) begin
        read_data  = m_axil_rdata[i];
        read_resp  = m_axil_rresp[i];
        write_resp = m_axil_bresp[i];
      end
    end
  end

  // The access stays until it is answered.
  assign answer_valid = beside || ends || forgets;
  assign access_ready = answer_valid;
  always_comb begin
    answer_payload = '0;
    if (ends && !forgets) answer_payload = '{data: read_data, resp: access.write ? write_resp : read_resp};
  end

  always_ff @(posedge clk_i) begin
    aw_valid_q <= aw_valid_q & ~m_axil_awready;
    w_valid_q  <= w_valid_q & ~m_axil_wready;
    ar_valid_q <= ar_valid_q & ~m_axil_arready;
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

  assign m_axil_awaddr  = access.address[11:0];
  assign m_axil_araddr  = access.address[11:0];
  assign m_axil_wdata   = access.data;
  assign m_axil_awvalid = aw_valid_q;
  assign m_axil_wvalid  = w_valid_q;
  assign m_axil_arvalid = ar_valid_q;
  assign m_axil_bready  = '1;
  assign m_axil_rready  = '1;

  `ASSERT(one_at_a_time, $onehot0(m_axil_awvalid | m_axil_arvalid), "two accesses at once")
  `ASSERT(answers_are_asked_for, (m_axil_bvalid | m_axil_rvalid) == '0 || busy_q, "a core answers what nobody asked")
  `ASSERT(answer_fits, !answer_valid || answer_ready, "the answer before has not been taken")

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
