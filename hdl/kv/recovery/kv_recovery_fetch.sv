// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Tracks the items that a returning node must fetch: buckets from their leaders, lanes from all serving nodes. Section
/// 10 of docs/design/kv-protocol.md.
///
/// Behaviour: works on one batch at a time: eight buckets of four ways each, or four lanes at eight nodes each. Of its
/// 32 items, the relevant ones are missing at first. Missing items are offered in turn (question_o) when the batch
/// begins, and again after four ticks without an answer. taken: the question was sent. own: this node itself would be
/// asked, so the item is not missing. `mine_o`: the frame at the queue's head answers a missing item. With answer_i,
/// bucket_o is the bucket of an entry. came: the answer was taken. When no item is missing, the next batch begins.
/// `restart_i` restarts the batch with another tag, so that earlier answers have no effect. So does writing a count.
/// Latency: head_i to mine_o 1 cycle, answer_i to bucket_o 0. A batch begins in 34 cycles. `question_o` follows a
/// change after 2.
/// Reset: nothing is to be fetched.
/// Requirements: `taken` and `own` only while question_o.valid is high.
module kv_recovery_fetch
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_recovery_pkg::*;
#(
    parameter kv_config_t Config = DefaultConfig
) (
    input wire clk_i,
    input wire rst_i,

    // ---- registers
    input  wire fetch_order_t order_i,
    output fetch_left_t       left_o,

    // verilator lint_off UNUSEDSIGNAL
    input wire epoch_t epoch_i,
    // verilator lint_on UNUSEDSIGNAL
    input wire         tick_i,
    input wire         restart_i,
    input wire         clear_i,    // nothing is to be fetched any more

    // ---- questions
    output question_t        question_o,
    input  wire fetch_step_t step_i,
    /// With answer_i the bucket of the answered item, otherwise of the requested item.
    input  wire              answer_i,
    output bucket_t          bucket_o,

    // ---- answers that arrived
    // verilator lint_off UNUSEDSIGNAL
    input wire kv_t head_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic mine_o
);

  localparam int unsigned LaneBits = Config.lane_bits;

  if (LaneBits < 2 || LaneBits > 12) begin : gen_check_lanes
    $fatal(1, "LaneBits must be 2 to 12 in %m");
  end

  localparam int unsigned CountBits = $bits(bucket_t) + 1;
  // The first bits of a question's tag.
  localparam logic [9:0] Tag = 10'h2aa;

  typedef enum logic [1:0] {
    Off  = 2'd0,
    Fill = 2'd1,
    Ask  = 2'd2
  } state_e;

  state_e state_q;
  logic lanes_q;  // the batch is of lanes
  logic [CountBits-1:0] count_q;  // buckets that are not complete, from bucket_q on
  logic [LaneBits:0] lanes_left_q;  // lanes
  bucket_t bucket_q;
  logic [LaneBits-1:2] lane_q;
  logic [16:0] tag_q;
  logic [5:0] missing_q;  // so many
  logic [4:0] at_q;
  logic walk_q, again_q, ask_valid_q;

  // ---- the missing items: the position of the walk, and the answers

  logic missing_write, missing_value;
  logic [4:0] missing_at, came_at;
  logic missing_here, missing_came;
  lutram #(
      .Width(1),
      .Depth(32),
      .ReadPorts(2)
  ) i_missing (
      .*,
      .write_i(missing_write),
      .write_address_i(missing_at),
      .write_data_i(missing_value),
      .read_address_i({came_at, at_q}),
      .read_data_o({missing_came, missing_here})
  );

  // A lane's record shows the lane by its number, and the answering node by its sender.
  assign came_at = lanes_q ? {head_i.request[1:0], head_i.node} : head_i.request[4:0];

  logic [1:0] silent_q;  // ticks since the last answer
  logic came, own;  // it is no longer missing
  assign came = step_i.came && mine_o && state_q == Ask;
  assign own  = step_i.own && ask_valid_q;

  logic in_batch, last_lanes, last_buckets;
  assign last_lanes = lanes_left_q[LaneBits:2] == '0;
  assign last_buckets = count_q[CountBits-1:3] == '0;
  assign in_batch = lanes_q ? (!last_lanes || at_q[4:3] < lanes_left_q[1:0]) && epoch_i.serving_others[at_q[2:0]]
                  : !last_buckets || at_q[4:2] < count_q[2:0];
  assign missing_write = state_q == Fill || came || own;
  assign missing_value = state_q == Fill && in_batch;
  assign missing_at = came ? came_at : at_q;

  // ---- questions

  assign question_o = '{
          valid: ask_valid_q,
          lanes: lanes_q,
          again: again_q,
          request: {Tag, tag_q, lanes_q ? {3'd0, at_q[4:3]} : at_q},
          way: at_q[1:0],
          lane: lanes_q ? lane_number_t'({lane_q, at_q[4:3]}) : '0,
          node: at_q[2:0]
      };

  // One adder serves both uses.
  logic [2:0] bucket_at;
  assign bucket_at = answer_i ? head_i.request[4:2] : at_q[4:2];
  assign bucket_o  = bucket_q + bucket_t'(bucket_at);

  // ---- answers

  logic answers;
  always_comb begin
    if (lanes_q) answers = head_i.kind == KindLaneRecord && head_i.detail[4:0] < StatusBadLane;
    else
      answers = head_i.kind == KindEntry && head_i.detail[4:0] == StatusOk && head_i.detail[7:6] == head_i.request[1:0];
  end
  always_ff @(posedge clk_i) begin
    mine_o <= state_q == Ask && answers && missing_came && head_i.request[31:5] == {Tag, tag_q};
  end

  // ---- limits the count to the buckets that exist

  logic [CountBits-1:0] room_q;  // from order_i.from on
  bucket_t after;  // without the first
  assign after = ~epoch_i.bucket_mask & ~bucket_t'(order_i.from);
  logic beyond;  // the table's end
  assign beyond = order_i.from[31:CountBits-1] != '0 || (bucket_t'(order_i.from) & epoch_i.bucket_mask) != '0;
  always_ff @(posedge clk_i) begin
    room_q <= beyond ? '0 : CountBits'(after) + 1'b1;
  end

  assign left_o = '{count: 32'(count_q), lanes: 17'(lanes_left_q)};

  always_ff @(posedge clk_i) begin
    // While answers come, questions are not repeated. Each answer takes time here, and a repeated question would double
    // it.
    if (tick_i) begin
      silent_q <= silent_q + 1'b1;
      if (silent_q == '1) begin
        walk_q  <= 1'b1;
        again_q <= 1'b1;
      end
    end
    if (came || state_q != Ask) silent_q <= '0;
    ask_valid_q <= 1'b0;
    case (state_q)
      Off: begin
        at_q      <= '0;
        missing_q <= '0;
        lanes_q   <= count_q == '0;
        if (epoch_i.here && (count_q != '0 || (lanes_left_q != '0 && epoch_i.serving_others != '0))) begin
          tag_q   <= tag_q + 1'b1;
          state_q <= Fill;
        end
      end
      Fill: begin
        at_q      <= at_q + 1'b1;
        missing_q <= missing_q + 6'(in_batch);
        walk_q    <= 1'b1;
        again_q   <= 1'b0;
        if (at_q == '1) state_q <= Ask;
      end
      default: begin
        missing_q <= missing_q - 6'(came || own);
        if (missing_q == '0) begin
          state_q <= Off;
          if (lanes_q) begin
            lane_q       <= lane_q + 1'b1;
            lanes_left_q <= last_lanes ? '0 : lanes_left_q - (LaneBits + 1)'(4);
          end else begin
            bucket_q <= bucket_q + bucket_t'(8);
            count_q  <= last_buckets ? '0 : count_q - CountBits'(8);
          end
        end else if (walk_q) begin
          // The question is offered until it is taken.
          ask_valid_q <= missing_here && epoch_i.here && !step_i.taken && !step_i.own;
          if (ask_valid_q ? step_i.taken || step_i.own : !missing_here) begin
            at_q <= at_q + 1'b1;
            if (at_q == '1) begin
              walk_q  <= 1'b0;
              again_q <= 1'b0;
            end
          end
        end
      end
    endcase
    if (restart_i) state_q <= Off;

    if (order_i.count_write) begin
      bucket_q <= bucket_t'(order_i.from);
      count_q  <= order_i.data < 32'(room_q) ? CountBits'(order_i.data) : room_q;
      if (state_q == Off || !lanes_q) state_q <= Off;
    end
    if (order_i.lanes_write) begin
      lane_q <= '0;
      lanes_left_q <= (LaneBits + 1)'(2 ** LaneBits);
      if (order_i.data < 32'(2 ** LaneBits)) lanes_left_q <= (LaneBits + 1)'(order_i.data);
      if (state_q == Off || lanes_q) state_q <= Off;
    end
    if (rst_i) tag_q <= '0;
    if (rst_i || clear_i) begin
      state_q      <= Off;
      count_q      <= '0;
      lanes_left_q <= '0;
      ask_valid_q  <= 1'b0;
    end
  end

  `ASSERT(asked, !(step_i.taken || step_i.own) || state_q != Ask || ask_valid_q, "an answer to no question")
  `ASSERT(missing_right, !came || missing_q != '0, "more came than was missing")

endmodule
`default_nettype wire
