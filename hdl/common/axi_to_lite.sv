// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// An AXI4 subordinate whose transactions become AXI4-Lite accesses of 32 bits.
///
/// Behaviour: one transaction at a time. Waiting reads and writes alternate. A beat is cut into words, which go one
/// after the other, the lowest first. For a write, only words with a strobe are sent, with their strobes. For a read,
/// all words within the beat's size are read, and the other lanes are 0. Each response is the worst response of its
/// words: of a whole burst on B, of one beat on R. Address bits beyond the AXI4-Lite bus are ignored.
/// Latency: 2 cycles for each word in addition to the access, and 1 for each word of a write without a strobe.
/// Paths: from s_axi_req.w to s_axi_resp.w_ready.
/// Reset: forgets transactions in flight, so a reset must reach both sides of the bus.
/// Requirements: only INCR bursts. All valid signals are low during reset.
module axi_to_lite #(
    /// The bundles of both buses: see axi.svh. The AXI4 bus has at least 64 data bits, the AXI4-Lite bus 32.
    parameter type axi_req_t   = axi_pkg::axi_req_t,
    parameter type axi_resp_t  = axi_pkg::axi_resp_t,
    parameter type lite_req_t  = axi_pkg::axi_lite_req_t,
    parameter type lite_resp_t = axi_pkg::axi_lite_resp_t
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t s_axi_req,
    output axi_resp_t     s_axi_resp,

    output lite_req_t       m_axil_req,
    input  wire lite_resp_t m_axil_resp
);

  localparam int unsigned Words = $bits(s_axi_req.w.data) / 32;
  localparam int unsigned WordBits = $clog2(Words);
  localparam int unsigned AddressWidth = $bits(m_axil_req.aw.addr);
  localparam int unsigned IdWidth = $bits(s_axi_req.aw.id);

  if ($bits(m_axil_req.w.data) != 32) begin : gen_check_lite
    $fatal(1, "the AXI4-Lite bus must have 32 bits of data in %m");
  end
  if (Words < 2 || AddressWidth < axi_pkg::BoundaryBits || $bits(
          s_axi_req.aw.addr
      ) < AddressWidth) begin : gen_check_axi
    $fatal(1, "data must have 64 bits or more, and addresses as many as the AXI4-Lite bus, 12 or more, in %m");
  end

  typedef enum logic [2:0] {
    Idle,
    Find,
    Ask,
    Give,
    Answer
  } state_e;

  state_e state_q;
  logic write_q, reads_next_q, aw_q, w_q, ar_q;
  logic [IdWidth-1:0] id_q;
  logic [AddressWidth-1:0] address_q;  // address of the current beat
  logic [7:0] left_q;  // beats of the burst after this one
  logic [2:0] size_q;
  logic [WordBits-1:0] word_q;
  logic [Words-1:0][31:0] data_q;
  axi_pkg::resp_e worst_q, came;

  // ---- the current word

  logic [Words-1:0][31:0] write_data;
  logic [Words-1:0][3:0] strobes;
  logic [3:0] strobe;
  logic [WordBits+1:0] beyond;
  logic [WordBits-1:0] last_word;
  logic ends, skips, answered, word_done, beat_done;
  logic [axi_pkg::BoundaryBits-1:0] next;
  assign write_data = s_axi_req.w.data;
  assign strobes    = s_axi_req.w.strb;
  assign strobe     = strobes[word_q];
  assign beyond     = ~((WordBits + 2)'('1) << size_q);
  assign last_word  = WordBits'((address_q[WordBits+1:0] | beyond) >> 2);
  assign ends       = word_q == last_word;
  assign skips      = state_q == Find && write_q && s_axi_req.w_valid && strobe == '0;
  assign answered   = state_q == Ask && (write_q ? m_axil_resp.b_valid : m_axil_resp.r_valid);
  assign word_done  = skips || answered;
  assign beat_done  = word_done && ends;
  assign came       = write_q ? m_axil_resp.b.resp : m_axil_resp.r.resp;
  assign next       = axi_pkg::next_beat(address_q[axi_pkg::BoundaryBits-1:0], size_q);

  // ---- both buses

  logic takes_write, takes_read;
  assign takes_write = state_q == Idle && s_axi_req.aw_valid && !(reads_next_q && s_axi_req.ar_valid);
  assign takes_read = state_q == Idle && s_axi_req.ar_valid && !takes_write;
  assign s_axi_resp = '{
          aw_ready: takes_write,
          w_ready: write_q && beat_done,
          b: '{id: id_q, resp: worst_q},
          b_valid: state_q == Answer,
          ar_ready: takes_read,
          r: '{id: id_q, data: data_q, resp: worst_q, last: left_q == '0},
          r_valid: state_q == Give
      };
  always_comb begin
    m_axil_req          = '0;
    m_axil_req.aw.addr  = {address_q[AddressWidth-1:WordBits+2], word_q, 2'b00};
    m_axil_req.ar.addr  = {address_q[AddressWidth-1:WordBits+2], word_q, 2'b00};
    m_axil_req.w.data   = write_data[word_q];
    m_axil_req.w.strb   = strobe;
    m_axil_req.aw_valid = aw_q;
    m_axil_req.w_valid  = w_q;
    m_axil_req.ar_valid = ar_q;
    m_axil_req.b_ready  = state_q == Ask;
    m_axil_req.r_ready  = state_q == Ask;
  end

  always_ff @(posedge clk_i) begin
    if (m_axil_resp.aw_ready) aw_q <= 1'b0;
    if (m_axil_resp.w_ready) w_q <= 1'b0;
    if (m_axil_resp.ar_ready) ar_q <= 1'b0;
    if (answered) begin
      data_q[word_q] <= m_axil_resp.r.data;
      worst_q        <= axi_pkg::worse(worst_q, came);
    end
    if (word_done) begin
      word_q  <= word_q + 1'b1;
      state_q <= Find;
    end

    case (state_q)
      Idle: begin
        write_q   <= takes_write;
        id_q      <= takes_write ? s_axi_req.aw.id : s_axi_req.ar.id;
        address_q <= AddressWidth'(takes_write ? s_axi_req.aw.addr : s_axi_req.ar.addr);
        left_q    <= takes_write ? s_axi_req.aw.len : s_axi_req.ar.len;
        size_q    <= takes_write ? s_axi_req.aw.size : s_axi_req.ar.size;
        word_q    <= takes_write ? s_axi_req.aw.addr[2+:WordBits] : s_axi_req.ar.addr[2+:WordBits];
        data_q    <= '0;
        worst_q   <= axi_pkg::RespOkay;
        if (takes_write || takes_read) begin
          state_q      <= Find;
          reads_next_q <= takes_write;
        end
      end
      Find:
      if (!write_q || (s_axi_req.w_valid && strobe != '0)) begin
        aw_q    <= write_q;
        w_q     <= write_q;
        ar_q    <= !write_q;
        state_q <= Ask;
      end
      Give:
      if (s_axi_req.r_ready) begin
        data_q  <= '0;
        worst_q <= axi_pkg::RespOkay;
        state_q <= left_q == '0 ? Idle : Find;
      end
      Answer:  if (s_axi_req.b_ready) state_q <= Idle;
      default: ;
    endcase

    // The next beat begins: for a write at the end of this beat, for a read when the manager has taken this beat.
    if (beat_done) state_q <= !write_q ? Give : left_q == '0 ? Answer : Find;
    if (left_q != '0 && (write_q ? beat_done : state_q == Give && s_axi_req.r_ready)) begin
      left_q                               <= left_q - 1'b1;
      address_q[axi_pkg::BoundaryBits-1:0] <= next;
      word_q                               <= next[2+:WordBits];
    end

    if (rst_i) begin
      state_q      <= Idle;
      write_q      <= 1'b0;
      reads_next_q <= 1'b0;
      aw_q         <= 1'b0;
      w_q          <= 1'b0;
      ar_q         <= 1'b0;
    end
  end

  `ASSERT(writes_are_incr, !takes_write || s_axi_req.aw.burst == axi_pkg::BurstIncr, "a write that is not INCR")
  `ASSERT(reads_are_incr, !takes_read || s_axi_req.ar.burst == axi_pkg::BurstIncr, "a read that is not INCR")
  `ASSERT(last_agrees, !(s_axi_req.w_valid && s_axi_resp.w_ready) || s_axi_req.w.last == (left_q == '0),
          "write data end where AWLEN does not say")
  `ASSERT(answers_are_asked_for, !answered || (!aw_q && !w_q && !ar_q), "an access is answered before it was taken")

endmodule
`default_nettype wire
