// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Proof of range_split: the pieces of a range follow one another without a gap from its address to its end. No piece
/// crosses the limit, and no piece could be longer.
module range_split_proof #(
    parameter int unsigned AddressWidth = 6,
    parameter int unsigned LengthWidth = 5,
    parameter int unsigned MaxLimit = 3,
    localparam int unsigned LimitWidth = $clog2(MaxLimit + 1)
) (
    input wire                    clk_i,
    input wire                    rst_i,
    input wire                    s_valid,
    input wire [AddressWidth-1:0] s_address,
    input wire [ LengthWidth-1:0] s_length,
    input wire [  LimitWidth-1:0] s_limit,
    input wire                    s_user,
    input wire                    m_ready
);

  logic s_ready, m_valid, m_first, m_last, m_user;
  logic [AddressWidth-1:0] m_address;
  logic [MaxLimit:0] m_length;
  logic [MaxLimit-1:0] m_reach;
  range_split #(
      .AddressWidth(AddressWidth),
      .LengthWidth(LengthWidth),
      .MaxLimit(MaxLimit)
  ) dut (
      .*
  );

  `RESET_FIRST
  `ASSUME(range_exists,
          s_length != '0 && 32'(s_limit) <= MaxLimit && 32'(s_address) + 32'(s_length) <= 2 ** AddressWidth)

  // An observer's copy of the range that is being cut and of the pieces so far.
  logic busy_q, first_q, user_q, put, take;
  logic [AddressWidth:0] next_q, end_q, after, limit;
  logic [LimitWidth-1:0] limit_q;
  assign put   = s_valid && s_ready;
  assign take  = m_valid && m_ready;
  assign after = (AddressWidth + 1)'(m_address) + (AddressWidth + 1)'(m_length);
  assign limit = (AddressWidth + 1)'(1) << limit_q;
  always_ff @(posedge clk_i) begin
    if (take) begin
      next_q  <= after;
      first_q <= 1'b0;
      if (m_last) busy_q <= 1'b0;
    end
    if (put) begin
      busy_q  <= 1'b1;
      first_q <= 1'b1;
      next_q  <= (AddressWidth + 1)'(s_address);
      end_q   <= (AddressWidth + 1)'(s_address) + (AddressWidth + 1)'(s_length);
      limit_q <= s_limit;
      user_q  <= s_user;
    end
    if (rst_i) busy_q <= 1'b0;
  end

  `ASSERT(busy_is_right, m_valid == busy_q, "a range was lost or made up")
  `ASSERT(no_gap, !m_valid || (AddressWidth + 1)'(m_address) == next_q, "a gap between pieces, or an overlap")
  `ASSERT(ends_right, !m_valid || m_last == (after == end_q), "the last piece does not end the range")
  `ASSERT(ends_within, !m_valid || after <= end_q, "a piece goes beyond the range")
  `ASSERT(first_is_right, !m_valid || m_first == first_q, "the first piece is not marked")
  `ASSERT(user_is_right, !m_valid || m_user == user_q, "the user bits were changed")
  `ASSERT(within_limit, !m_valid || (32'(m_address) >> limit_q) == (32'(after - 1'b1) >> limit_q),
          "a piece crosses the limit")
  `ASSERT(reach_is_right, !m_valid || (MaxLimit + 1)'(m_reach) + 1'b1 == m_length, "a length less 1 is not so")
  `ASSERT(no_shorter, !m_valid || m_last || (after & (limit - 1'b1)) == '0, "a piece ends before the limit")
  `COVER(three_pieces, take && m_last && $past(take && !m_last) && $past(take && m_first, 2))
  `COVER(streaming, put && take && !m_first)

  // For induction: these assertions exclude unreachable starting states.
  `ASSERT(left_is_right, !busy_q || (AddressWidth + 1)'(dut.left_q) + 1'b1 == end_q - next_q,
          "what is left is not what a listener knows")
  `ASSERT(mask_is_right, !busy_q || (AddressWidth + 1)'(dut.mask_q) == limit - 1'b1, "the limit was changed")
  `ASSERT(end_in_space,
          !busy_q || (end_q <= (AddressWidth + 1)'(2 ** AddressWidth) && next_q < end_q && 32'(limit_q) <= MaxLimit),
          "a range beyond the address space")

endmodule
`default_nettype wire
