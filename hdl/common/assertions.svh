// SPDX-License-Identifier: Apache-2.0
//
// Assertions that simulation checks and Yosys proves, with one text. `clk_i` and `rst_i` must be in scope; nothing is
// checked in a cycle of reset. `sentence` says what went wrong, for the person who reads the log.
//
//   `ASSERT(name, condition, sentence)            holds in every cycle
//   `ASSERT_NEXT(name, before, after, sentence)   where `before` held, `after` holds one cycle later; may use $past
`ifndef WHERRY_ASSERTIONS_SVH
`define WHERRY_ASSERTIONS_SVH

// Proofs have no text to print (Yosys takes no `else`), synthesis has no assertions.
`ifdef FORMAL
`define ASSERT_ELSE(name, sentence)
`else
`define ASSERT_ELSE(name, sentence) else $error("%m: %s", sentence)
`endif

`ifdef SYNTHESIS
`define ASSERT(name, condition, sentence)
`define ASSERT_NEXT(name, before, after, sentence)
`else
`define ASSERT(name, condition, sentence) \
  always @(posedge clk_i) begin \
    if (!rst_i) begin \
      name : assert (condition) `ASSERT_ELSE(name, sentence); \
    end \
  end
`define ASSERT_NEXT(name, before, after, sentence) \
  always @(posedge clk_i) begin \
    if (!rst_i && $past(!rst_i && (before))) begin \
      name : assert (after) `ASSERT_ELSE(name, sentence); \
    end \
  end
`endif

`endif
