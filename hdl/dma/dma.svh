// SPDX-License-Identifier: Apache-2.0
//
// Ports that several modules of the DMA engine share. dma_pkg and dma_control_pkg define their types.
//
//   `DMA_HOST_PORTS      the host, as a PCIe requester sees it: reads, their completions, posted writes
//   `DMA_FUNCTION_PORTS  the PCIe function around the engine: registers, doorbells, configuration, reset; and two pulses
//   `DMA_STREAM_PORTS    the card's packets
`ifndef WHERRY_DMA_SVH
`define WHERRY_DMA_SVH

`include "stream.svh"

`define DMA_HOST_PORTS \
  `STREAM_SENDER(m_read, dma_pkg::read_t) \
  `STREAM_RECEIVER(s_completion, dma_pkg::completion_t) \
  `STREAM_SENDER(m_write, dma_pkg::write_t)

// mps_i: the most bytes of a write are 128 << x. timeout_i: ticks of 2^TickBits cycles before a read fails; 0: never.
// unexpected_o, timed_out_o: pulses: a completion without a request; a request without a completion.
`define DMA_FUNCTION_PORTS \
  input  wire axi_pkg::axi_lite_req_t     s_axil_req, \
  output axi_pkg::axi_lite_resp_t         s_axil_resp, \
  input  wire dma_control_pkg::function_t function_i, \
  input  wire                       [2:0] mps_i, \
  input  wire                       [6:0] timeout_i, \
  input  wire                             flr_i, \
  output logic                            flr_done_o, \
  `STREAM_RECEIVER(s_bell, dma_control_pkg::bell_t) \
  output logic                            unexpected_o, \
  output logic                            timed_out_o,

`define DMA_STREAM_PORTS \
  `STREAM_SENDER(m_axis, dma_pkg::dma_axis_t) \
  `STREAM_RECEIVER(s_axis, dma_pkg::dma_axis_t)

`endif
