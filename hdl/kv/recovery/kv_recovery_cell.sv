// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// The subject of an operation of kv_recovery, and the operation in the engine's format. A part of kv_recovery.
///
/// Behaviour: the cell is the only copy of the current subject. It is loaded from a source, or gets the result of an
/// operation (seen_valid_i), and stays for the next operation. `op_o` is built from it, except for the frame at the
/// queue's head, which is not copied.
/// Latency: 1 cycle from a source to cell_o, 0 to op_o.
/// Reset: none.
/// Requirements: inputs are stable while an operation is in progress.
module kv_recovery_cell
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
(
    input wire clk_i,

    // ---- the cell
    input wire cell_from_e          from_i,
    input wire lane_request_t       settle_i,
    input wire cell_t               list_i,
    input wire bucket_t             fetch_bucket_i,
    input wire                [1:0] fetch_way_i,
    input wire lane_request_t       ask_i,
    input wire bucket_t             head_bucket_i,
    input wire                      seen_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input wire seen_t               seen_i,

    // ---- the operation
    input wire order_t order_i,
    input wire kv_t    head_i,
    // verilator lint_on UNUSEDSIGNAL

    output cell_t cell_o,
    output op_t   op_o
);

  always_comb begin
    op_o            = '0;
    op_o.op         = order_i.op;
    op_o.flag       = order_i.flag;
    op_o.nodes      = order_i.nodes;
    op_o.bucket     = cell_o.bucket;
    op_o.kv.kind    = order_i.kind;
    op_o.kv.node    = order_i.at[8:6];
    op_o.kv.detail  = {cell_o.way & {2{!order_i.send}}, order_i.at[5:0]};
    op_o.kv.client  = cell_o.lane;
    op_o.kv.request = cell_o.request;
    op_o.kv.version = cell_o.version;
    op_o.kv.key     = order_i.location ? 64'({cell_o.bucket, cell_o.way}) : '0;
    if (order_i.head) begin
      op_o.kv.detail    = head_i.detail;
      op_o.kv.client    = head_i.client;
      op_o.kv.candidate = head_i.candidate;
      op_o.kv.version   = head_i.version;
      op_o.kv.key       = head_i.key;
      // A lane's record has its status in another field.
      if (order_i.op == OpLane) op_o.kv.key[4:0] = head_i.detail[4:0];
    end
  end

  always_ff @(posedge clk_i) begin
    case (from_i)
      CellNone: cell_o <= '0;
      CellSettle: begin
        cell_o.lane    <= settle_i.lane;
        cell_o.request <= settle_i.request;
      end
      CellList: cell_o <= list_i;
      CellFetch: begin
        cell_o.bucket <= fetch_bucket_i;
        cell_o.way    <= fetch_way_i;
      end
      CellAsk: begin
        cell_o.version <= '0;
        cell_o.lane    <= ask_i.lane;
        cell_o.request <= ask_i.request;
      end
      CellHead: begin
        cell_o.bucket  <= head_bucket_i;
        cell_o.request <= head_i.key[31:0];
      end
      CellNext: cell_o.bucket <= cell_o.bucket + 1'b1;
      default:  ;
    endcase
    if (seen_valid_i) cell_o <= order_i.window ? seen_i.window : seen_i.note;
  end

endmodule
`default_nettype wire
