// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Cuts an address range into pieces at multiples of a power of two.
///
/// Behaviour: a range is an address and a length in bytes. Its pieces go out in ascending order. No piece crosses a
/// multiple of 2^s_limit, so 2^s_limit is also the maximum length. Every piece except the first begins at such a
/// multiple. `m_first` and m_last mark the range's ends. Each piece carries the range's user bits. `m_reach` is
/// m_length less 1, for users that need a piece's last byte. It is available earlier.
/// The 4 KiB rule of AXI, and MRRS and MPS of PCIe, require such cuts.
/// Cuts: every path from the range to its pieces. `m_ready` passes through to s_ready.
/// Latency: 1 cycle, then one piece per cycle, without a pause between ranges.
/// Reset: forgets the current range.
/// Requirements: s_valid is low during reset. The length is at least 1, and the limit at most MaxLimit. A range must
/// not wrap around the end of the address space.
module range_split #(
    /// Bits of an address; more than MaxLimit.
    parameter int unsigned AddressWidth = 64,
    /// Bits of a range's length; at least 1.
    parameter int unsigned LengthWidth = 32,
    /// The largest s_limit; 1 to 30.
    parameter int unsigned MaxLimit = 12,
    /// Bits that the pieces carry; at least 1.
    parameter int unsigned UserWidth = 1,
    localparam int unsigned LimitWidth = $clog2(MaxLimit + 1),
    localparam int unsigned PieceWidth = MaxLimit + 1
) (
    input wire clk_i,
    input wire rst_i,

    input  wire                     s_valid,
    output logic                    s_ready,
    input  wire  [AddressWidth-1:0] s_address,
    input  wire  [ LengthWidth-1:0] s_length,
    input  wire  [  LimitWidth-1:0] s_limit,
    input  wire  [   UserWidth-1:0] s_user,

    output logic                    m_valid,
    input  wire                     m_ready,
    output logic [AddressWidth-1:0] m_address,
    output logic [  PieceWidth-1:0] m_length,
    output logic [    MaxLimit-1:0] m_reach,
    output logic                    m_first,
    output logic                    m_last,
    output logic [   UserWidth-1:0] m_user
);

  if (MaxLimit < 1 || MaxLimit > 30) begin : gen_check_limit
    $fatal(1, "MaxLimit must be 1 to 30 in %m");
  end
  if (AddressWidth <= MaxLimit) begin : gen_check_address_width
    $fatal(1, "AddressWidth must be more than MaxLimit in %m");
  end
  if (LengthWidth < 1) begin : gen_check_length_width
    $fatal(1, "LengthWidth must be at least 1 in %m");
  end
  if (UserWidth < 1) begin : gen_check_user_width
    $fatal(1, "UserWidth must be at least 1 in %m");
  end

  // Wide enough for a length and for a piece.
  localparam int unsigned LeftWidth = LengthWidth > PieceWidth ? LengthWidth : PieceWidth;

  logic valid_q, first_q;
  logic [AddressWidth-1:0] address_q;
  logic [LeftWidth-1:0] left_q, behind;  // each less 1: remaining bytes, and bytes that remain after this piece
  logic [MaxLimit-1:0] mask_q;  // the limit, less 1
  logic [UserWidth-1:0] user_q;
  logic [MaxLimit-1:0] room;  // bytes to the next multiple of the limit, less 1
  logic more;

  // With lengths less 1, the room needs no arithmetic, and one subtraction shows whether another piece follows.
  assign room           = mask_q & ~address_q[MaxLimit-1:0];
  assign {more, behind} = {1'b0, left_q} + {1'b0, ~LeftWidth'(room)};
  assign m_last         = !more;
  assign m_reach        = more ? room : left_q[MaxLimit-1:0];
  assign m_length       = PieceWidth'(m_reach) + 1'b1;
  assign m_valid        = valid_q;
  assign m_first        = first_q;
  assign m_address      = address_q;
  assign m_user         = user_q;
  assign s_ready        = !valid_q || (m_ready && m_last);

  always_ff @(posedge clk_i) begin
    if (m_ready) begin
      address_q <= (address_q | AddressWidth'(mask_q)) + 1'b1;
      left_q    <= behind;
      first_q   <= 1'b0;
    end
    if (s_ready) begin
      valid_q   <= s_valid;
      first_q   <= 1'b1;
      address_q <= s_address;
      left_q    <= LeftWidth'(s_length) - 1'b1;
      mask_q    <= ~('1 << s_limit);
      user_q    <= s_user;
    end
    if (rst_i) valid_q <= 1'b0;
  end

  `ASSERT(length_given, !s_valid || s_length != '0, "a range of no bytes")
  `ASSERT(limit_in_range, !s_valid || 32'(s_limit) <= MaxLimit, "a limit beyond the largest")
  `ASSERT(within_limit,
          !m_valid || ((m_address ^ (m_address + AddressWidth'(m_length) - 1'b1)) & ~AddressWidth'(mask_q)) == '0,
          "a piece crosses the limit")
  `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a piece was withdrawn before it was taken")
  `ASSERT_NEXT(payload_kept, m_valid && !m_ready, {m_address, m_length, m_first, m_last, m_user} == $past
               ({m_address, m_length, m_first, m_last, m_user}), "a piece changed before it was taken")

endmodule
`default_nettype wire
