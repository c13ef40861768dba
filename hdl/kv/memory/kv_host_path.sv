// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The host's path into the card's memory through one of the core's memory ports. The host has AXI4 with 512 bits, and
/// the core AXI3 with 256.
///
/// Behaviour: while the host makes no request, core and memory are joined by wires. A host read is cut into bursts of
/// up to eight 64-byte words, and a host write into one burst per word. A burst starts when the core makes no request
/// in that direction. It then blocks the core's commands until memory has taken it: a read while ARREADY is low, a
/// write for at least two data beats. Answers come in the order of the commands, so no identifiers are needed, and the
/// core's ports need this order. One host burst is in flight in each direction. Memory errors become SLVERR; the core
/// does not see them.
/// Latency: core 0 cycles; host ARVALID or WVALID to memory's 2, a word's second beat there to RVALID 3.
/// Paths: core_i and memory_i to core_o and memory_o.
/// Reset: forgets everything. Outstanding memory answers must have arrived before reset ends.
/// Requirements: host bursts are INCR of whole words (AxSIZE 6; the first may begin inside a word), have at most 64
/// beats, and do not cross 4 KiB. The core has at most 32 bursts of each kind in flight. Host writes are not kept
/// consistent with the core's cache. So a host writes a table only while its core is in no epoch and still has to clear
/// its cache.
module kv_host_path
  import kv_core_pkg::*;
#(
    /// The bundles of the host's bus: see axi.svh; addresses of AddressBits.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// The most read bursts in flight at memory. A power of two, at most 16.
    parameter int unsigned Bursts = 4
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t s_axi_req,
    output axi_resp_t     s_axi_resp,

    input  wire memory_req_t  core_i,
    output memory_resp_t      core_o,
    output memory_req_t       memory_o,
    input  wire memory_resp_t memory_i
);

  if (Bursts < 1 || Bursts > 16 || 2 ** $clog2(Bursts) != Bursts) begin : gen_check_bursts
    $fatal(1, "Bursts must be a power of two, 1 to 16, in %m");
  end

  localparam int unsigned Commands = 64;  // under way, the core's and the host's
  localparam int unsigned WordBits = AddressBits - 6;
  typedef logic [WordBits-1:0] word_t;
  typedef logic [$bits(s_axi_req.ar.id)-1:0] id_t;

  // ---- reads: the commands

  logic reading_q, ar_mine_q, read_room, ar_set, ar_take;
  word_t read_word_q;
  logic [6:0] to_ask_q, to_give_q;  // words
  logic [3:0] piece;  // words, at most 8
  id_t read_id_q;
  memory_a_t ar_q;
  logic r_last, r_give;

  assign piece   = to_ask_q > 7'd8 ? 4'd8 : to_ask_q[3:0];
  // Not in the cycle in which a burst is taken, so that the core gets its turn.
  assign ar_set  = reading_q && to_ask_q != '0 && read_room && !ar_mine_q && !core_i.ar_valid;
  assign ar_take = ar_mine_q && memory_i.ar_ready;

  always_ff @(posedge clk_i) begin
    if (!reading_q && s_axi_req.ar_valid) begin
      reading_q   <= 1'b1;
      read_word_q <= s_axi_req.ar.addr[AddressBits-1:6];
      to_ask_q    <= 7'(s_axi_req.ar.len[5:0]) + 7'd1;
      to_give_q   <= 7'(s_axi_req.ar.len[5:0]) + 7'd1;
      read_id_q   <= s_axi_req.ar.id;
    end
    if (ar_set) begin
      ar_mine_q   <= 1'b1;
      ar_q        <= '{addr: {read_word_q, 6'd0}, len: {piece[2:0] - 3'd1, 1'b1}};
      read_word_q <= read_word_q + word_t'(piece);
      to_ask_q    <= to_ask_q - 7'(piece);
    end
    if (ar_take) ar_mine_q <= 1'b0;
    if (r_give) begin
      to_give_q <= to_give_q - 1'b1;
      if (r_last) reading_q <= 1'b0;
    end
    if (rst_i) begin
      reading_q <= 1'b0;
      ar_mine_q <= 1'b0;
    end
  end

  // ---- reads: the answers

  typedef struct packed {
    logic mine;
    logic [3:0] len;
  } read_t;
  read_t asked, coming;
  logic ar_go, ar_room, coming_valid, r_take, r_end, mine_take;
  logic [3:0] beat_q;
  assign ar_go  = memory_o.ar_valid && memory_i.ar_ready;
  assign asked  = '{mine: ar_mine_q, len: memory_o.ar.len};
  assign r_take = memory_i.r_valid && memory_o.r_ready;
  assign r_end  = r_take && beat_q == coming.len;
  stream_fifo #(
      .Width($bits(read_t)),
      .Depth(Commands)
  ) i_reads (
      .*,
      .s_valid  (ar_go),
      .s_ready  (ar_room),
      .s_payload(asked),
      .m_valid  (coming_valid),
      .m_ready  (r_end),
      .m_payload(coming)
  );
  always_ff @(posedge clk_i) begin
    if (r_take) beat_q <= r_end ? '0 : beat_q + 1'b1;
    if (rst_i) beat_q <= '0;
  end

  typedef struct packed {
    logic error;
    logic [255:0] data;
  } half_t;
  half_t half_in, half, low_q;
  logic half_room, half_valid, half_take, second_q, piece_given;
  assign half_in   = '{error: memory_i.r.resp[1], data: memory_i.r.data};
  assign mine_take = r_take && coming.mine;
  stream_fifo #(
      .Width($bits(half_t)),
      .Depth(16 * Bursts)
  ) i_halves (
      .*,
      .s_valid  (mine_take),
      .s_ready  (half_room),
      .s_payload(half_in),
      .m_valid  (half_valid),
      .m_ready  (half_take),
      .m_payload(half)
  );
  assign half_take = half_valid && (!second_q || s_axi_req.r_ready);
  assign r_give = half_take && second_q;
  assign r_last = to_give_q == 7'd1;

  // A piece ends with the last word of its host burst, or with its eighth word.
  logic [2:0] given_q;
  assign piece_given = r_give && (r_last || given_q == 3'd7);
  always_ff @(posedge clk_i) begin
    if (half_take) begin
      second_q <= !second_q;
      if (!second_q) low_q <= half;
    end
    if (r_give) given_q <= r_last ? '0 : given_q + 1'b1;
    if (rst_i) begin
      second_q <= 1'b0;
      given_q  <= '0;
    end
  end

  // verilator lint_off PINCONNECTEMPTY
  credit_counter #(
      .Credits(Bursts)
  ) i_read_room (
      .*,
      .take_i(ar_set),
      .give_i(piece_given),
      .available_o(read_room),
      .count_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- writes: one word at a time, when the core is between two of its writes

  logic writing_q, ended_q, word_valid_q, w_mine_q, aw_sent_q, low_sent_q, high_sent_q;
  logic write_room, w_set, aw_mine_take, w_mine_take, w_end, word_take, b_mine, write_error_q;
  word_t write_word_q;
  id_t write_id_q;
  logic [511:0] word_q;
  logic [63:0] strobes_q;
  logic [4:0] write_credits;
  logic b_give;

  // The core's writes: the number of commands ahead of their data, and whether a data burst has begun.
  logic signed [6:0] ahead_q;
  logic open_q, core_aw_take, core_w_take, quiet;
  assign core_aw_take = core_i.aw_valid && core_o.aw_ready;
  assign core_w_take = core_i.w_valid && core_o.w_ready;
  assign quiet = ahead_q == '0 && !open_q && !core_i.aw_valid && !core_i.w_valid;
  always_ff @(posedge clk_i) begin
    if (core_w_take) open_q <= !core_i.w.last;
    ahead_q <= ahead_q + 7'(core_aw_take) - 7'(core_w_take && core_i.w.last);
    if (rst_i) begin
      ahead_q <= '0;
      open_q  <= 1'b0;
    end
  end

  assign word_take = s_axi_req.w_valid && s_axi_resp.w_ready;
  assign w_set = word_valid_q && !w_mine_q && quiet && write_room;
  assign aw_mine_take = w_mine_q && !aw_sent_q && memory_i.aw_ready;
  assign w_mine_take = w_mine_q && !high_sent_q && memory_i.w_ready;
  // Command and data have been sent, or are sent in this cycle.
  assign w_end = w_mine_q && (aw_sent_q || aw_mine_take) && (high_sent_q || (low_sent_q && w_mine_take));
  always_ff @(posedge clk_i) begin
    if (!writing_q && s_axi_req.aw_valid) begin
      writing_q     <= 1'b1;
      ended_q       <= 1'b0;
      write_error_q <= 1'b0;
      write_word_q  <= s_axi_req.aw.addr[AddressBits-1:6];
      write_id_q    <= s_axi_req.aw.id;
    end
    if (word_take) begin
      word_valid_q <= 1'b1;
      word_q       <= s_axi_req.w.data;
      strobes_q    <= s_axi_req.w.strb;
      ended_q      <= s_axi_req.w.last;
    end
    if (w_set) begin
      w_mine_q    <= 1'b1;
      aw_sent_q   <= 1'b0;
      low_sent_q  <= 1'b0;
      high_sent_q <= 1'b0;
    end
    if (aw_mine_take) aw_sent_q <= 1'b1;
    if (w_mine_take) begin
      low_sent_q  <= 1'b1;
      high_sent_q <= low_sent_q;
    end
    if (w_end) begin
      w_mine_q     <= 1'b0;
      word_valid_q <= 1'b0;
      write_word_q <= write_word_q + 1'b1;
    end
    if (b_mine && memory_i.b.resp[1]) write_error_q <= 1'b1;
    if (b_give) writing_q <= 1'b0;
    if (rst_i) begin
      writing_q    <= 1'b0;
      word_valid_q <= 1'b0;
      w_mine_q     <= 1'b0;
    end
  end

  logic write_go, answer_room, answer_valid, answer_mine, b_take;
  assign write_go = memory_o.aw_valid && memory_i.aw_ready;
  assign b_take   = memory_i.b_valid && memory_o.b_ready;
  assign b_mine   = b_take && answer_mine;
  stream_fifo #(
      .Width(1),
      .Depth(Commands)
  ) i_writes (
      .*,
      .s_valid  (write_go),
      .s_ready  (answer_room),
      .s_payload(w_mine_q),
      .m_valid  (answer_valid),
      .m_ready  (b_take),
      .m_payload(answer_mine)
  );
  credit_counter #(
      .Credits(16)
  ) i_write_room (
      .*,
      .take_i(w_set),
      .give_i(b_mine),
      .available_o(write_room),
      .count_o(write_credits)
  );

  // ---- the ports

  assign memory_o = '{
          ar: ar_mine_q ? ar_q : core_i.ar,
          ar_valid: ar_mine_q || core_i.ar_valid,
          r_ready: coming_valid && (coming.mine || core_i.r_ready),
          aw: w_mine_q ? '{addr: {write_word_q, 6'd0}, len: 4'd1} : core_i.aw,
          aw_valid: w_mine_q ? !aw_sent_q : core_i.aw_valid,
          w:
          w_mine_q
          ?
          '{
              data: low_sent_q ? word_q[511:256] : word_q[255:0],
              strb: low_sent_q ? strobes_q[63:32] : strobes_q[31:0],
              last: low_sent_q
          }
          :
          core_i.w,
          w_valid: w_mine_q ? !high_sent_q : core_i.w_valid,
          b_ready: answer_valid && (answer_mine || core_i.b_ready)
      };
  assign core_o = '{
          ar_ready: memory_i.ar_ready && !ar_mine_q,
          r: memory_i.r,
          r_valid: memory_i.r_valid && coming_valid && !coming.mine,
          aw_ready: memory_i.aw_ready && !w_mine_q,
          w_ready: memory_i.w_ready && !w_mine_q,
          b: memory_i.b,
          b_valid: memory_i.b_valid && answer_valid && !answer_mine
      };
  assign b_give = s_axi_resp.b_valid && s_axi_req.b_ready;
  assign s_axi_resp = '{
          ar_ready: !reading_q,
          r: '{
              id: read_id_q,
              data: {half.data, low_q.data},
              resp: half.error || low_q.error ? axi_pkg::RespSlvErr : axi_pkg::RespOkay,
              last: r_last
          },
          r_valid: half_valid && second_q,
          aw_ready: !writing_q,
          w_ready: writing_q && !word_valid_q && !ended_q,
          b: '{id: write_id_q, resp: write_error_q ? axi_pkg::RespSlvErr : axi_pkg::RespOkay},
          b_valid: writing_q && ended_q && !word_valid_q && write_credits == 5'd16
      };

  // Unused, because all bursts have the form that is asserted below.
  logic unused_ar, unused_aw, unused_resp;
  assign unused_ar = ^{s_axi_req.ar.len[7:6], s_axi_req.ar.addr[5:0], s_axi_req.ar.size, s_axi_req.ar.burst} ^
      ^{s_axi_req.ar.cache, s_axi_req.ar.prot};
  assign unused_aw = ^{s_axi_req.aw.len, s_axi_req.aw.addr[5:0], s_axi_req.aw.size, s_axi_req.aw.burst} ^
      ^{s_axi_req.aw.cache, s_axi_req.aw.prot};
  assign unused_resp = memory_i.r.resp[0] ^ memory_i.b.resp[0];

  logic read_whole, write_whole;
  assign read_whole  = s_axi_req.ar.burst == axi_pkg::BurstIncr && s_axi_req.ar.size == 3'd6;
  assign write_whole = s_axi_req.aw.burst == axi_pkg::BurstIncr && s_axi_req.aw.size == 3'd6;

  `ASSERT(reads_have_room, !ar_go || ar_room, "more reads are under way than there may be")
  `ASSERT(writes_have_room, !write_go || answer_room, "more writes are under way than there may be")
  `ASSERT(halves_have_room, !mine_take || half_room, "what the host asked for has no room")
  `ASSERT(read_form, !s_axi_req.ar_valid || read_whole, "a read of the host's is not of whole words")
  `ASSERT(write_form, !s_axi_req.aw_valid || write_whole, "a write of the host's is not of whole words")
  `ASSERT(read_in_page, !s_axi_req.ar_valid || 9'(s_axi_req.ar.addr[11:6]) + 9'(s_axi_req.ar.len) < 9'd64,
          "a read of the host's crosses a 4 KiB boundary")
  `ASSERT(write_in_page, !s_axi_req.aw_valid || 9'(s_axi_req.aw.addr[11:6]) + 9'(s_axi_req.aw.len) < 9'd64,
          "a write of the host's crosses a 4 KiB boundary")
  `ASSERT_NEXT(ar_kept, memory_o.ar_valid && !memory_i.ar_ready, {memory_o.ar_valid, memory_o.ar} == {1'b1, $past
               (memory_o.ar)}, "a read command was withdrawn or changed")
  `ASSERT_NEXT(aw_kept, memory_o.aw_valid && !memory_i.aw_ready, {memory_o.aw_valid, memory_o.aw} == {1'b1, $past
               (memory_o.aw)}, "a write command was withdrawn or changed")
  `ASSERT_NEXT(w_kept, memory_o.w_valid && !memory_i.w_ready, memory_o.w_valid && memory_o.w == $past(memory_o.w),
               "a beat of data was withdrawn or changed")

endmodule
`default_nettype wire
