// SPDX-License-Identifier: Apache-2.0
//
// Ports that several modules of the DMA engine hand on: what they are is in dma_pkg and dma_control_pkg.
//
//   `DMA_HOST_PORTS      the host, as a PCIe requester sees it: reads, their completions, posted writes
//   `DMA_FUNCTION_PORTS  the PCIe function around the engine: registers, doorbells, configuration, reset; and two pulses
//   `DMA_STREAM_PORTS    the card's packets
`ifndef WHERRY_DMA_SVH
`define WHERRY_DMA_SVH

`define DMA_HOST_PORTS \
  output logic                      m_read_valid, \
  input  wire                       m_read_ready, \
  output dma_pkg::read_t            m_read_payload, \
  input  wire                       s_completion_valid, \
  output logic                      s_completion_ready, \
  input  wire dma_pkg::completion_t s_completion_payload, \
  output logic                      m_write_valid, \
  input  wire                       m_write_ready, \
  output dma_pkg::write_t           m_write_payload,

// mps_i: bytes of a write are 128 << x. timeout_i: until a read has failed, in ticks of 2^TickBits cycles; 0: never.
// unexpected_o, timed_out_o: pulses: a completion of no request; a request that got none.
`define DMA_FUNCTION_PORTS \
  input  wire axi_pkg::axi_lite_req_t     s_axil_req, \
  output axi_pkg::axi_lite_resp_t         s_axil_resp, \
  input  wire dma_control_pkg::function_t function_i, \
  input  wire                       [2:0] mps_i, \
  input  wire                       [6:0] timeout_i, \
  input  wire                             flr_i, \
  output logic                            flr_done_o, \
  input  wire                             s_bell_valid, \
  output logic                            s_bell_ready, \
  input  wire dma_control_pkg::bell_t     s_bell_payload, \
  output logic                            unexpected_o, \
  output logic                            timed_out_o,

`define DMA_STREAM_PORTS \
  output logic                    m_axis_valid, \
  input  wire                     m_axis_ready, \
  output dma_pkg::dma_axis_t      m_axis_payload, \
  input  wire                     s_axis_valid, \
  output logic                    s_axis_ready, \
  input  wire dma_pkg::dma_axis_t s_axis_payload,

`endif
