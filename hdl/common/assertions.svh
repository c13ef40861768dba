// SPDX-License-Identifier: Apache-2.0
//
// Assertions from one source for simulation and for proofs with Yosys. `clk_i` and `rst_i` must be in scope. During
// reset the assertions are not checked. `sentence` describes the failure for the reader of the log.
//
//   `ASSERT(name, condition, sentence)            holds in every cycle
//   `ASSERT_NEXT(name, before, after, sentence)   where `before` held, `after` holds one cycle later; may use $past
//   `ASSUME(name, condition)                      assumes this of the inputs; in proofs only
//   `ASSUME_NEXT(name, before, after)            like `ASSERT_NEXT, but assumed; in proofs only
//   `RESET_FIRST                                  a proof begins with a cycle of reset
//   `COVER(name, condition)                       can happen; in proofs only
`ifndef WHERRY_ASSERTIONS_SVH
`define WHERRY_ASSERTIONS_SVH

`ifdef SYNTHESIS
`define ASSERT(name, condition, sentence)
`define ASSERT_NEXT(name, before, after, sentence)
`define ASSUME(name, condition)
`define ASSUME_NEXT(name, before, after)
`define RESET_FIRST
`define COVER(name, condition)
`else
`define ASSERT(name, condition, sentence) \
  always @(posedge clk_i) begin \
    if (!rst_i) begin \
      name : assert (condition) else $error("%m: %s", sentence); \
    end \
  end
`define ASSERT_NEXT(name, before, after, sentence) \
  always @(posedge clk_i) begin \
    if (!rst_i && $past(!rst_i && (before))) begin \
      name : assert (after) else $error("%m: %s", sentence); \
    end \
  end
`define ASSUME(name, condition) \
  always @(posedge clk_i) begin \
    if (!rst_i) begin \
      name : assume (condition); \
    end \
  end
`define ASSUME_NEXT(name, before, after) \
  always @(posedge clk_i) begin \
    if (!rst_i && $past(!rst_i && (before))) begin \
      name : assume (after); \
    end \
  end
`define RESET_FIRST \
  logic begun_q = 1'b0; \
  always @(posedge clk_i) begin \
    begun_q <= 1'b1; \
    reset_first : assume (begun_q || rst_i); \
  end
`define COVER(name, condition) \
  always @(posedge clk_i) begin \
    if (!rst_i) begin \
      name : cover (condition); \
    end \
  end
`endif

`endif
