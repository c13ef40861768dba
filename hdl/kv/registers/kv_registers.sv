// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The registers of the kv core behind AXI4-Lite (docs/reference/kv-registers.md), with their outputs to the other
/// blocks. The module connects one part for each job.
///
/// Behaviour: all writable values are stored in a file in LUT RAM (kv_register_file), which reads return. Values for
/// other blocks are also in flip-flops (kv_register_effects). A write merges its bytes with the stored word, and a
/// write without bytes has no effect. Unused bits (node above [2:0], the upper halves of members, udp_port,
/// peer_mac_high and peer_port, control above [1:0]) read as 0. Reserved and read-only words ignore writes. Every
/// response is OKAY.
///
/// Epochs. The file has the staged registers as written. `kv_configuration` has the copies that the core uses.
/// Writing a new value to `epoch` starts its handshake with kv_recovery. `epoch` reads as the new one from
/// step_i.entered on, and not before. So whoever reads the new value knows that the old epoch has ended, and that
/// state.leftovers counts all leftovers. Until then state.entering is 1, and writes of `epoch` and of staged
/// registers are ignored. Accesses do not wait for that, because the network decides how long it takes. bucket_bits
/// and control.clear_table take effect only in an epoch whose low 16 bits are 0, and while no other epoch is being
/// entered. Otherwise they are ignored. `bucket_bits` accepts 8 to MostBucketBits, and clears the table if it
/// changes.
///
/// A table does not fit if part of it is beyond memory or if it begins inside a page of 4096 bytes.
/// `settings_o.misplaced` is then high until a table that fits is cleared, and clear_table_o does not come
/// (kv_table_fit).
///
/// Sources: see kv_sources. After a write of source_ip or source_mask no address is allowed until the table is rebuilt.
/// This takes 1027 cycles from the response, plus one for each access, and 92 if an epoch is entered meanwhile.
///
/// Counters: see kv_counters. After clear_counters the next read of a counter waits until all counters are 0.
/// Latency: 5 cycles from address (and data) to response for a read, 6 for a write; one access every 5 or 6
/// cycles. The first access waits up to 131 cycles after reset, and a counter up to 133 after clear_counters.
/// Outputs change with the response of a write, settings_o.leased one cycle later, and clear_table_o three
/// cycles later. 92 cycles from step_i.copy to entering_o.copied, plus one for each access; 0 for peers and
/// leaders.
/// The lease ends with the first cycle in which `cycles` could be read as the lease's value.
/// Paths: none between the bus and the rest, nor from input to output, except those of the look-ups.
/// Reset: registers have the values of docs/reference/kv-registers.md, and an epoch being entered is forgotten. The
/// copies of peers and leaders are not cleared, but no node is a member.
/// Requirements: those of kv_configuration.
module kv_registers
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_registers_pkg::*;
#(
    /// The core's parameters that software reads in `capability`.
    parameter kv_config_t  Config = DefaultConfig,
    /// The number of blocks that look up leaders and addresses, at least 1: the engine; kv_recovery and transmit.
    parameter int unsigned Askers = 2
) (
    input wire clk_i,
    input wire rst_i,

    input  wire kv_axil_req_t s_axil_req,
    output kv_axil_resp_t     s_axil_resp,

    output kv_settings_t     settings_o,
    output entering_t        entering_o,
    input  wire entry_step_t step_i,

    input wire who_ask_t [Askers-1:0] ask_i,
    output who_t [Askers-1:0] who_o,

    /// Looks up in the same cycle whether frames from this source are allowed.
    input  wire  [31:0] source_i,
    output logic        allowed_o,

    /// A pulse: control.clear_table was written, or bucket_bits changed.
    output logic clear_table_o,

    output fetch_order_t     fetch_o,
    input  wire fetch_left_t fetch_left_i,

    /// The register `state`, except `entering`.
    input wire state_t  state_i,
    input wire events_t events_i
);

  if (LeaderWord[4:0] != '0 || LeaderCount != 32 || PeerMacLowWord[4:0] != '0 || PeerMacLowCount != 8
      || PeerMacLowStride != 16 || FramesKvOffset != 12'h200 || SourceIpWord[4:0] != '0 || SourceIpCount != Sources
      || SourceIpStride != 8 || SourceMaskOffset != SourceIpOffset + 4) begin : gen_check_layout
    $fatal(1, "registers have moved: look at the words in %m");
  end

  // ---- an access

  logic idle, clearing_counters;  // idle: no epoch is being entered
  logic [31:0] word, counter;
  register_look_t  look;
  register_write_t written;
  register_walk_t  walk;
  kv_register_access i_access (
      .*,
      .initialises_i(walk.initialises),
      .clearing_i   (clearing_counters),
      .idle_i       (idle),
      .look_o       (look),
      .word_i       (word),
      .counter_i    (counter),
      .write_o      (written)
  );

  // ---- the file

  staged_t staged;
  logic kept, takes_bits;
  logic [ 4:0] source_word;
  logic [31:0] filed;
  logic [63:0] cycles;
  assign kept = written.valid && written.keeps && (written.word != BucketBitsWord || takes_bits);
  state_t state;
  always_comb begin
    state = state_i;
    state.entering = !idle;
  end
  kv_register_file #(
      .Config(Config)
  ) i_file (
      .*,
      .look_i  (look),
      .walk_i  (walk),
      .source_i(source_word),
      .write_i (written),
      .kept_i  (kept),
      .epoch_i (staged.epoch),
      .state_i (state),
      .cycles_i(cycles),
      .left_i  (fetch_left_i),
      .word_o  (word),
      .filed_o (filed)
  );

  // ---- effects of a write

  direct_t direct;
  logic leased, misplaced, none, clear_counters, clear_table;
  assign none = staged.epoch[15:0] == '0 && idle;
  kv_register_effects i_effects (
      .*,
      .write_i         (written),
      .none_i          (none),
      .takes_bits_o    (takes_bits),
      .direct_o        (direct),
      .clear_counters_o(clear_counters),
      .clear_table_o   (clear_table)
  );
  kv_table_fit i_table (
      .*,
      .direct_i   (direct),
      .clear_i    (clear_table),
      .clear_o    (clear_table_o),
      .misplaced_o(misplaced)
  );
  kv_lease i_lease (
      .*,
      .look_i  (look),
      .write_i (written),
      .cycles_o(cycles),
      .leased_o(leased)
  );
  assign settings_o = '{staged: staged, direct: direct, leased: leased, misplaced: misplaced};

  // ---- epochs

  kv_configuration #(
      .Askers(Askers)
  ) i_epoch (
      .*,
      .walk_o   (walk),
      .taken_i  (look.valid),
      .word_i   (word),
      .written_i(written.valid),
      .begin_i  (written.valid && written.word == EpochWord && written.differs && written.idle),
      .epoch_i  (written.value),
      .idle_o   (idle),
      .staged_o (staged)
  );

  // ---- sources

  kv_sources i_sources (
      .*,
      .written_i(kept && written.source),
      .word_o   (source_word),
      .taken_i  (look.valid || walk.reads),
      .word_i   (filed),
      .ip_i     (source_i)
  );

  // ---- counters

  kv_counters i_counters (
      .*,
      .read_i      (look.valid && look.reads && look.in_counters),
      .read_index_i(look.word),
      .read_data_o (counter),
      .clear_i     (clear_counters),
      .clearing_o  (clearing_counters)
  );

endmodule
`default_nettype wire
