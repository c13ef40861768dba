// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Counts completed turns, and reports them to the host: status words, packet entries, and interrupt events.
///
/// Behaviour: one operation a cycle:
/// - An answered turn advances its ring's position, or the count at its descriptor's end. A packet to the host gets
///   its entry. An error stops the ring (failed_o): count and position then stay, and later answers have no effect.
/// - A look at a changed ring, in rotation, at most one in pace_i cycles: it posts a status word of the present state
///   (so the last state is always reported), and fires the vector (fire_o) at the ring's threshold of interrupts, at
///   its timer (expired_i), or at an error. So a message follows its status word, which follows the data.
/// - A message of a vector that may send one.
/// A look also stops a ring whose fetch or cut failed (failing_i), when all its turns have been completed.
/// Status words, packet entries and messages leave at m_* in the order of the operations.
/// Latency: answer to status word 4 cycles if no other operation waits.
/// Reset: life_i.clear follows for each ring. life_i.clear: the ring's counts are 0, and it has no reports.
/// Requirements: flight_i precedes a turn's answer. A ring in its clear has no turns, after 3 cycles of life_i.hold.
module dma_teller
  import dma_pkg::done_t;
  import dma_control_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL
    input wire life_t       life_i,
    // verilator lint_on UNUSEDSIGNAL
    /// Status words and messages may be posted.
    input wire              may_post_i,
    input wire        [7:0] pace_i,

    input wire flight_event_t flight_i,

    input  wire        [1:0] s_done_valid,
    output logic       [1:0] s_done_ready,
    input  wire done_t [1:0] s_done_payload,

    output answer_t answered_o,

    input  wire each_t             failing_i,
    input  wire code_t [Rings-1:0] code_i,
    output each_t                  failed_o,
    /// An answer is being counted.
    output each_t                  busy_o,

    // Interrupts: events wait for a threshold or a timer.
    output ring_t             threshold_ring_o,
    input  wire         [7:0] threshold_i,
    output each_t             waiting_o,
    input  wire each_t        expired_i,
    output event_t            fire_o,
    input  wire event_t       message_i,
    output logic              message_taken_o,

    /// There is room for the entry of a packet.
    output logic packet_room_o,

    output logic  post_valid,
    input  wire   post_ready,
    output post_t post
);

  // ---- what to do next

  logic side_q, look_valid_q, looks, messages, answers, side, room, go, wants_look, wants_message, message_next_q;
  logic [3:0] waiting_q;  // posts
  logic [7:0] pace_q;
  ring_t look_q, next, done_ring;
  each_t dirty, due, later_q;
  logic  other;
  done_t done;
  assign due = (dirty | failing_i | (expired_i & waiting_o)) & ~life_i.ignore;
  always_comb begin
    next  = '0;
    other = |(due & later_q);
    for (int i = int'(Rings) - 1; i >= 0; i--) if (due[i] && (later_q[i] || !other)) next = ring_t'(i);
  end
  assign go            = !life_i.hold && !life_i.clear;
  assign wants_look    = look_valid_q && pace_q == '0;
  assign wants_message = message_i.valid && (!wants_look || message_next_q);
  assign looks         = go && may_post_i && room && wants_look && !wants_message;
  assign messages      = go && may_post_i && room && wants_message;
  assign side          = s_done_valid[side_q] ? side_q : !side_q;
  assign answers       = go && !looks && !messages && s_done_valid != '0;
  assign done          = s_done_payload[side];
  assign done_ring     = {side, done.channel};
  always_comb begin
    s_done_ready       = '0;
    s_done_ready[side] = answers;
  end
  assign message_taken_o = messages;

  // ---- data stored with the turn

  flight_t head, head_next;
  flight_info_t info;
  assign head_next = life_i.clear ? '0 : head + 1'b1;
  lutram #(
      .Width($bits(flight_t)),
      .Depth(Rings)
  ) i_heads (
      .*,
      .write_i        (answers || life_i.clear),
      .write_address_i(life_i.clear ? life_i.clear_ring : done_ring),
      .write_data_i   (head_next),
      .read_address_i (done_ring),
      .read_data_o    (head)
  );
  simple_dual_port_ram #(
      .Width($bits(flight_info_t)),
      .Depth(Rings << FlightBits)
  ) i_flights (
      .*,
      .write_i        (flight_i.valid),
      .write_address_i({flight_i.ring, flight_i.index}),
      .write_data_i   (flight_i.info),
      .read_i         (1'b1),
      .read_address_i ({done_ring, head}),
      .read_data_o    (info)
  );

  // The ring's state is looked up one cycle ahead, to shorten the paths.
  logic answer_q, look_now_q, message_q, ignored_q, fails_q, late_q;
  ring_t ring_next;
  assign ring_next = looks ? look_q : messages ? message_i.ring : done_ring;
  ring_t ring_q;
  dma_pkg::error_e error_q;
  logic end_of_packet_q;
  logic [12:0] bytes_q;
  always_ff @(posedge clk_i) begin
    side_q          <= !side_q;
    answer_q        <= answers;
    look_now_q      <= looks;
    message_q       <= messages;
    ring_q          <= ring_next;
    ignored_q       <= life_i.ignore[ring_next];
    fails_q         <= failing_i[ring_next];
    late_q          <= expired_i[ring_next];
    error_q         <= done.error;
    end_of_packet_q <= done.end_of_packet;
    bytes_q         <= answers && done.error == dma_pkg::ErrorNone ? done.bytes : '0;
    // The ring of a look stays due until the look ends.
    look_valid_q    <= due != '0 && !looks && !look_now_q;
    if (!look_valid_q || looks) look_q <= next;
    if (looks) begin
      for (int i = 0; i < int'(Rings); i++) later_q[i] <= i > int'(look_q);
    end
    if (looks || messages) message_next_q <= looks;
    if (looks) pace_q <= pace_i;
    else if (pace_q != '0) pace_q <= pace_q - 1'b1;
    if (rst_i) begin
      side_q         <= 1'b0;
      answer_q       <= 1'b0;
      look_now_q     <= 1'b0;
      message_q      <= 1'b0;
      look_valid_q   <= 1'b0;
      later_q        <= '0;
      pace_q         <= '0;
      message_next_q <= 1'b0;
    end
  end
  assign answered_o = '{valid: answer_q, ring: ring_q, packet: info.stream_to_host};

  // ---- the progress of each ring

  typedef struct packed {
    logic [31:0] count;
    offset_t     bytes;
    code_t       error;
    logic [7:0]  events;  // descriptors with an interrupt that no message has told of
  } state_t;
  state_t state, state_next;
  ring_t fire_ring_q;
  logic  fire_q;
  logic counts, done_one, done_error, fails, enough, fires, shows;
  lutram #(
      .Width($bits(state_t)),
      .Depth(Rings)
  ) i_states (
      .*,
      .write_i        (counts || look_now_q || life_i.clear),
      .write_address_i(life_i.clear ? life_i.clear_ring : ring_q),
      .write_data_i   (life_i.clear ? '0 : state_next),
      .read_address_i (ring_q),
      .read_data_o    (state)
  );

  assign counts = answer_q && !ignored_q && !failed_o[ring_q];
  assign done_error = counts && error_q != dma_pkg::ErrorNone;
  assign done_one = counts && !done_error && info.ends;
  assign fails = look_now_q && fails_q && !failed_o[ring_q] && !ignored_q;
  assign shows = look_now_q && (dirty[ring_q] || fails) && !ignored_q;
  assign threshold_ring_o = ring_q;
  assign enough = state.events != '0 && (state.events >= threshold_i || late_q);
  assign fires = look_now_q && !ignored_q && (enough || (shows && (fails || state.error != '0)));
  // bytes_q is 0 unless the answer is good, so the sum needs no multiplexer behind it.
  offset_t moved;
  assign moved = state.bytes + offset_t'(bytes_q);
  always_comb begin
    state_next = state;
    state_next.count = state.count + 32'(done_one);
    state_next.bytes = done_one ? '0 : moved;
    if (done_error) state_next.error = error_q;
    if (done_one && info.notify && state.events != '1) state_next.events = state.events + 1'b1;
    if (fails) state_next.error = code_i[ring_q];
    if (fires) state_next.events = '0;
  end
  always_ff @(posedge clk_i) begin
    fire_q      <= fires && !rst_i;
    fire_ring_q <= ring_q;
  end
  assign fire_o = '{valid: fire_q, ring: fire_ring_q};

  for (genvar i = 0; i < int'(Rings); i++) begin : gen_ring
    logic here, clears, dirty_q, failed_q, waits_q;
    assign clears = life_i.clear && life_i.clear_ring == ring_t'(i);
    assign here   = ring_q == ring_t'(i);
    always_ff @(posedge clk_i) begin
      if (look_now_q && here) dirty_q <= 1'b0;
      if ((done_one || done_error) && here) dirty_q <= 1'b1;
      if ((done_error || fails) && here) failed_q <= 1'b1;
      if (done_one && info.notify && here) waits_q <= 1'b1;
      if (fires && here) waits_q <= 1'b0;
      if (rst_i || clears) begin
        dirty_q  <= 1'b0;
        failed_q <= 1'b0;
        waits_q  <= 1'b0;
      end
    end
    assign dirty[i]     = dirty_q;
    assign failed_o[i]  = failed_q;
    assign waiting_o[i] = waits_q;
    assign busy_o[i]    = answer_q && here;
  end

  // ---- posts

  logic puts, takes, fits;
  post_t put;
  assign put = '{
          kind: message_q ? PostMessage : look_now_q ? PostStatus : PostPacket,
          ring: ring_q,
          count: state_next.count,
          error: state_next.error,
          end_of_packet: answer_q && end_of_packet_q,
          bytes: moved
      };
  assign puts = (message_q && !ignored_q) || shows || (done_one && info.stream_to_host);
  assign takes = post_valid && post_ready;
  // A look waits for room, so few words wait. Entries need no room: packet turns start only if few posts wait.
  assign room = waiting_q < 4'd3;
  assign packet_room_o = waiting_q < 4'd2;
  always_ff @(posedge clk_i) begin
    if (puts != takes) waiting_q <= puts ? waiting_q + 1'b1 : waiting_q - 1'b1;
    if (rst_i) waiting_q <= '0;
  end
  stream_fifo #(
      .Width($bits(post_t)),
      .Depth(8),
      .Block(1'b0)
  ) i_posts (
      .*,
      `STREAM_PORTS(s, puts, fits, put),
      `STREAM_PORTS(m, post_valid, post_ready, post)
  );

  `ASSERT(no_post_lost, !puts || fits, "there is no room for what is to be posted")
  `ASSERT(cleared_at_rest, !life_i.clear || (!answer_q && !look_now_q && !message_q),
          "a ring is cleared while something is counted")

endmodule
`default_nettype wire
