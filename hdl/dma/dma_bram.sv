// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "axi.svh"
`include "dma.svh"

/// The DMA engine with memory on the chip, which a second manager shares: the smallest card (paper 000, section 3.2: the design with BRAM).
///
/// Behaviour: dma_engine; its bursts and those of s_axi take turns at one memory of 64-byte words. The memory is at every multiple of its size.
/// Latency: from a burst's address at s_axi to R 5 cycles, if the memory is free.
/// Reset: dma_engine's; the contents stay.
/// Requirements: those of dma_engine. s_axi offers write data as soon as its address was taken: data that wait hold up the engine's.
module dma_bram #(
    /// Channels in each direction; 1 to 4.
    parameter int unsigned Channels = 4,
    /// Words of 64 bytes; a power of two. 16,384 are 1 MiB, in UltraRAM with Ultra.
    parameter int unsigned Words    = 512,
    parameter bit          Ultra    = 1'b0,
    parameter bit          Stream   = 1'b1
) (
    input wire clk_i,
    input wire rst_i,
    // Of dma_engine.
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
