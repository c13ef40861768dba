// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// A queue in a stream, with a signal that it is nearly full.
///
/// Behaviour: holds Depth beats. Cuts every path. ready comes from a bit of the count, so a full queue does not accept
/// a beat even while one leaves. valid comes from a register. The payload is the RAM's output (from LUTs, or from the
/// register inside block RAM).
/// Latency: from input to output 1 cycle in LUTs, 2 in block RAM; full throughput in both.
/// Reset: empties the queue.
/// Requirements: s_valid is low during reset.
module stream_fifo_level #(
    /// Bits of the payload; at least 1.
    parameter int unsigned Width = 8,
    /// Beats that it holds; a power of two, at least 2.
    parameter int unsigned Depth = 32,
    /// Use block RAM instead of LUTs.
    parameter bit Block = Depth > 64,
    /// With Block: use UltraRAM, which has 4096 places at any Depth.
    parameter bit Ultra = 1'b0,
    /// almost_full_o is high when the queue holds at least this many beats; 1 to Depth.
    parameter int unsigned AlmostFull = Depth - 1
) (
    input wire clk_i,
    input wire rst_i,

    `STREAM_RECEIVER(s, logic [Width-1:0])

    `STREAM_SENDER(m, logic [Width-1:0])

    /// The queue holds at least AlmostFull beats.
    output logic almost_full_o
);

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end
  if (Depth < 2 || 2 ** $clog2(Depth) != Depth) begin : gen_check_depth
    $fatal(1, "Depth must be a power of two and at least 2 in %m");
  end
  if (AlmostFull < 1 || AlmostFull > Depth) begin : gen_check_almost_full
    $fatal(1, "AlmostFull must be 1 to Depth in %m");
  end

  localparam int unsigned AddressWidth = $clog2(Depth);
  localparam int unsigned CountWidth = $clog2(Depth + 1);

  logic [AddressWidth-1:0] write_q, read_q;
  logic [CountWidth-1:0] count_q;

  logic put, take, fetch, held, some_q, available;
  assign put           = s_valid && s_ready;
  assign take          = m_valid && m_ready;
  assign s_ready       = !count_q[AddressWidth];  // Depth is a power of two
  assign available     = Block ? count_q != CountWidth'(held) : some_q;
  assign almost_full_o = count_q >= CountWidth'(AlmostFull);

  always_ff @(posedge clk_i) begin
    if (put) write_q <= write_q + 1'b1;
    if (fetch) read_q <= read_q + 1'b1;
    // m_ready arrives late in the cycle, so it drives only the clock enables.
    if (put != take) begin
      count_q <= put ? count_q + 1'b1 : count_q - 1'b1;
      some_q  <= put || count_q[CountWidth-1:1] != '0;
    end
    if (rst_i) begin
      write_q <= '0;
      read_q  <= '0;
      count_q <= '0;
      some_q  <= 1'b0;
    end
  end

  fifo_ram #(
      .Width(Width),
      .Depth(Depth),
      .Block(Block),
      .Ultra(Ultra)
  ) i_ram (
      .*,
      .write_i(put),
      .write_address_i(write_q),
      .write_data_i(s_payload),
      .available_i(available),
      .read_address_i(read_q),
      .fetch_o(fetch),
      .held_o(held)
  );

  `ASSERT(count_in_range, count_q <= CountWidth'(Depth), "holds more beats than it has places for")
  `ASSERT(some_right, some_q == (count_q != '0), "whether it is empty is not what the count says")
  `ASSERT(held_counts, !held || count_q != '0, "the count has lost the beat on offer")
  `ASSERT(pointers_agree, AddressWidth'(write_q - read_q) == AddressWidth'(count_q - CountWidth'(held)),
          "the pointers are not as far apart as the count says")
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, m_payload == $past(m_payload), "a beat changed before it was taken")

endmodule
`default_nettype wire
