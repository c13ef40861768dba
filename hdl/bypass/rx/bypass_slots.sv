// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The memory of all slots: frames that the NIC has received, and those that it transmits in place.
///
/// Behaviour: the NIC has priority: its byte writes (window_write_i) and its reads (window_read_i). s_* replaces a
/// line in a cycle without a write of the NIC, and read_i reads one in a cycle without a read of the NIC (ready_o).
/// A write to a slot that the NIC does not own (rx_ring_t.may_write) is ignored and counted (events_o.rx_stray).
/// Latency: a read takes 1 cycle; a write can be read 2 cycles later.
/// Reset: discards the write in progress.
/// Requirements: in the same cycle, each pair reports whether the NIC owns its slot written_o (may_write).
module bypass_slots
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    localparam int unsigned Queues = 1 << Config.queue_bits,
    localparam int unsigned Bits = Config.queue_bits + Config.rx_bits + SlotBits - LineBits
) (
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // offsets within a line; may_write
    input  wire window_write_t              window_write_i,
    input  wire window_read_t               window_read_i,
    input  wire pair_state_t   [Queues-1:0] pairs_i,
    // verilator lint_on UNUSEDSIGNAL
    output index_t                          written_o,
    output events_t                         events_o,

    input  wire                   s_valid,
    output logic                  s_ready,
    input  wire        [Bits-1:0] s_line,
    input  wire data_t            s_data,

    input  wire              read_i,
    output logic             ready_o,
    input  wire   [Bits-1:0] read_line_i,
    output data_t            data_o
);

  typedef logic [Bits-1:0] address_t;

  // ---- a write of the NIC

  logic write_q, may_write;
  queue_t  pair;
  // verilator lint_off UNUSEDSIGNAL
  offset_t offset_q;
  // verilator lint_on UNUSEDSIGNAL
  strobe_t strobe_q;
  data_t   data_q;
  always_ff @(posedge clk_i) begin
    write_q  <= window_write_i.valid && window_write_i.region == Slots;
    offset_q <= window_write_i.offset;
    strobe_q <= window_write_i.strobe;
    data_q   <= window_write_i.data;
    if (rst_i) write_q <= 1'b0;
  end
  assign pair      = slot_queue(offset_q, Config);
  assign written_o = slot_index(offset_q, Config);
  always_comb begin
    may_write = pairs_i[0].rx.may_write;
    for (int i = 1; i < int'(Queues); i++) if (pair == queue_t'(i)) may_write = pairs_i[i].rx.may_write;
    events_o = '0;
    events_o.rx_stray = write_q && !may_write;
  end
  assign s_ready = !write_q;

  // ---- the memory

  logic window;
  assign window  = window_read_i.valid && window_read_i.region == Slots;
  assign ready_o = !window;

  simple_dual_port_ram #(
      .Width(512),
      .Depth(1 << Bits),
      .WriteWidth(8),
      .Ultra(1'b1)
  ) i_ram (
      .*,
      .write_i(write_q ? strobe_q & {64{may_write}} : {64{s_valid}}),
      .write_address_i(write_q ? address_t'(slot_line(offset_q, Config)) : s_line),
      .write_data_i(write_q ? data_q : s_data),
      .read_i(window || read_i),
      .read_address_i(window ? address_t'(slot_line(window_read_i.offset, Config)) : read_line_i),
      .read_data_o(data_o)
  );

endmodule
`default_nettype wire
