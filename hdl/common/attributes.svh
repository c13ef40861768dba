// SPDX-License-Identifier: Apache-2.0
//
// Attributes that apply to one tool only.
//
//   `YOSYS_KEEP   before a declaration: Yosys keeps the signal as it is written, and does not merge its logic with what follows, for example
//                 into a carry chain. Empty for every other tool: Vivado would obey it, and could then not pack that logic.
//
//   `SYNTHESISED  1 in a build for hardware with any tool; 0 in simulation and in proofs.
//
// tools/hdl_tools.py defines YOSYS for Yosys.
`ifndef WHERRY_ATTRIBUTES_SVH
`define WHERRY_ATTRIBUTES_SVH

`ifdef YOSYS
`define YOSYS_KEEP (* keep *)
`else
`define YOSYS_KEEP
`endif

`ifdef SYNTHESIS
`define SYNTHESISED 1'b1
`else
`define SYNTHESISED 1'b0
`endif

`endif
