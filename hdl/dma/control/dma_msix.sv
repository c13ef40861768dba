// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The MSI-X table and pending bits (PCIe 5.0, 6.1.4), with one vector for each ring.
///
/// Behaviour: firing a vector makes it pending. It offers a message (message_o) unless the vector or the function
/// is masked. When the message was taken, it is no longer pending. A message returns to pending if its vector was
/// masked before it left (back_i). So a mask holds the message, which follows after the mask is removed.
/// Latency: at most 9 cycles from fire_i to message_o, because one vector is checked in a cycle.
/// Reset: all vectors are masked and not pending. life_i.clear: the ring's vector is not pending.
/// Requirements: none.
module dma_msix
  import dma_control_pkg::*;
  import dma_registers_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // the other registers
    input wire setting_t  setting_i,
    // verilator lint_on UNUSEDSIGNAL
    // verilator lint_off UNUSEDSIGNAL
    input wire function_t function_i,
    input wire life_t     life_i,
    // verilator lint_on UNUSEDSIGNAL

    input wire event_t fire_i,
    input wire event_t back_i,

    output event_t message_o,
    input  wire    message_taken_i,

    // A message's data and address, and the vectors that may not send now.
    // They follow vector_of_i by a cycle, and then stay.
    // verilator lint_off UNUSEDSIGNAL
    input  wire event_t        vector_of_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic        [95:0] vector_o,
    output each_t              held_o,

    output each_t pending_o
);

  logic [2:0][31:0] words;
  for (genvar i = 0; i < 3; i++) begin : gen_word
    simple_dual_port_ram #(
        .Width(32),
        .Depth(Rings)
    ) i_words (
        .*,
        .write_i        (setting_i.vector_valid && setting_i.place == 4'(i)),
        .write_address_i(setting_i.ring),
        .write_data_i   (setting_i.data),
        .read_i         (vector_of_i.valid),
        .read_address_i (vector_of_i.ring),
        .read_data_o    (words[i])
    );
  end
  assign vector_o = words;

  each_t pending_q, masked_q;
  ring_t scan_q;
  logic  valid_q;
  ring_t ring_q;
  assign pending_o = pending_q;
  assign held_o    = masked_q | {Rings{function_i.msix_mask || !function_i.msix_enable}};
  assign message_o = '{valid: valid_q, ring: ring_q};
  always_ff @(posedge clk_i) begin
    if (!valid_q) begin
      scan_q  <= scan_q + 1'b1;
      ring_q  <= scan_q;
      valid_q <= pending_q[scan_q] && !held_o[scan_q] && !life_i.clear;
    end
    if (message_taken_i) begin
      pending_q[ring_q] <= 1'b0;
      valid_q           <= 1'b0;
    end
    if (fire_i.valid) pending_q[fire_i.ring] <= 1'b1;
    if (back_i.valid) pending_q[back_i.ring] <= 1'b1;
    if (life_i.clear) begin
      pending_q[life_i.clear_ring] <= 1'b0;
      if (life_i.clear_ring == ring_q) valid_q <= 1'b0;
    end
    if (setting_i.vector_valid && setting_i.place == {2'b00, MsixControlWord[1:0]})
      masked_q[setting_i.ring] <= setting_i.data[0];
    if (rst_i) begin
      pending_q <= '0;
      masked_q  <= '1;
      valid_q   <= 1'b0;
      scan_q    <= '0;
    end
  end

endmodule
`default_nettype wire
