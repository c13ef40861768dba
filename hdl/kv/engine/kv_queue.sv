// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// A queue with a reader that can start over: a request stays in the queue until its processing has succeeded.
///
/// Behaviour: take_i advances to the next request. A request stays in the queue until done_i reports the oldest taken
/// request as done. `rewind_i` offers all requests again that were taken and are not done, the oldest first.
/// Latency: 1 cycle from a request's arrival to its offer. `late_o`, the part in block RAM, comes one cycle after the
/// offer.
/// Reset: empties the queue.
/// Requirements: valid_i is low during reset, and high only while room_o is high. done_i is low in a cycle of rewind_i.
module kv_queue #(
    parameter int unsigned Width = 8,
    /// Bits of the part of a request that is needed only one cycle after its offer.
    parameter int unsigned LateWidth = 8,
    /// A power of two, at least 4.
    parameter int unsigned Depth = 32
) (
    input wire clk_i,
    input wire rst_i,

    /// The queue has room for two more requests.
    output logic                 room_o,
    input  wire                  valid_i,
    input  wire  [    Width-1:0] request_i,
    input  wire  [LateWidth-1:0] late_i,

    output logic                 valid_o,
    output logic [    Width-1:0] request_o,
    output logic [LateWidth-1:0] late_o,
    input  wire                  take_i,
    input  wire                  done_i,
    input  wire                  rewind_i
);

  localparam int unsigned Bits = $clog2(Depth);

  if (Depth < 4 || 2 ** Bits != Depth) begin : gen_check_depth
    $fatal(1, "Depth must be a power of two and at least 4 in %m");
  end

  // Modulo 2 * Depth: write - done counts the stored requests, and take - done those that are being tried.
  logic [Bits:0] write_q, take_q, done_q, held;
  // rewind_i arrives late in the cycle, and the other inputs are early.
  `YOSYS_KEEP
  logic [Bits:0] onward;
  assign held    = write_q - done_q;
  assign valid_o = write_q != take_q;
  assign onward  = take_q + (Bits + 1)'(take_i);

  always_ff @(posedge clk_i) begin
    if (valid_i) write_q <= write_q + 1'b1;
    take_q <= rewind_i ? done_q : onward;
    if (done_i) done_q <= done_q + 1'b1;
    // For timing, room_o uses the count of the previous cycle. One more request may have arrived since.
    room_o <= held < (Bits + 1)'(Depth - 3);
    if (rst_i) begin
      write_q <= '0;
      take_q  <= '0;
      done_q  <= '0;
      room_o  <= 1'b1;
    end
  end

  lutram #(
      .Width(Width),
      .Depth(Depth)
  ) i_requests (
      .*,
      .write_i(valid_i),
      .write_address_i(write_q[Bits-1:0]),
      .write_data_i(request_i),
      .read_address_i(take_q[Bits-1:0]),
      .read_data_o(request_o)
  );
  simple_dual_port_ram #(
      .Width(LateWidth),
      .Depth(Depth)
  ) i_late (
      .*,
      .write_i(valid_i),
      .write_address_i(write_q[Bits-1:0]),
      .write_data_i(late_i),
      .read_i(1'b1),
      .read_address_i(take_q[Bits-1:0]),
      .read_data_o(late_o)
  );

  `ASSERT(no_overflow, !valid_i || held < (Bits + 1)'(Depth), "a request came and there was no room")
  `ASSERT(taken_is_there, !take_i || valid_o, "nothing was there to be taken")
  `ASSERT(done_or_rewind, !(done_i && rewind_i), "one is done, and all start over")
  `ASSERT(done_was_taken, !done_i || take_q != done_q, "nothing was being tried that could be done")

endmodule
`default_nettype wire
