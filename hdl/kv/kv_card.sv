// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"

/// The kv core with a host path to the card's memory, for a shell that lets the host read the table.
///
/// Behaviour: kv_core with kv_host_path at its first memory port. One port is enough, because each port reaches every
/// address.
/// Latency: exactly that of kv_core while the host makes no request.
/// Paths, reset, requirements: those of kv_core and kv_host_path.
module kv_card
  import kv_core_pkg::*;
#(
    /// See kv_core for the parameters.
    parameter int unsigned Channels = 2,
    parameter int unsigned LineCacheBits = 12,
    parameter int unsigned LaneBits = 12,
    parameter int unsigned MaxFollowers = 7,
    parameter bit WholeFrames = 1'b1,
    parameter int unsigned UserWidth = 48,
    parameter int unsigned HostBeats = 4096,
    /// Bits of the identifiers on the host's bus.
    parameter int unsigned IdWidth = 4,
    /// Number of host reads that may be in flight in memory.
    parameter int unsigned HostBursts = 4
) (
    input wire clk_i,
    input wire rst_i,

    `AXI_LITE_SUBORDINATE(s_axil, 12, 32)

    // Streams from and to the network.
    `AXIS_RECEIVER(s_net, 512, UserWidth)
    `AXIS_TRANSMITTER(m_net, 512, UserWidth)

    // Streams from and to the host.
    `AXIS_RECEIVER(s_host, 512, UserWidth)
    `AXIS_TRANSMITTER(m_host, 512, UserWidth)

    // The host's access to memory: AXI4.
    `AXI_SUBORDINATE(s_mem, AddressBits, 512, IdWidth)

    // Memory: AXI3. All bursts are INCR with 32 bytes a beat, and all identifiers are 0.
    `AXI3_MANAGER(m_axi, Channels, AddressBits, 256)

    /// As in kv_core.
    input wire        s_net_error,
    input wire [15:0] s_net_size
);

  `AXI_TYPES(host, AddressBits, 512, IdWidth)
  host_req_t  mem_req;
  host_resp_t mem_resp;
  `AXI_FROM_FLAT(s_mem, mem_req, mem_resp)

  memory_req_t [Channels-1:0] core_req, memory_req;
  memory_resp_t [Channels-1:0] core_resp, memory_resp;
  // verilog_lint: waive-start module-port
  `AXI3_NETS(core, Channels, AddressBits, 256)
  kv_core #(
      .Channels(Channels),
      .LineCacheBits(LineCacheBits),
      .LaneBits(LaneBits),
      .MaxFollowers(MaxFollowers),
      .WholeFrames(WholeFrames),
      .UserWidth(UserWidth),
      .HostBeats(HostBeats)
  ) i_core (
      .*,
      `AXI3_PORTS(m_axi, core)
  );
  // verilog_lint: waive-stop module-port

  for (genvar c = 0; c < int'(Channels); c++) begin : gen_port
    `AXI3_FROM_FLAT(core, c, core_req[c], core_resp[c])
    `AXI3_TO_FLAT(m_axi, c, memory_req[c], memory_resp[c])
    if (c == 0) begin : gen_shared
      kv_host_path #(
          .axi_req_t(host_req_t),
          .axi_resp_t(host_resp_t),
          .Bursts(HostBursts)
      ) i_path (
          .*,
          .s_axi_req (mem_req),
          .s_axi_resp(mem_resp),
          .core_i    (core_req[c]),
          .core_o    (core_resp[c]),
          .memory_o  (memory_req[c]),
          .memory_i  (memory_resp[c])
      );
    end else begin : gen_own
      assign memory_req[c] = core_req[c];
      assign core_resp[c]  = memory_resp[c];
    end
  end

endmodule
`default_nettype wire
