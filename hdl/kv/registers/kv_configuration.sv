// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The core's working copies of the staged registers, and the sequence that enters an epoch.
///
/// Behaviour: steps through the register file (kv_registers) word by word in two cases. After reset each word gets its
/// reset value (initialises). When an epoch is entered, the staged words are copied. At the end the word `epoch` gets
/// the new epoch (reports).
///
///     begin_i           -\___________________________  epoch_i is the new one
///     entering_o.valid  _/-----------------------\___  to `entered`; its epoch is the new one
///     step_i.copy       _______/-\___________________  the engine is drained: the old copies are no longer needed
///     entering_o.copied ________________/-\__________  staged_o, peers and leaders are new from this cycle on
///     step_i.entered    ______________________/-\____  leftovers are noted, the window is sorted out
///
/// In an epoch whose low 16 bits are 0, no node is a member.
/// Latency: initialise 128 cycles; copy to copied 92, plus one per cycle with taken_i; peers and leaders 0.
/// Reset: an epoch being entered is forgotten. Peers and leaders are not cleared, but no node is a member.
/// Requirements: begin_i only while idle_o. `copy` comes once for each epoch, and `entered` once after
/// `copied`.
module kv_configuration
  import kv_core_pkg::*;
  import kv_registers_pkg::*;
#(
    /// Number of blocks that look up leaders and addresses; at least 1.
    parameter int unsigned Askers = 2
) (
    input wire clk_i,
    input wire rst_i,

    // The register file.
    output register_walk_t        walk_o,
    /// Another block reads the file in this cycle.
    input  wire                   taken_i,
    /// The word that was read in the previous cycle.
    input  wire            [31:0] word_i,
    /// Another block writes the file in this cycle, so the report waits.
    input  wire                   written_i,

    input  wire         begin_i,
    input  wire  [31:0] epoch_i,
    /// The file is initialised, and no epoch is being entered.
    output logic        idle_o,

    // kv_recovery.
    output entering_t        entering_o,
    input  wire entry_step_t step_i,

    // The copies.
    output staged_t staged_o,

    input wire who_ask_t [Askers-1:0] ask_i,
    output who_t [Askers-1:0] who_o
);

  localparam word_t PeerWord = PeerMacLowWord;
  localparam word_t LastWord = PeerWord + 7'd31;

  if (LeaderWord[4:0] != '0 || LeaderCount != 32 || LeaderStride != 4
      || PeerWord[4:0] != '0 || PeerMacLowCount != 8 || PeerMacLowStride != 16
      || PeerMacHighOffset != PeerMacLowOffset + 4 || PeerIpOffset != PeerMacLowOffset + 8
      || PeerPortOffset != PeerMacLowOffset + 12
      || MembersWord < NodeWord || UdpPortWord < NodeWord || LeaderWord < NodeWord
      || LeaderWord > PeerWord) begin : gen_check_layout
    $fatal(1, "staged registers have moved: look at the words in %m");
  end
  if (Askers < 1) begin : gen_check_askers
    $fatal(1, "Askers must be at least 1 in %m");
  end

  // ---- the walk

  typedef enum logic [2:0] {
    Initialise = 3'd0,  // the file
    Idle = 3'd1,
    Drain = 3'd2,  // until enter_copy_i
    Copy = 3'd3,
    Settle = 3'd4,  // until entered_i
    Report = 3'd5  // the new epoch in the file
  } state_e;
  state_e state_q;

  word_t walk_q, copied_word_q;
  logic copy_q;  // word_i is this word of the walk
  logic copied_q;
  logic [31:0] epoch_q;  // that is entered
  staged_t staged_q;

  assign walk_o = '{
          word: walk_q,
          reads: state_q == Initialise || state_q == Copy,
          initialises: state_q == Initialise,
          reports: state_q == Report
      };
  assign idle_o = state_q == Idle;
  assign entering_o = '{
          valid: state_q == Drain || state_q == Copy || state_q == Settle,
          epoch: epoch_q,
          copied: copied_q
      };
  assign staged_o = staged_q;

  always_ff @(posedge clk_i) begin
    copied_q <= 1'b0;
    copy_q <= state_q == Copy && !taken_i && walk_q <= LastWord;
    copied_word_q <= walk_q;
    case (state_q)
      Initialise: begin
        walk_q <= walk_q + 1'b1;
        if (walk_q == '1) state_q <= Idle;
      end
      Idle: begin
        walk_q <= NodeWord;
        if (begin_i) begin
          epoch_q <= epoch_i;
          state_q <= Drain;
        end
      end
      Drain:   if (step_i.copy) state_q <= Copy;
      Copy: begin
        if (!taken_i && walk_q <= LastWord) walk_q <= walk_q + 1'b1;
        if (copy_q && copied_word_q == LastWord) begin
          staged_q.epoch <= epoch_q;
          copied_q <= 1'b1;
          walk_q <= EpochWord;
          state_q <= Settle;
        end
      end
      Settle:  if (step_i.entered) state_q <= Report;
      default: if (!written_i) state_q <= Idle;
    endcase
    if (rst_i) begin
      state_q <= Initialise;
      walk_q <= '0;
      copy_q <= 1'b0;
      copied_q <= 1'b0;
      staged_q.epoch <= EpochReset;
    end
  end

  // ---- the copies

  // The parts of a peer's record that have been read so far.
  logic [47:0] mac_q;
  logic [31:0] ip_q;
  logic peer_write, leader_write;
  logic [2:0] peer_index;
  endpoint_t peer;
  assign peer_index   = copied_word_q[4:2];
  assign peer         = '{mac: mac_q, ip: ip_q, port: word_i[15:0]};
  assign peer_write   = copy_q && copied_word_q[6:5] == PeerWord[6:5] && copied_word_q[1:0] == 2'd3;
  assign leader_write = copy_q && copied_word_q[6:5] == LeaderWord[6:5];

  always_ff @(posedge clk_i) begin
    if (copy_q) begin
      if (copied_word_q == NodeWord) staged_q.node <= word_i[2:0];
      if (copied_word_q == MembersWord) begin
        staged_q.members <= epoch_q[15:0] == '0 ? '0 : word_i[MembersAllLow+:MembersAllBits];
        staged_q.serving_members <= epoch_q[15:0] == '0 ? '0 : word_i[MembersServingLow+:MembersServingBits];
      end
      if (copied_word_q == UdpPortWord) staged_q.self.port <= word_i[15:0];
      case (copied_word_q[1:0])
        2'd0: mac_q[31:0] <= word_i;
        2'd1: mac_q[47:32] <= word_i[15:0];
        2'd2: ip_q <= word_i;
        default:
        if (peer_write && peer_index == staged_q.node) begin
          staged_q.self.mac <= mac_q;
          staged_q.self.ip  <= ip_q;
        end
      endcase
    end
    if (rst_i) begin
      staged_q.node <= NodeReset[2:0];
      staged_q.members <= MembersReset[MembersAllLow+:MembersAllBits];
      staged_q.serving_members <= MembersReset[MembersServingLow+:MembersServingBits];
      staged_q.self <= '{mac: '0, ip: '0, port: UdpPortReset[15:0]};
    end
  end

  logic [Askers-1:0][2:0] node_index;
  endpoint_t [Askers-1:0] at;
  lutram #(
      .Width($bits(endpoint_t)),
      .Depth(8),
      .ReadPorts(Askers)
  ) i_peers (
      .*,
      .write_i(peer_write),
      .write_address_i(peer_index),
      .write_data_i(peer),
      .read_address_i(node_index),
      .read_data_o(at)
  );

  // Node numbers are below 8, so three of a slot's four bits are enough.
  logic [7:0][2:0] copied_leaders;
  logic [Askers-1:0][4:0] leader_index;
  logic [Askers-1:0][7:0][2:0] leaders;

  for (genvar i = 0; i < 8; i++) begin : gen_copied_leader
    assign copied_leaders[i] = word_i[4*i+:3];
  end
  for (genvar i = 0; i < Askers; i++) begin : gen_who
    assign leader_index[i] = ask_i[i].slot[7:3];
    assign node_index[i] = ask_i[i].node;
    assign who_o[i] = '{leader: leaders[i][ask_i[i].slot[2:0]], at: at[i]};
  end

  lutram #(
      .Width(24),
      .Depth(32),
      .ReadPorts(Askers)
  ) i_leaders (
      .*,
      .write_i(leader_write),
      .write_address_i(copied_word_q[4:0]),
      .write_data_i(copied_leaders),
      .read_address_i(leader_index),
      .read_data_o(leaders)
  );

  `ASSERT(begins_when_idle, !begin_i || state_q == Idle, "an epoch is being entered already")
  `ASSERT(copy_when_asked, !step_i.copy || state_q == Drain, "a step while nobody waits for it")
  `ASSERT(entered_when_copied, !step_i.entered || state_q == Settle, "it is entered before the copies are new")

endmodule
`default_nettype wire
