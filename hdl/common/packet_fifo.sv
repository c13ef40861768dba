// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// A store-and-forward queue of whole frames. A bad frame is dropped at its end.
///
/// Behaviour: a frame comes out when it is complete, and then without a gap. `s_bad` with the last beat drops the
/// frame. With DropWhenFull s_ready is always 1, and a frame without room is dropped. Otherwise the sender waits, and
/// only a frame longer than the queue is dropped, since it could never come out. Every frame comes out or is counted:
/// dropped_bad_o or dropped_full_o is 1 for one cycle for each dropped frame. A frame that is both bad and without room
/// counts as bad.
/// Cuts every path.
/// Latency: from a frame's last beat in to its first beat out 1 cycle in LUTs, 2 in block RAM.
/// Reset: empties the queue.
/// Requirements: s_valid is low during reset, and the first beat after it begins a frame.
module packet_fifo #(
    /// Bits of the payload, without last; at least 1.
    parameter int unsigned Width = 8,
    /// Beats that the queue holds, and so the longest frame; a power of two, at least 2.
    parameter int unsigned Depth = 512,
    /// Use block RAM instead of LUTs.
    parameter bit Block = Depth > 64,
    /// With Block: use UltraRAM.
    parameter bit Ultra = 1'b0,
    /// Drop frames that find no room, instead of making the sender wait.
    parameter bit DropWhenFull = 1'b0
) (
    input wire clk_i,
    input wire rst_i,

    `STREAM_RECEIVER(s, logic [Width-1:0])
    input wire s_last,
    /// Read only with the last beat.
    input wire s_bad,

    `STREAM_SENDER(m, logic [Width-1:0])
    output logic m_last,

    output logic dropped_bad_o,
    output logic dropped_full_o
);

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end
  if (Depth < 2 || 2 ** $clog2(Depth) != Depth) begin : gen_check_depth
    $fatal(1, "Depth must be a power of two and at least 2 in %m");
  end

  localparam int unsigned AddressWidth = $clog2(Depth);

  // One bit more than an address, to distinguish full from empty. `read_q` <= commit_q <= write_q, modulo the size.
  // Beats between read_q and commit_q may come out. Beats between commit_q and write_q belong to the incoming frame.
  logic [AddressWidth:0] read_q, commit_q, write_q;
  logic full, alone, lost_q, lost;
  logic put, fetch, unused_held;

  assign full           = write_q == (read_q ^ {1'b1, {AddressWidth{1'b0}}});
  // No complete frame is left to come out, so no room will become free for this frame.
  assign alone          = read_q == commit_q;
  assign s_ready        = DropWhenFull || !full || alone || lost_q;
  // This beat, or an earlier beat of this frame, found no room.
  assign lost           = lost_q || full;
  assign put            = s_valid && s_ready;

  assign dropped_bad_o  = put && s_last && s_bad;
  assign dropped_full_o = put && s_last && lost && !s_bad;

  always_ff @(posedge clk_i) begin
    if (put) begin
      if (!lost) write_q <= write_q + 1'b1;
      lost_q <= lost && !s_last;
      if (s_last && (s_bad || lost)) write_q <= commit_q;
      if (s_last && !s_bad && !lost) commit_q <= write_q + 1'b1;
    end
    if (fetch) read_q <= read_q + 1'b1;
    if (rst_i) begin
      write_q  <= '0;
      commit_q <= '0;
      read_q   <= '0;
      lost_q   <= 1'b0;
    end
  end

  fifo_ram #(
      .Width(Width + 1),
      .Depth(Depth),
      .Block(Block),
      .Ultra(Ultra)
  ) i_ram (
      .*,
      .write_i(put && !lost),
      .write_address_i(write_q[AddressWidth-1:0]),
      .write_data_i({s_last, s_payload}),
      .available_i(!alone),
      .read_address_i(read_q[AddressWidth-1:0]),
      .fetch_o(fetch),
      .held_o(unused_held),
      .m_payload({m_last, m_payload})
  );

  `ASSERT(not_overfull, (AddressWidth + 1)'(write_q - read_q) <= (AddressWidth + 1)'(Depth),
          "holds more beats than it has places for")
  `ASSERT(commit_between, (AddressWidth + 1)'(commit_q - read_q) <= (AddressWidth + 1)'(write_q - read_q),
          "the end of the whole frames is not between the pointers")
  `ASSERT_NEXT(gapless, m_valid && m_ready && !m_last, m_valid, "a gap within a frame")
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, {m_last, m_payload} == $past({m_last, m_payload}),
               "a beat changed before it was taken")

endmodule
`default_nettype wire
