// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"
`include "dma.svh"

/// The smallest card: DMA engine and on-chip memory (paper 000, 3.2: the design with BRAM), with a second manager.
///
/// Behaviour: bursts of dma_engine and s_axi alternate at one memory of 64-byte words, repeated over all addresses.
/// Latency: a burst's address at s_axi to R 5 cycles if the memory is free.
/// Reset: as dma_engine; the memory's contents stay.
/// Requirements: as dma_engine. s_axi must offer write data right after the address: missing data block the engine.
module dma_bram #(
    /// Channels in each direction; 1 to 4.
    parameter int unsigned Channels = 4,
    /// Words of 64 bytes; a power of two. 16,384 words are 1 MiB, in UltraRAM if Ultra is set.
    parameter int unsigned Words    = 512,
    parameter bit          Ultra    = 1'b0,
    parameter bit          Stream   = 1'b1
) (
    input wire clk_i,
    input wire rst_i,
    // Ports of dma_engine.
    `DMA_FUNCTION_PORTS
    `DMA_HOST_PORTS
    `DMA_STREAM_PORTS

    // The memory's second manager.
    input  wire axi_pkg::axi_req_t s_axi_req,
    output axi_pkg::axi_resp_t     s_axi_resp
);

  `AXI_TYPES(ram, 64, 512, 5)

  axi_pkg::axi_req_t  engine_req;
  axi_pkg::axi_resp_t engine_resp;
  dma_engine #(
      .Channels(Channels),
      .Stream  (Stream)
  ) i_engine (
      .*,
      .m_axi_req (engine_req),
      .m_axi_resp(engine_resp)
  );

  ram_req_t joined_req, ram_req;
  ram_resp_t joined_resp, ram_resp;
  axi_mux #(
      .m_axi_req_t (ram_req_t),
      .m_axi_resp_t(ram_resp_t),
      .Inputs      (2)
  ) i_mux (
      .*,
      .s_axi_req ({s_axi_req, engine_req}),
      .s_axi_resp({s_axi_resp, engine_resp}),
      .m_axi_req (joined_req),
      .m_axi_resp(joined_resp)
  );
  axi_cut #(
      .axi_req_t (ram_req_t),
      .axi_resp_t(ram_resp_t)
  ) i_cut (
      .*,
      .s_axi_req (joined_req),
      .s_axi_resp(joined_resp),
      .m_axi_req (ram_req),
      .m_axi_resp(ram_resp)
  );
  axi_ram #(
      .axi_req_t (ram_req_t),
      .axi_resp_t(ram_resp_t),
      .Depth     (Words),
      .Ultra     (Ultra)
  ) i_ram (
      .*,
      .s_axi_req (ram_req),
      .s_axi_resp(ram_resp)
  );

endmodule
`default_nettype wire
