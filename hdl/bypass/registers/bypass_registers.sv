// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The AXI4-Lite registers of the bypass core: docs/reference/bypass-registers.md.
///
/// Behaviour: block RAM keeps written values for reading; flip-flops also keep
/// those that blocks need. A write of a partial word changes nothing (SLVERR).
/// Latency: address (and data) to response 6 cycles; longer while the file is filled
/// (bypass_register_file) or the counters are cleared. settings_o changes with the response of a write.
/// Reset: registers get the reset values of docs/reference/bypass-registers.md within 515 cycles; settings_o at once.
/// Requirements: none.
module bypass_registers
  import bypass_pkg::*;
  import bypass_registers_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig,
    localparam int unsigned Queues = 1 << Config.queue_bits,
    localparam int unsigned RingBits = Config.queue_bits + 1
) (
    input wire clk_i,
    input wire rst_i,

    input  wire bypass_axil_req_t s_axil_req,
    output bypass_axil_resp_t     s_axil_resp,

    output settings_t settings_o,
    output logic [23:0] time_o,
    /// Writes one half of the address of a tail register.
    output logic [1:0] tail_write_o,
    output logic [RingBits-1:0] tail_ring_o,
    output logic [31:0] tail_data_o,

    // verilator lint_off UNUSEDSIGNAL  // what of it is read
    input wire pair_state_t [Queues-1:0] pairs_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire events_t events_i
);

  localparam bit QueuesMoved = QueueControlOffset != 16'h400 || QueueControlStride != 64 || QueueStateOffset != 16'h404;
  localparam bit TailsMoved = RxTailLowOffset != 16'h408 || RxTailHighOffset != 16'h40C || TxTailLowOffset != 16'h410;
  if (RxInOffset != 16'h200 || OutsideReadsOffset >= 16'h280 || QueuesMoved || TailsMoved) begin : gen_check_layout
    $fatal(1, "registers have moved: look at the words in %m");
  end

  // ---- an access; a queue's registers have the queue's number in the middle of their address

  typedef logic [3:0] place_t;  // of a queue's words

  // verilator lint_off UNUSEDSIGNAL  // the lowest bits of the address; that the file is filled
  register_access_t access;
  register_fill_t   fill;
  // verilator lint_on UNUSEDSIGNAL
  register_write_t  written;
  logic clearing, exists, kept, there, exists_q, is_counter_q, is_queue_q;
  word_t word, word_q;
  queue_t queue_q;
  place_t place_q;
  logic [31:0] data_q, filed, read_data;
  assign word   = access.address[10:2];
  assign exists = access.address[15:11] == '0;
  assign there  = !word[8] || 32'(word[7:4]) < Queues;
  assign kept   = written.valid;
  assign word_q = written.word;
  assign data_q = written.data;

  always_ff @(posedge clk_i) begin
    exists_q     <= exists;
    is_counter_q <= word[8:5] == RxInWord[8:5];
    is_queue_q   <= word[8] && 32'(word[7:4]) < Queues;
    queue_q      <= word[7:4];
    place_q      <= word[3:0];
  end

  localparam capability_t Capability = '{
      reserved_16: '0,
      pack_bits: 4'(Config.pack_bits),
      tx_ring_bits: 4'(Config.tx_bits),
      rx_ring_bits: 4'(Config.rx_bits),
      queue_bits: 4'(Config.queue_bits)
  };
  register_word_t about;
  assign about = '{
          writable: exists && is_written(word) && there,
          bits: bits_of(word),
          reset: fill.word == CapabilityWord ? Capability : reset_of(fill.word)
      };
  bypass_register_file #(
      .AddressWidth(16),
      .Cycles(3)
  ) i_file (
      .*,
      .filed_o    (filed),
      .busy_i     (clearing),
      .read_data_i(read_data),
      .other_i    (word)
  );

  // ---- values from other blocks

  logic [31:0] counter, state_q;
  logic [63:0] cycles_q;
  logic [31:0] upper_q;  // as it was when the lower half was read
  queue_state_t state;
  // verilator lint_off UNUSEDSIGNAL
  pair_state_t pair;
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    pair = pairs_i[0];
    for (int i = 1; i < int'(Queues); i++) if (queue_q == queue_t'(i)) pair = pairs_i[i];
    state          = '0;
    state.running  = pair.running;
    state.idle     = pair.idle;
    state.rx_given = pair.rx.given;
    state.tx_given = pair.tx.given;

    read_data      = filed;
    if (is_queue_q && place_q == QueueStateWord[3:0]) read_data = state_q;
    if (is_counter_q) read_data = counter;
    if (word_q == CyclesWord) read_data = cycles_q[31:0];
    if (word_q == CyclesWord + 1'b1) read_data = upper_q;
    if (!exists_q) read_data = '0;
  end
  always_ff @(posedge clk_i) begin
    cycles_q <= cycles_q + 1'b1;
    state_q  <= state;
    if (access.ends && access.read && word_q == CyclesWord) upper_q <= cycles_q[63:32];
    if (rst_i) cycles_q <= '0;
  end
  assign time_o = cycles_q[23:0];

  // ---- what is written

  control_t control;
  logic clear_q;
  assign control = control_t'(access.data);
  always_ff @(posedge clk_i) begin
    clear_q <= access.starts && access.write && exists && word == ControlWord && control.clear_counters;
    if (rst_i) clear_q <= 1'b0;
  end
  logic unused_control;
  assign unused_control = ^control.reserved_1;

  // verilator lint_off UNUSEDSIGNAL  // reserved bits
  descriptors_t descriptors;
  doorbells_t doorbells;
  completion_t completion;
  queue_control_t queue_control;
  // verilator lint_on UNUSEDSIGNAL
  assign descriptors   = descriptors_t'(data_q);
  assign doorbells     = doorbells_t'(data_q);
  assign completion    = completion_t'(data_q);
  assign queue_control = queue_control_t'(data_q);

  always_ff @(posedge clk_i) begin
    if (kept) begin
      case (word_q)
        BaseLowWord:     settings_o.base[31:WindowBits] <= data_q[31:WindowBits];
        BaseHighWord:    settings_o.base[63:32] <= data_q;
        DescriptorsWord: begin
          settings_o.personality.rx_32_bytes  <= descriptors.rx_32_bytes;
          settings_o.personality.rx_length    <= descriptors.rx_length;
          settings_o.personality.tx_length_34 <= descriptors.tx_length_34;
          settings_o.personality.tx_total_46  <= descriptors.tx_total_46;
          settings_o.personality.tx_done_type <= descriptors.tx_done_type;
          settings_o.personality.tx_report_5  <= descriptors.tx_report_5;
        end
        RxErrorMaskWord: settings_o.personality.rx_errors <= {data_q[31:19], data_q[10]};
        TxWordLowWord:   settings_o.personality.tx_word[31:0] <= data_q;
        TxWordHighWord:  settings_o.personality.tx_word[63:32] <= data_q;
        DoorbellsWord: begin
          settings_o.rx_bell.credits <= doorbells.rx_credits;
          settings_o.rx_bell.align   <= doorbells.rx_align;
          settings_o.rx_bell.batch   <= doorbells.rx_batch;
          settings_o.tx_bell.credits <= doorbells.tx_credits;
        end
        DoorbellTimerWord: begin
          settings_o.rx_bell.timer <= data_q[15:0];
          settings_o.tx_bell.timer <= data_q[15:0];
        end
        TxLimitWord:     settings_o.tx_limit <= data_q[11:0];
        RxLimitWord:     settings_o.rx_limit <= data_q[11:0];
        CompletionWord: begin
          settings_o.written_back <= completion.written_back;
          settings_o.report       <= completion.report;
          settings_o.report_mask  <= ~('1 << completion.report_bits);
        end
        MaxFrameWord:    settings_o.max_frame <= data_q[13:0];
        default:         ;
      endcase
      for (int i = 0; i < int'(Queues); i++) begin
        if (is_queue_q && queue_q == queue_t'(i) && place_q == QueueControlWord[3:0]) begin
          settings_o.enable[i]   <= queue_control.enable;
          settings_o.in_place[i] <= queue_control.in_place;
        end
      end
    end
    settings_o.tx_bell.batch <= 8'd1;
    settings_o.tx_bell.align <= '0;
    if (rst_i) begin
      settings_o                 <= '0;
      settings_o.rx_bell.credits <= DoorbellsReset[DoorbellsRxCreditsLow+:DoorbellsRxCreditsBits];
      settings_o.rx_bell.align   <= DoorbellsReset[DoorbellsRxAlignLow+:DoorbellsRxAlignBits];
      settings_o.rx_bell.batch   <= DoorbellsReset[DoorbellsRxBatchLow+:DoorbellsRxBatchBits];
      settings_o.rx_bell.timer   <= DoorbellTimerReset[15:0];
      settings_o.tx_bell.credits <= DoorbellsReset[DoorbellsTxCreditsLow+:DoorbellsTxCreditsBits];
      settings_o.tx_bell.timer   <= DoorbellTimerReset[15:0];
      settings_o.tx_limit        <= TxLimitReset[11:0];
      settings_o.rx_limit        <= RxLimitReset[11:0];
      settings_o.max_frame       <= MaxFrameReset[13:0];
    end
  end

  logic is_tail;
  assign is_tail      = kept && is_queue_q && place_q >= RxTailLowWord[3:0];
  assign tail_write_o = is_tail ? {place_q[0], !place_q[0]} : '0;
  assign tail_ring_o  = RingBits'({queue_q, place_q[2]});
  assign tail_data_o  = data_q;

  bypass_counters i_counters (
      .*,
      .read_i      (access.second),
      .read_index_i(word_q[4:0]),
      .read_data_o (counter),
      .clear_i     (clear_q),
      .clearing_o  (clearing)
  );

endmodule
`default_nettype wire
