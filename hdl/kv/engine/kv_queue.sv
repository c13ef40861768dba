// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "attributes.svh"

/// Requests that wait, and those that are being tried: a queue whose reader can start over.
///
/// Behaviour: take_i advances to the next request. A request stays in the queue until done_i says that the oldest taken
/// one is done. rewind_i: all requests that were taken and are not done are offered again, from the oldest on.
/// Latency: request in to request out 1 cycle. late_o, the part in block RAM, comes a cycle after its request is
/// offered.
/// Reset: empties it.
/// Requirements: in reset valid_i is low; valid_i only while room_o; no done_i in a cycle of rewind_i.
module kv_queue #(
    parameter int unsigned Width = 8,
    /// Of the part of a request that is not needed in the cycle in which it is offered.
    parameter int unsigned LateWidth = 8,
    /// A power of two, at least 4.
    parameter int unsigned Depth = 32
) (
    input wire clk_i,
    input wire rst_i,

    /// There is room for two more.
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

  // Modulo 2 Depth: write - done is the number of held requests, take - done of those being tried.
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
    // It uses the count of the cycle before, since much depends on it. One more may have come since.
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
