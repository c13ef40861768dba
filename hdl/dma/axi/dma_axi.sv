// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "stream.svh"

/// The DMA engine behind a bridge to PCIe with AXI4: no PCIe requester or completer of its own (docs/design/dma-data.md).
///
/// Behaviour: dma_axi_bar at s_axi receives registers and doorbells. dma_axi_reads and dma_axi_writes at m_host access
/// the host's memory, at bus addresses. m_card accesses the card's memory. The function's configuration is constant:
/// bus mastering on, no MSI-X, and no function-level reset. Software resets the rings by their registers.
/// No access at s_axi waits for a read of the host: a doorbell needs only the engine's registers, and dma_axi_reads
/// takes every read at once. So the bridge can deliver a posted write before the completions that wait behind it.
/// Latency: that of the engine, and of the three modules.
/// Reset: registers answer after 520 cycles. Transactions in flight are forgotten, so all buses must be reset.
/// Requirements: as dma_engine and the three modules. The bridge answers every read in the end.
module dma_axi #(
    /// The bundles of m_host: see axi.svh. Its addresses have 64 bits, its data 512.
    parameter type host_req_t = axi_pkg::axi_req_t,
    parameter type host_resp_t = axi_pkg::axi_resp_t,
    /// Channels in each direction; 1 to 4.
    parameter int unsigned Channels = 1,
    /// Bursts in flight at m_host, in each direction; a power of two, at least 2.
    parameter int unsigned Outstanding = 32,
    /// The most bytes of a read, 128 to 4096, and of a write, 128 to 512; powers of two.
    parameter int unsigned MaxRead = 512,
    parameter int unsigned MaxWrite = 256,
    /// A read fails after Timeout ticks of 2^TickBits cycles; Timeout is 0 (never) to 127. 64 of 2^18: 67 ms at 250
    /// MHz. The bridge ends a lost read with an error earlier: PCIe's default is 50 ms.
    parameter int unsigned Timeout = 64,
    parameter int unsigned TickBits = 18
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_pkg::axi_req_t s_axi_req,
    output axi_pkg::axi_resp_t     s_axi_resp,

    output host_req_t       m_host_req,
    input  wire host_resp_t m_host_resp,

    output axi_pkg::axi_req_t       m_card_req,
    input  wire axi_pkg::axi_resp_t m_card_resp,

    /// Pulses: see dma.svh; and a doorbell that was refused.
    output logic unexpected_o,
    output logic timed_out_o,
    output logic refused_o
);

  if (MaxRead < 128 || MaxRead > 4096 || 2 ** $clog2(MaxRead) != MaxRead) begin : gen_check_read
    $fatal(1, "MaxRead must be a power of two, 128 to 4096, in %m");
  end
  if (MaxWrite < 128 || MaxWrite > 512 || 2 ** $clog2(MaxWrite) != MaxWrite) begin : gen_check_write
    $fatal(1, "MaxWrite must be a power of two, 128 to 512, in %m");
  end
  if (Timeout > 127) begin : gen_check_timeout
    $fatal(1, "Timeout must be 0 to 127 in %m");
  end

  // More than all reads in flight can have: the bridge has the buffer, and no read may wait in the engine.
  localparam int unsigned CompletionLines = 2048;
  localparam dma_control_pkg::function_t Function = '{
      bus_master: 1'b1,
      msix_enable: 1'b0,
      msix_mask: 1'b0,
      max_read: 3'($clog2(MaxRead / 128))
  };

  axi_pkg::axi_lite_req_t  register_req;
  axi_pkg::axi_lite_resp_t register_resp;
  logic bell_valid, bell_ready, read_valid, read_ready, completion_valid, completion_ready, write_valid, write_ready;
  dma_control_pkg::bell_t bell;
  dma_pkg::read_t read;
  dma_pkg::completion_t completion;
  dma_pkg::write_t write;

  dma_axi_bar i_bar (
      .*,
      .m_axil_req (register_req),
      .m_axil_resp(register_resp),
      `STREAM_PORTS(m_bell, bell_valid, bell_ready, bell)
  );

  dma_pkg::dma_axis_t unused_packet;
  logic unused_flr, unused_valid, unused_ready, unused_stream;
  assign unused_stream = ^{unused_packet, unused_flr, unused_valid, unused_ready};
  dma_engine #(
      .Channels       (Channels),
      .CompletionLines(CompletionLines),
      .TickBits       (TickBits),
      .Stream         (1'b0)
  ) i_engine (
      .*,
      .s_axil_req (register_req),
      .s_axil_resp(register_resp),
      .function_i (Function),
      .mps_i      (3'($clog2(MaxWrite / 128))),
      .timeout_i  (7'(Timeout)),
      .flr_i      (1'b0),
      .flr_done_o (unused_flr),
      `STREAM_PORTS(s_bell, bell_valid, bell_ready, bell),
      `STREAM_PORTS(m_read, read_valid, read_ready, read),
      `STREAM_PORTS(s_completion, completion_valid, completion_ready, completion),
      `STREAM_PORTS(m_write, write_valid, write_ready, write),
      `STREAM_PORTS(m_axis, unused_valid, 1'b1, unused_packet),
      `STREAM_PORTS(s_axis, 1'b0, unused_ready, '0),
      .m_axi_req  (m_card_req),
      .m_axi_resp (m_card_resp)
  );

  host_req_t read_req, write_req;
  dma_axi_reads #(
      .axi_req_t  (host_req_t),
      .axi_resp_t (host_resp_t),
      .Outstanding(Outstanding)
  ) i_reads (
      .*,
      `STREAM_PORTS(s_read, read_valid, read_ready, read),
      `STREAM_PORTS(m_completion, completion_valid, completion_ready, completion),
      .m_axi_req (read_req),
      .m_axi_resp(m_host_resp)
  );
  dma_axi_writes #(
      .axi_req_t  (host_req_t),
      .axi_resp_t (host_resp_t),
      .Outstanding(Outstanding)
  ) i_writes (
      .*,
      `STREAM_PORTS(s_write, write_valid, write_ready, write),
      .m_axi_req (write_req),
      .m_axi_resp(m_host_resp)
  );
  always_comb begin
    m_host_req          = write_req;
    m_host_req.ar       = read_req.ar;
    m_host_req.ar_valid = read_req.ar_valid;
    m_host_req.r_ready  = read_req.r_ready;
  end
  logic unused_halves;
  assign unused_halves = ^{read_req.aw, read_req.aw_valid, read_req.w, read_req.w_valid, read_req.b_ready, write_req.ar,
                           write_req.ar_valid, write_req.r_ready};

endmodule
`default_nettype wire
