// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The engine's first stage. It holds the queue of requests and selects the next one to enter.
///
/// Behaviour: at most one request or operation enters per cycle (entered_o), while open_i is high. An operation of
/// kv_recovery has priority. `stop_i` keeps requests out. While a line is missing (want_i), only its requester enters
/// (want_op_i: the operation). Nothing enters in the next two cycles, in which the cache looks for lines by itself.
/// Requests that change state are at least two cycles apart. An operation waits until no change of state has entered
/// for five cycles (calm_o). An operation that changes state keeps all others out equally long. The queue offers
/// requests that were taken but are not done (done_i) again from the cycle after rewind_i. The operation is also
/// repeated. An entry in a cycle of rewind_i has no effect.
/// Latency: 1 cycle from a request to entered_o. The part of the request that is needed later, delivery_o, follows one
/// cycle after.
/// Reset: empties the queue.
/// Requirements: two cycles after its entry, a request is done or starts over. So after rewind_i no request in progress
/// can have unseen changes. The changes of the youngest request can be read from the next cycle, except a line's, for
/// which open_i is low in that cycle.
module kv_e0_admit
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
#(
    parameter int unsigned QueueDepth = 32
) (
    input wire clk_i,
    input wire rst_i,

    input wire bucket_t bucket_mask_i,

    input  wire arrival_t   arrival_i,
    output logic            room_o,
    // verilator lint_off UNUSEDSIGNAL  // the operation, but not whom it is for
    input  wire to_engine_t recovery_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wire             op_done_i,
    input  wire             stop_i,
    input  wire             open_i,
    input  wire             want_i,
    input  wire             want_op_i,
    input  wire             done_i,
    input  wire             rewind_i,

    output entered_t  entered_o,
    output logic      calm_o,
    output subject_t  head_o,
    output delivery_t delivery_o
);

  logic head_valid, from_queue;
  subject_t head;
  kv_queue #(
      .Width($bits(subject_t)),
      .LateWidth($bits(delivery_t)),
      .Depth(QueueDepth)
  ) i_queue (
      .*,
      .valid_i(arrival_i.valid),
      .request_i({arrival_i.what.kv, arrival_i.what.hash}),
      .late_i({
        arrival_i.what.from,
        arrival_i.what.length,
        arrival_i.what.too_long,
        arrival_i.what.summed,
        arrival_i.what.sum,
        arrival_i.what.has_place,
        arrival_i.what.place
      }),
      .valid_o(head_valid),
      .request_o(head),
      .late_o(delivery_o),
      .take_i(from_queue)
  );
  assign head_o = head;

  logic [5:1] changing_q;  // bit n: a request or operation that changes state entered n cycles ago
  logic changing_op_q;  // the last such entry was an operation
  logic [2:1] wanting_q;  // bit n: an entry n cycles ago waits for a line
  logic apart, op_waits, op_busy_q, op_enters;
  // verilator lint_off UNUSEDSIGNAL
  op_t asked;
  // verilator lint_on UNUSEDSIGNAL
  assign asked = recovery_i.op;
  assign calm_o = changing_q == '0;
  assign apart = changing_op_q ? calm_o : !changing_q[1];
  assign op_waits = recovery_i.op_valid && !op_busy_q && (!want_i || want_op_i);
  assign op_enters = open_i && calm_o && op_waits;

  bucket_t fetched, named;
  assign fetched = bucket_t'(head.kv.key >> 2) & bucket_mask_i;
  assign named   = bucket_for(head.kv, head.hash, bucket_mask_i);
  // This part of entered_o is computed separately, because Verilator reports a loop if a struct depends on itself.
  logic enters, enters_changing, unnamed;
  assign from_queue = op_enters ? consumes(
      asked.op
  ) : open_i && apart && !op_waits && head_valid && (want_i ? !want_op_i && wanting_q == '0 : !stop_i);
  assign enters = from_queue || op_enters;
  assign unnamed = op_enters || head.kv.kind == KindFetch;
  assign enters_changing = enters && (op_enters ? op_changes(asked.op) : changes(head.kv.kind));
  assign entered_o = '{
          valid: enters,
          op: op_enters,
          from_queue: from_queue,
          changes: enters_changing,
          // Requests that need no line must not evict another request's line from the cache.
          reads_line:
          enters
          && (
          op_enters ? op_reads_line(asked.op, asked.flag, asked.kv.kind) : reads_line(head.kv.kind)
          ),
          kv: op_enters && !consumes(asked.op) ? asked.kv : head.kv,
          bucket: unnamed ? (op_enters ? asked.bucket : fetched) : named  // `named` arrives last
      };

  // OpSend of a `fetch` reads the line into the cache now, because the answer will write its location. A returning node
  // gets many such answers in a burst.
  function automatic logic op_reads_line(op_e op, logic flag, logic [4:0] kind);
    case (op)
      OpLook: return flag;
      OpSend: return kind == KindFetch;
      OpKeep, OpResolve, OpLane, OpFree, OpClear: return 1'b0;
      default: return 1'b1;
    endcase
  endfunction
  function automatic logic op_changes(op_e op);
    return op != OpLook && op != OpWalk && op != OpSend && op != OpAsk;
  endfunction

  always_ff @(posedge clk_i) begin
    changing_q <= {changing_q[4:1], enters_changing};
    wanting_q  <= {wanting_q[1], enters && want_i};
    if (enters_changing) changing_op_q <= op_enters;
    if (op_enters) op_busy_q <= 1'b1;
    if (rewind_i || rst_i) changing_q <= '0;
    if (rewind_i || op_done_i || rst_i) op_busy_q <= 1'b0;
    if (rst_i) begin
      changing_op_q <= 1'b0;
      wanting_q     <= '0;
    end
  end

endmodule
`default_nettype wire
