// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// A stream onto a wider or a narrower bus.
///
/// Behaviour: bytes keep their order and, within a wide beat, their lanes: the narrow beats of a wide one are its parts, lowest first.
/// - Up: narrow beats gather until a wide one is full or the frame ends; lanes that got none have no byte.
/// - Down: the wide beat waits while its parts go out. Of a frame's last beat those behind its last byte do not: m_last is with
///   the part that holds that byte. Parts without a byte below it go out, so what was gathered comes apart again as it was.
/// - As wide: the stream passes.
/// A wide beat has the user bits of the last narrow one in it; all parts of a wide beat have its user bits.
/// Cuts: up, valid and payload; m_ready passes to s_ready. Down and as wide, nothing.
/// Latency: up 1 cycle from the narrow beat that ends a wide one; otherwise 0. The narrow side never waits for the cell.
/// Reset: forgets what was gathered, and begins with the lowest part.
/// Requirements: in reset s_valid is low, and the next beat after it begins a frame. Both buses have as many user bits.
module stream_width #(
    /// The streams: see axi.svh.
    parameter type s_axis_t = axi_pkg::axis_narrow_t,
    parameter type m_axis_t = axi_pkg::axis_t
) (
    input wire clk_i,
    input wire rst_i,

    input  wire          s_valid,
    output logic         s_ready,
    input  wire s_axis_t s_payload,

    output logic    m_valid,
    input  wire     m_ready,
    output m_axis_t m_payload
);

  localparam int unsigned SBytes = $bits(s_payload.keep);
  localparam int unsigned MBytes = $bits(m_payload.keep);

  if (SBytes % MBytes != 0 && MBytes % SBytes != 0) begin : gen_check_bytes
    $fatal(1, "one width must be a multiple of the other in %m");
  end
  if ($bits(s_payload.user) != $bits(m_payload.user)) begin : gen_check_user
    $fatal(1, "both buses must have as many user bits in %m");
  end

  if (SBytes < MBytes) begin : gen_up
    localparam int unsigned Parts = MBytes / SBytes;
    logic valid_q, full;
    logic [Parts-1:0] part_q;  // one of them: where the next narrow beat belongs
    m_axis_t payload_q;

    assign s_ready   = !valid_q || m_ready;
    assign m_valid   = valid_q;
    assign m_payload = payload_q;
    assign full      = s_payload.last || part_q[Parts-1];

    always_ff @(posedge clk_i) begin
      if (s_ready) valid_q <= s_valid && full;
      if (s_valid && s_ready) begin
        for (int i = 0; i < int'(Parts); i++) begin
          if (part_q[i]) payload_q.data[8*SBytes*i+:8*SBytes] <= s_payload.data;
          // The first narrow beat empties the lanes above.
          if (part_q[i]) payload_q.keep[SBytes*i+:SBytes] <= s_payload.keep;
          else if (part_q[0]) payload_q.keep[SBytes*i+:SBytes] <= '0;
        end
        payload_q.last <= s_payload.last;
        payload_q.user <= s_payload.user;
        part_q         <= full ? Parts'(1) : part_q << 1;
      end
      if (rst_i) begin
        valid_q <= 1'b0;
        part_q  <= Parts'(1);
      end
    end

    `ASSERT(one_part, $onehot(part_q), "the next part is none, or several")
  end else if (SBytes > MBytes) begin : gen_down
    localparam int unsigned Parts = SBytes / MBytes;
    localparam int unsigned PartWidth = $clog2(Parts);
    logic [PartWidth-1:0] part_q;
    logic [Parts-1:0] bytes_above;  // a part above this one has a byte
    logic ends;

    always_comb begin
      bytes_above = '0;
      for (int i = int'(Parts) - 2; i >= 0; i--) begin
        bytes_above[i] = bytes_above[i+1] || s_payload.keep[MBytes*(i+1)+:MBytes] != '0;
      end
    end

    assign ends           = s_payload.last ? !bytes_above[part_q] : part_q == PartWidth'(Parts - 1);
    assign m_valid        = s_valid;
    assign s_ready        = m_ready && ends;
    assign m_payload.data = s_payload.data[8*MBytes*32'(part_q)+:8*MBytes];
    assign m_payload.keep = s_payload.keep[MBytes*32'(part_q)+:MBytes];
    assign m_payload.last = s_payload.last && ends;
    assign m_payload.user = s_payload.user;

    always_ff @(posedge clk_i) begin
      if (s_valid && m_ready) part_q <= ends ? '0 : part_q + 1'b1;
      if (rst_i) part_q <= '0;
    end

    `ASSERT(part_exists, 32'(part_q) < Parts, "a part beyond the last")
  end else begin : gen_equal
    logic unused;
    assign unused    = ^{clk_i, rst_i};
    assign m_valid   = s_valid;
    assign s_ready   = m_ready;
    assign m_payload = s_payload;
  end

  `ASSERT_NEXT(s_payload_kept, s_valid && !s_ready, s_valid && s_payload == $past(s_payload),
               "the sender withdrew or changed a beat")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, m_valid && m_payload == $past(m_payload),
               "a beat was withdrawn or changed before it was taken")

endmodule
`default_nettype wire
