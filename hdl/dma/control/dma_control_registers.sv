// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The AXI4-Lite registers of docs/reference/dma-registers.md.
///
/// Behaviour: block RAM keeps written values for reading; setting_o passes them on. A partial write changes
/// nothing (SLVERR). After a reset or life_i.restart, registers get reset values, also at setting_o (filling_o).
/// Latency: address (and data) to response 5 cycles, plus the filling after a reset. setting_o precedes the response.
/// Reset: within 515 cycles, registers have the reset values of docs/reference/dma-registers.md.
/// Requirements: none.
module dma_control_registers
  import dma_control_pkg::*;
  import dma_registers_pkg::*;
#(
    /// Channels in each direction.
    parameter int unsigned Channels = 4,
    parameter type axi_req_t = axi_pkg::axi_lite_req_t,
    parameter type axi_resp_t = axi_pkg::axi_lite_resp_t
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t s_axil_req,
    output axi_resp_t     s_axil_resp,

    // verilator lint_off UNUSEDSIGNAL
    input wire life_t life_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic filling_o,

    output setting_t    setting_o,
    output logic [63:9] status_base_o,
    output logic [ 7:0] pace_o,
    output logic [ 7:0] reserve_o,

    input wire function_t function_i,
    input wire each_t     run_i,
    input wire each_t     idle_i,
    input wire each_t     failed_i,
    input wire each_t     pending_i
);

  localparam bit RingsMoved = RingControlOffset != 12'h200 || RingControlStride != 64 || RingStateOffset != 12'h204;
  localparam bit VectorsMoved = MsixAddressLowOffset != 12'h400 || MsixAddressLowStride != 16;
  if (RingsMoved || VectorsMoved || MsixPendingOffset != 12'h600) begin : gen_check_layout
    $fatal(1, "registers have moved: look at the words in %m");
  end

  // ---- an access

  logic write, read, refused_q, done_q, second_q, third_q, fills_q, starts;
  logic [11:0] address;
  logic [31:0] write_data, read_data_q;
  logic [3:0] strobe;
  axi_lite_registers #(
      .axi_req_t(axi_req_t),
      .axi_resp_t(axi_resp_t),
      .AddressWidth(12)
  ) i_bus (
      .*,
      .write_o       (write),
      .read_o        (read),
      .address_o     (address),
      .write_data_o  (write_data),
      .write_strobe_o(strobe),
      .done_i        (done_q),
      .read_data_i   (read_data_q),
      .error_i       (refused_q)
  );
  logic exists, exists_q, kept_q;
  word_t word, word_q, fill_q;
  logic [31:0] data_q;
  assign word   = address[10:2];
  assign exists = !address[11];
  assign starts = (write || read) && !second_q && !third_q && !done_q && !fills_q && !life_i.restart;
  logic unused_address;
  assign unused_address = ^address[1:0];

  localparam logic [31:0] ResetBit = 32'd1 << RingControlResetLow;
  logic is_control, acts_q;  // of a ring: its reset acts
  assign is_control = word[8:7] == RingControlWord[8:7] && word[3:0] == RingControlWord[3:0];
  always_ff @(posedge clk_i) begin
    second_q  <= starts;
    third_q   <= second_q;
    done_q    <= third_q;
    exists_q  <= exists;
    kept_q    <= starts && write && exists && strobe == '1 && is_written(word);
    refused_q <= write && strobe != '1;
    if (starts) begin
      word_q <= word;
      data_q <= write_data & (bits_of(word) | (is_control ? ResetBit : '0));
      acts_q <= is_control;
    end
    if (fills_q) begin
      fill_q <= fill_q + 1'b1;
      if (fill_q == '1) fills_q <= 1'b0;
    end
    if (life_i.restart || rst_i) begin
      fills_q <= 1'b1;
      fill_q  <= '0;
    end
    if (rst_i) begin
      second_q <= 1'b0;
      third_q  <= 1'b0;
      done_q   <= 1'b0;
      kept_q   <= 1'b0;
    end
  end
  assign filling_o = fills_q;

  // ---- the register file, and the blocks that get its values

  localparam capability_t Capability = '{reserved_8: '0, ahead_bits: 4'(AheadBits), channels: 4'(Channels)};
  word_t kept_word;
  logic [31:0] kept_data, filed;
  logic keeps;
  assign keeps     = fills_q || kept_q;
  assign kept_word = fills_q ? fill_q : word_q;
  assign kept_data = fills_q ? (fill_q == CapabilityWord ? Capability : reset_of(fill_q)) : data_q;
  simple_dual_port_ram #(
      .Width(32),
      .Depth(512)
  ) i_file (
      .*,
      .write_i(keeps),
      .write_address_i(kept_word),
      .write_data_i(kept_data & ~(acts_q && !fills_q ? ResetBit : '0)),
      .read_i(starts),
      .read_address_i(word),
      .read_data_o(filed)
  );

  logic is_ring, is_vector;
  assign is_ring   = kept_word[8:7] == RingControlWord[8:7];
  assign is_vector = kept_word[8:5] == MsixAddressLowWord[8:5];
  always_ff @(posedge clk_i) begin
    setting_o.ring_valid   <= keeps && is_ring;
    setting_o.vector_valid <= keeps && is_vector;
    setting_o.ring         <= is_ring ? kept_word[6:4] : kept_word[4:2];
    setting_o.place        <= is_ring ? kept_word[3:0] : {2'b00, kept_word[1:0]};
    setting_o.data         <= kept_data;
    if (keeps) begin
      case (kept_word)
        StatusLowWord:   status_base_o[31:9] <= kept_data[31:9];
        StatusHighWord:  status_base_o[63:32] <= kept_data;
        StatusPaceWord:  pace_o <= kept_data[7:0];
        ReadReserveWord: reserve_o <= kept_data[7:0];
        default:         ;
      endcase
    end
    if (rst_i) begin
      setting_o.ring_valid   <= 1'b0;
      setting_o.vector_valid <= 1'b0;
    end
  end

  // ---- what is read

  ring_t ring;
  logic [31:0] read_data;
  ring_state_t state;
  function_state_t function_state;
  assign ring = word_q[6:4];
  assign state = '{
          reserved_4: '0,
          failed: failed_i[ring],
          resetting: life_i.ignore[ring],
          idle: idle_i[ring],
          running: run_i[ring]
      };
  assign function_state = '{
          reserved_7: '0,
          max_read: function_i.max_read,
          reserved_3: '0,
          msix_mask: function_i.msix_mask,
          msix_enable: function_i.msix_enable,
          bus_master: function_i.bus_master
      };
  always_comb begin
    read_data = filed;
    if (word_q[8:7] == RingStateWord[8:7] && word_q[3:0] == RingStateWord[3:0]) read_data = state;
    if (word_q == FunctionStateWord) read_data = function_state;
    if (word_q == MsixPendingWord) read_data = 32'(pending_i);
    if (!exists_q) read_data = '0;
  end
  always_ff @(posedge clk_i) read_data_q <= read_data;

endmodule
`default_nettype wire
