// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The registers of the kv core, docs/kv-registers.md, behind AXI4-Lite, and what they say to the
/// other blocks.
///
/// Behaviour: all that can be written is kept in a file in LUT RAM, from which it is read back;
/// what other blocks need is in flip-flops besides. A write merges its bytes with the word that is
/// there; one without bytes does nothing. Bits without a meaning (node above [2:0], the upper
/// halves of members, udp_port, peer_mac_high and peer_port, control above [1:0]) read as 0.
/// Reserved and read-only words ignore writes. Every response is OKAY.
///
/// Epochs. The file has the staged registers as written; the copies that the core works with are
/// kv_configuration's. Writing another epoch than the present one begins its handshake with the sequencer.
/// From entered_i on `epoch` reads as the new one, and not before: who reads it knows that the old
/// epoch has ended, and that state.leftovers counts them all. Until then state.entering is 1, and
/// writes of `epoch` and of staged registers are ignored. No access waits for that: the network
/// decides how long it takes. bucket_bits and control.clear_table count only in
/// an epoch whose low 16 bits are 0, and while no other is being entered; else they are ignored.
/// bucket_bits takes 8 to MostBucketBits, and clears the table if it changes.
///
/// A table of which a part is beyond memory, or that begins within a page of 4096 bytes, does not fit: misplaced_o, from
/// when the registers say so until a table that fits is cleared; clear_table_o does not come.
///
/// Sources: see kv_sources. After a write of source_ip or source_mask no address is allowed until its table is built again: 1027
/// cycles from the response, one more for each access, and 92 for an epoch that is entered meanwhile.
///
/// Counters: see kv_counters. After clear_counters the next read of a counter waits until all are
/// 0.
/// Latency: address (and data) in to response 5 cycles for a read, 6 for a write, an access every 5
/// or 6; not before 131 cycles after reset, nor a counter's 133 cycles after clear_counters was
/// written. Outputs change with the response of a write, leased_o one cycle later, clear_table_o three. enter_copy_i to
/// copied_o: 92 cycles, and one for each access meanwhile. Peers and leaders: in the same cycle.
/// The lease ends with the first cycle in which `cycles` could be read as the lease's value.
/// Paths: none between the bus and the rest, nor from input to output but of the lookups.
/// Reset: all registers are as docs/kv-registers.md has them; an epoch being entered is forgotten.
/// The peers and leaders in use are not cleared: nobody is a member.
/// Requirements: enter_copy_i comes once in each enter_valid_o, entered_i once after copied_o.
module kv_registers
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_registers_pkg::*;
#(
    /// What software reads of the core in `capability`.
    parameter int unsigned MaxFollowers = 7,
    parameter int unsigned LaneBits = 12,
    parameter int unsigned Channels = 2,
    /// Lookups of slots' leaders in one cycle; at least 1.
    parameter int unsigned LeaderPorts = 1,
    /// Lookups of nodes' addresses; at least 1: transmit, and the check of a sender.
    parameter int unsigned PeerPorts = 2
) (
    input wire clk_i,
    input wire rst_i,

    input  wire  [11:0] s_axil_awaddr,
    input  wire         s_axil_awvalid,
    output logic        s_axil_awready,
    input  wire  [31:0] s_axil_wdata,
    input  wire  [ 3:0] s_axil_wstrb,
    input  wire         s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  wire         s_axil_bready,
    input  wire  [11:0] s_axil_araddr,
    input  wire         s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  wire         s_axil_rready,

    // The epoch.
    output logic             enter_valid_o,
    output logic      [31:0] enter_epoch_o,
    input  wire              enter_copy_i,
    output logic             copied_o,
    input  wire              entered_i,
    output logic      [31:0] epoch_o,
    output logic      [ 2:0] node_o,
    output logic      [ 7:0] members_o,
    output logic      [ 7:0] serving_members_o,
    /// This node: its entry among the peers, but with udp_port.
    output endpoint_t        self_o,

    input  wire       [PeerPorts-1:0][2:0] peer_index_i,
    output endpoint_t [PeerPorts-1:0]      peer_o,

    input  wire  [LeaderPorts-1:0][7:0] slot_i,
    output logic [LeaderPorts-1:0][2:0] leader_o,

    /// Whether frames from there are taken, in the same cycle.
    input  wire  [31:0] source_i,
    output logic        allowed_o,

    output logic        enable_o,
    output logic        accept_o,
    output logic [31:0] retry_cycles_o,
    output logic [ 5:0] bucket_bits_o,
    output logic [63:0] line_base_o,
    output logic [63:0] value_base_o,
    /// The lease has not ended.
    output logic        leased_o,
    /// Once: control.clear_table, or other bucket_bits.
    output logic        clear_table_o,
    /// The table does not fit into memory, or did not when it was to be cleared.
    output logic        misplaced_o,

    // Fetching: in the cycle of a write, sync_data_o is what was written.
    output logic        sync_count_write_o,
    output logic        sync_lanes_write_o,
    output logic [31:0] sync_data_o,
    output logic [31:0] sync_from_o,
    /// Not yet complete.
    input  wire  [31:0] sync_count_i,
    input  wire  [16:0] sync_lanes_i,

    // The register `state`.
    input wire                           serving_i,
    input wire                           opened_i,
    input wire                           clearing_i,
    input wire                           fault_i,
    input wire [ StateLeftoversBits-1:0] leftovers_i,
    input wire [  StateInFlightBits-1:0] in_flight_i,
    input wire [StateUnansweredBits-1:0] unanswered_i,

    // Events.
    input wire       frame_kv_i,
    input wire       passed_rx_i,
    input wire       passed_tx_i,
    input wire       dropped_checksum_i,
    input wire       dropped_length_i,
    input wire       dropped_epoch_i,
    input wire       dropped_duplicate_i,
    input wire       retry_i,
    input wire       dropped_busy_i,
    input wire       dropped_host_i,
    input wire       dropped_source_i,
    input wire       reply_i,
    input wire [3:0] reply_status_i,
    input wire       received_i,
    input wire [4:0] received_kind_i,
    input wire       sent_i,
    input wire [4:0] sent_kind_i
);

  localparam int unsigned PlaceBits = $clog2(Places);
  localparam int unsigned MinBucketBits = 8;  // a slot is a part of the bucket's number

  if (MaxFollowers > 7) begin : gen_check_followers
    $fatal(1, "MaxFollowers must be at most 7 in %m");
  end
  if (LaneBits < 1 || LaneBits > 16) begin : gen_check_lanes
    $fatal(1, "LaneBits must be 1 to 16 in %m");
  end
  if (Channels < 1 || Channels > 7) begin : gen_check_channels
    $fatal(1, "Channels must be 1 to 7 in %m");
  end
  // The file has the words below the counters.
  typedef logic [6:0] index_t;
  localparam index_t IdWord = IdOffset[8:2];
  localparam index_t CoreVersionWord = CoreVersionOffset[8:2];
  localparam index_t CapabilityWord = CapabilityOffset[8:2];
  localparam index_t ControlWord = ControlOffset[8:2];
  localparam index_t StateWord = StateOffset[8:2];
  localparam index_t EpochWord = EpochOffset[8:2];
  localparam index_t NodeWord = NodeOffset[8:2];
  localparam index_t MembersWord = MembersOffset[8:2];
  localparam index_t UdpPortWord = UdpPortOffset[8:2];
  localparam index_t RetryCyclesWord = RetryCyclesOffset[8:2];
  localparam index_t BucketBitsWord = BucketBitsOffset[8:2];
  localparam index_t CyclesWord = CyclesOffset[8:2];
  localparam index_t LeaseWord = LeaseOffset[8:2];
  localparam index_t LineBaseWord = LineBaseOffset[8:2];
  localparam index_t ValueBaseWord = ValueBaseOffset[8:2];
  localparam index_t SyncFromWord = SyncFromOffset[8:2];
  localparam index_t SyncCountWord = SyncCountOffset[8:2];
  localparam index_t SyncLanesWord = SyncLanesOffset[8:2];
  localparam index_t LeaderWord = LeaderOffset[8:2];
  localparam index_t PeerWord = PeerMacLowOffset[8:2];
  localparam index_t SourceWord = SourceIpOffset[8:2];

  if (LeaderWord[4:0] != '0 || LeaderCount != 32 || PeerWord[4:0] != '0 || PeerMacLowCount != 8
      || PeerMacLowStride != 16 || FramesKvOffset != 12'h200 || SourceWord[4:0] != '0 || SourceIpCount != Sources
      || SourceIpStride != 8 || SourceMaskOffset != SourceIpOffset + 4) begin : gen_check_layout
    $fatal(1, "registers have moved: look at the words in %m");
  end

  /// The 32 words of the slots' leaders, of the peers, and of the sources.
  function automatic logic is_leader(logic [1:0] block);
    return block == LeaderWord[6:5];
  endfunction
  function automatic logic is_peer(logic [1:0] block);
    return block == PeerWord[6:5];
  endfunction
  function automatic logic is_source(logic [5:0] pair);
    return pair[5:4] == SourceWord[6:5] && 32'(pair[3:0]) < Sources;
  endfunction
  /// Is copied when an epoch is entered.
  function automatic logic is_staged(index_t word);
    return is_leader(word[6:5]) || is_peer(word[6:5]) || word == NodeWord || word == MembersWord || word == UdpPortWord;
  endfunction
  /// Goes into the file when written.
  function automatic logic is_kept(index_t word);
    case (word)
      ControlWord, RetryCyclesWord, BucketBitsWord, LeaseWord, LeaseWord + 7'd1: return 1'b1;
      LineBaseWord, LineBaseWord + 7'd1, ValueBaseWord, ValueBaseWord + 7'd1: return 1'b1;
      SyncFromWord, SyncCountWord, SyncLanesWord: return 1'b1;
      default: return is_staged(word) || is_source(word[6:1]);
    endcase
  endfunction
  /// Bits that a word has.
  function automatic logic [31:0] bits_of(index_t word);
    if (word == ControlWord) return 32'd3;
    if (word == NodeWord) return 32'd7;
    if (word == MembersWord || word == UdpPortWord || (is_peer(word[6:5]) && word[0])) return 32'hffff;
    return '1;
  endfunction
  function automatic logic [31:0] reset_of(index_t word);
    case (word)
      IdWord: return IdReset;
      CoreVersionWord: return CoreVersionReset;
      CapabilityWord:
      return MaxFollowers << CapabilityMaxFollowersLow | LaneBits << CapabilityLaneBitsLow
                           | PlaceBits << CapabilityPlaceBitsLow | Channels << CapabilityChannelsLow
                           | MostBucketBits << CapabilityBucketBitsLow | Sources << CapabilitySourcesLow;
      UdpPortWord: return UdpPortReset;
      RetryCyclesWord: return RetryCyclesReset;
      BucketBitsWord: return BucketBitsReset;
      default: return '0;
    endcase
  endfunction

  // ---- the bus

  logic idle, initialising, reporting;  // idle: no epoch is being entered
  logic write, read, done;
  logic [11:0] address;
  logic [31:0] write_data, read_data;
  logic [3:0] strobe;

  axi_lite_registers #(
      .AddressWidth(12)
  ) i_bus (
      .clk_i,
      .rst_i,
      .s_axil_awaddr,
      .s_axil_awvalid,
      .s_axil_awready,
      .s_axil_wdata,
      .s_axil_wstrb,
      .s_axil_wvalid,
      .s_axil_wready,
      .s_axil_bresp,
      .s_axil_bvalid,
      .s_axil_bready,
      .s_axil_araddr,
      .s_axil_arvalid,
      .s_axil_arready,
      .s_axil_rdata,
      .s_axil_rresp,
      .s_axil_rvalid,
      .s_axil_rready,
      .write_o(write),
      .read_o(read),
      .address_o(address),
      .write_data_o(write_data),
      .write_strobe_o(strobe),
      .done_i(done),
      .read_data_i(read_data),
      .error_i(1'b0)
  );

  // ---- an access takes three or four cycles

  // In its first the address is registered, in the second the word is read. A read's third is its
  // last. In a write's third its bytes are merged with the word, in the fourth something happens.
  index_t walk, word_index_q;
  logic walks;  // the file is read at `walk`, but for accesses
  logic [4:0] source_word;
  logic starts, reads_q, second_q, third_q, fourth_q, in_file_q, in_counters_q, clearing_counters;
  logic [31:0] bits_q;
  logic is_kept_q, is_staged_q, is_source_q;
  logic idle_q;  // no epoch was being entered when the word was read
  assign starts = (write || read) && !second_q && !third_q && !fourth_q && !initialising
      && !(address[11:9] == FramesKvOffset[11:9] && clearing_counters);
  assign done = reads_q ? third_q : fourth_q;

  logic unused_address;
  assign unused_address = ^address[1:0];

  always_ff @(posedge clk_i) begin
    reads_q       <= read;
    word_index_q  <= address[8:2];
    in_file_q     <= address[11:9] == '0;
    in_counters_q <= address[11:9] == FramesKvOffset[11:9];
    bits_q        <= bits_of(word_index_q);
    is_kept_q     <= is_kept(word_index_q);
    is_staged_q   <= is_staged(word_index_q);
    is_source_q   <= is_source(word_index_q[6:1]);
    if (second_q) idle_q <= idle;
    second_q <= starts;
    third_q  <= second_q;
    fourth_q <= third_q && !reads_q;
    if (rst_i) begin
      second_q <= 1'b0;
      third_q  <= 1'b0;
      fourth_q <= 1'b0;
    end
  end

  logic commit, kept;  // a write's fourth cycle; of a word of the file
  logic in_none, takes_bits, takes_epoch;
  assign commit = fourth_q && in_file_q && strobe != '0;

  // The file: one read port, for accesses, else for the copying, else for the sources.
  index_t file_index;
  logic [31:0] filed, special, special_q, word, merged, merged_q, file_data;
  logic is_special, is_special_q, file_write;
  assign word       = is_special_q ? special_q : filed;

  assign file_index = second_q ? word_index_q : walks ? walk : {SourceWord[6:5], source_word};
  assign kept       = commit && is_kept_q && (idle_q || !is_staged_q) && (word_index_q != BucketBitsWord || takes_bits);
  assign file_write = commit ? kept : initialising || reporting;

  always_comb begin
    for (int i = 0; i < 32; i++) begin
      merged[i] = (strobe[i/8] ? write_data[i] : word[i]) && bits_q[i];
    end
  end
  assign file_data = commit ? merged_q : initialising ? reset_of(walk) : epoch_o;

  simple_dual_port_ram #(
      .Width(32),
      .Depth(128)
  ) i_file (
      .clk_i,
      .write_i(file_write),
      .write_address_i(commit ? word_index_q : walk),
      .write_data_i(file_data),
      .read_i(1'b1),
      .read_address_i(file_index),
      .read_data_o(filed)
  );

  logic [63:0] cycles_q;
  logic [31:0] cycles_high_q;

  always_comb begin
    is_special = 1'b1;
    special = '0;
    case (file_index)
      StateWord: begin
        special[StateServingLow] = serving_i;
        special[StateOpenedLow] = opened_i;
        special[StateClearingLow] = clearing_i;
        special[StateFaultLow] = fault_i;
        special[StateLeftoversLow+:StateLeftoversBits] = leftovers_i;
        special[StateInFlightLow+:StateInFlightBits] = in_flight_i;
        special[StateEnteringLow] = !idle;
        special[StateUnansweredLow+:StateUnansweredBits] = unanswered_i;
      end
      CyclesWord: special = cycles_q[31:0];
      CyclesWord + 7'd1: special = cycles_high_q;
      SyncCountWord: special = sync_count_i;
      SyncLanesWord: special = 32'(sync_lanes_i);
      default: is_special = 1'b0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    special_q    <= special;
    is_special_q <= is_special && reads_q;
    if (second_q && reads_q && in_file_q && word_index_q == CyclesWord) cycles_high_q <= cycles_q[63:32];
  end

  logic [31:0] counter;
  assign read_data = in_file_q ? word : in_counters_q ? counter : '0;

  // ---- what is written

  logic differs, differs_q;
  always_comb begin
    differs = 1'b0;
    for (int i = 0; i < 32; i++) if (strobe[i/8] && write_data[i] != word[i]) differs = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (third_q) begin
      merged_q  <= merged;
      differs_q <= differs;
    end
  end

  assign sync_data_o = merged_q;
  assign in_none     = epoch_o[15:0] == '0 && idle;
  assign takes_epoch = commit && word_index_q == EpochWord && differs_q && idle_q;
  assign takes_bits  = in_none && merged_q >= MinBucketBits && merged_q <= MostBucketBits;

  logic clear_counters_q, clear_table_q;

  // ---- where the table is

  // A table of 2^n bytes whose base is below the end of memory goes beyond it if the base is in the last 2^n bytes, but not
  // at their beginning. larger_q: which address bits beyond those of the smallest table are bits within the table.
  localparam int unsigned Larger = MostBucketBits - MinBucketBits;
  logic [Larger-1:0] larger_q;
  function automatic logic fits(logic [63:0] base, logic [AddressBits-1:0] inside_bits);
    fits = base[63:AddressBits] == '0 && base[11:0] == '0
        && ((base[AddressBits-1:0] | inside_bits) != '1 || (base[AddressBits-1:0] & inside_bits) == '0);
  endfunction
  function automatic logic [AddressBits-1:0] inside_of(logic [Larger-1:0] larger, int unsigned bytes);
    inside_of = AddressBits'({larger, {MinBucketBits{1'b1}}}) * AddressBits'(bytes) | AddressBits'(bytes - 1);
  endfunction
  logic lines_fit_q, values_fit_q, clear_sized_q, clear_fits_q;  // the last: whether it fits is known of the clearing
  always_ff @(posedge clk_i) begin
    clear_sized_q <= clear_table_q;
    clear_fits_q  <= clear_sized_q;
    for (int i = 0; i < int'(Larger); i++) larger_q[i] <= bucket_bits_o[4:0] > 5'(int'(MinBucketBits) + i);
    lines_fit_q   <= fits(line_base_o, inside_of(larger_q, BeatBytes));
    values_fit_q  <= fits(value_base_o, inside_of(larger_q, Ways * MaxValueBytes));
    clear_table_o <= clear_fits_q && lines_fit_q && values_fit_q;
    if (clear_fits_q) misplaced_o <= 1'b0;
    if (!lines_fit_q || !values_fit_q) misplaced_o <= 1'b1;
    if (rst_i) begin
      clear_sized_q <= 1'b0;
      clear_fits_q  <= 1'b0;
      lines_fit_q   <= 1'b1;
      values_fit_q  <= 1'b1;
      clear_table_o <= 1'b0;
      misplaced_o   <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    clear_counters_q <= 1'b0;
    clear_table_q <= 1'b0;
    sync_count_write_o <= commit && word_index_q == SyncCountWord;
    sync_lanes_write_o <= commit && word_index_q == SyncLanesWord;
    if (commit) begin
      case (word_index_q)
        ControlWord: begin
          enable_o <= merged_q[ControlEnableLow];
          accept_o <= merged_q[ControlAcceptLow];
          clear_counters_q <= strobe[ControlClearCountersLow/8] && write_data[ControlClearCountersLow];
          clear_table_q <= strobe[ControlClearTableLow/8] && write_data[ControlClearTableLow] && in_none;
        end
        RetryCyclesWord: retry_cycles_o <= merged_q;
        BucketBitsWord:
        if (takes_bits) begin
          bucket_bits_o <= merged_q[5:0];
          clear_table_q <= differs_q;
        end
        LineBaseWord: line_base_o[31:0] <= merged_q;
        LineBaseWord + 7'd1: line_base_o[63:32] <= merged_q;
        ValueBaseWord: value_base_o[31:0] <= merged_q;
        ValueBaseWord + 7'd1: value_base_o[63:32] <= merged_q;
        SyncFromWord: sync_from_o <= merged_q;
        default: ;
      endcase
    end
    if (rst_i) begin
      enable_o <= ControlReset[ControlEnableLow];
      accept_o <= ControlReset[ControlAcceptLow];
      clear_counters_q <= 1'b0;
      clear_table_q <= 1'b0;
      sync_count_write_o <= 1'b0;
      sync_lanes_write_o <= 1'b0;
      retry_cycles_o <= RetryCyclesReset;
      bucket_bits_o <= BucketBitsReset[5:0];
      line_base_o <= {LineBaseReset, LineBaseReset};
      value_base_o <= {ValueBaseReset, ValueBaseReset};
      sync_from_o <= SyncFromReset;
    end
  end

  // ---- time

  logic [63:0] lease_q;
  logic [31:0] lease_low_q;
  logic ones, low_ones_q, never_q;
  assign ones = merged_q == '1;

  always_ff @(posedge clk_i) begin
    cycles_q <= cycles_q + 1'b1;
    leased_o <= never_q || cycles_q < lease_q;
    if (commit && word_index_q == LeaseWord) begin
      lease_low_q <= merged_q;
      low_ones_q  <= ones;
    end
    if (commit && word_index_q == LeaseWord + 7'd1) begin
      lease_q <= {merged_q, lease_low_q};
      never_q <= ones && low_ones_q;
    end
    if (rst_i) begin
      cycles_q    <= {CyclesReset, CyclesReset};
      lease_low_q <= LeaseReset;
      lease_q     <= {LeaseReset, LeaseReset};
      low_ones_q  <= 1'b0;
      never_q     <= 1'b0;
      leased_o    <= 1'b0;
    end
  end

  // ---- epochs

  kv_configuration #(
      .LeaderPorts(LeaderPorts),
      .PeerPorts  (PeerPorts)
  ) i_epoch (
      .clk_i,
      .rst_i,
      .walk_o(walk),
      .walks_o(walks),
      .taken_i(second_q),
      .word_i(word),
      .initialising_o(initialising),
      .reporting_o(reporting),
      .written_i(commit),
      .begin_i(takes_epoch),
      .epoch_i(merged_q),
      .idle_o(idle),
      .enter_valid_o,
      .enter_epoch_o,
      .enter_copy_i,
      .copied_o,
      .entered_i,
      .epoch_o,
      .node_o,
      .members_o,
      .serving_members_o,
      .self_o,
      .peer_index_i,
      .peer_o,
      .slot_i,
      .leader_o
  );

  // ---- sources

  kv_sources i_sources (
      .clk_i,
      .rst_i,
      .written_i(kept && is_source_q),
      .word_o(source_word),
      .taken_i(second_q || walks),
      .word_i(filed),
      .ip_i(source_i),
      .allowed_o
  );

  // ---- counters

  function automatic int unsigned event_of(logic [11:0] offset);
    return 32'(offset - FramesKvOffset) / 4;
  endfunction

  logic [10:0] events;
  assign events[event_of(FramesKvOffset)] = frame_kv_i;
  assign events[event_of(FramesPassedRxOffset)] = passed_rx_i;
  assign events[event_of(FramesPassedTxOffset)] = passed_tx_i;
  assign events[event_of(DroppedChecksumOffset)] = dropped_checksum_i;
  assign events[event_of(DroppedLengthOffset)] = dropped_length_i;
  assign events[event_of(DroppedEpochOffset)] = dropped_epoch_i;
  assign events[event_of(DroppedDuplicateOffset)] = dropped_duplicate_i;
  assign events[event_of(RetriesOffset)] = retry_i;
  assign events[event_of(DroppedBusyOffset)] = dropped_busy_i;
  assign events[event_of(DroppedHostOffset)] = dropped_host_i;
  assign events[event_of(DroppedSourceOffset)] = dropped_source_i;

  kv_counters i_counters (
      .clk_i,
      .rst_i,
      .events_i(events),
      .reply_i,
      .reply_status_i,
      .received_i,
      .received_kind_i,
      .sent_i,
      .sent_kind_i,
      .read_i(second_q && reads_q && in_counters_q),
      .read_index_i(word_index_q),
      .read_data_o(counter),
      .clear_i(clear_counters_q),
      .clearing_o(clearing_counters)
  );

endmodule
`default_nettype wire
