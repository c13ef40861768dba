// SPDX-License-Identifier: Apache-2.0
`include "axi.svh"

/// Types that the blocks of the kv core exchange: docs/design/kv-core.md.
package kv_core_pkg;

  import kv_frame_pkg::*;

  // Each module that uses the package uses only a part of it.
  /* verilator lint_off UNUSEDPARAM */

  localparam int unsigned BeatBytes = 64;
  localparam int unsigned ValueBeats = MaxValueBytes / BeatBytes;

  /// The build parameters of a core. `kv_core` makes this struct from its parameters, and passes it to its modules.
  typedef struct packed {
    logic [31:0] channels;  // of memory: 1, 2 or 4
    logic [31:0] line_cache_bits;  // 2^n lines in the cache, 1 to 21
    logic [31:0] lane_bits;  // lanes 0 to 2^n - 1; 2 to 12
    logic [31:0] max_followers;  // the number that software reads; at most 7
    logic whole_frames;  // the network delivers only whole frames without errors, with sizes beside first beats
    logic [31:0] user_width;  // bits of tuser, at least 16
    logic [31:0] host_beats;  // beats of foreign frames that can wait for the host: a power of two, at least 2
  } kv_config_t;
  /// The parameters of the card's core.
  localparam kv_config_t DefaultConfig = '{
      channels: 2,
      line_cache_bits: 12,
      lane_bits: 12,
      max_followers: 7,
      whole_frames: 1'b1,
      user_width: 48,
      host_beats: 4096
  };
  /// True if a core with these parameters can be built.
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic logic config_is_valid(kv_config_t c);
    return (c.channels == 1 || c.channels == 2 || c.channels == 4) && c.line_cache_bits >= 1 && c.line_cache_bits <= 21
        && c.lane_bits >= 2 && c.lane_bits <= 12 && c.max_followers <= 7 && c.user_width >= 16
        && c.host_beats >= 2 && (c.host_beats & (c.host_beats - 1)) == 0;
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /// A place in the pool. The same number is the write's place in the window.
  typedef logic [5:0] place_t;
  /// A number of places.
  typedef logic [6:0] place_count_t;

  /// The network addresses of a node or client.
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
    logic [15:0] port;
  } endpoint_t;

  /// A kv frame with a valid form, from the parser or generated in the core.
  typedef struct packed {
    endpoint_t from;
    kv_t kv;
    logic [31:0] hash;  // of kv.key
    logic [10:0] length;  // bytes of the value, at most MaxValueBytes
    logic too_long;  // the value was longer: length is MaxValueBytes
    logic summed;  // the frame had a UDP checksum, so that sum is valid
    logic [15:0] sum;  // one's complement sum of the value
    logic has_place;  // the parser took a place for it
    place_t place;
  } request_t;

  /// A request with its valid bit, in the cycle of its arrival.
  typedef struct packed {
    logic valid;
    request_t what;
  } arrival_t;

  /// The part of a request that the engine's first stage and kv_recovery use.
  typedef struct packed {
    kv_t kv;
    logic [31:0] hash;
  } subject_t;

  /// The rest of a request.
  typedef struct packed {
    endpoint_t from;
    logic [10:0] length;
    logic too_long;
    logic summed;
    logic [15:0] sum;
    logic has_place;
    place_t place;
  } delivery_t;

  /// Kinds for which the parser takes a place: they may have a value, or end in a write to memory.
  function automatic logic takes_place(logic [4:0] kind);
    case (kind)
      KindWrite, KindWriteIf, KindRemove, KindRemoveIf, KindReplicate, KindReplicateRemove, KindEntry: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction
  /// Kinds that may take the last places, because these requests end without waiting for another node.
  function automatic logic takes_last_place(logic [4:0] kind);
    return kind == KindReplicate || kind == KindReplicateRemove || kind == KindEntry;
  endfunction

  /// A frame to send, or one for each of several nodes.
  typedef struct packed {
    logic [7:0] nodes;  // the receiving members; none: send to `to`
    endpoint_t to;
    kv_t kv;
    place_t place;  // the value's place in the pool; for a deferred answer: the place that memory must have first
    logic [10:0] length;  // of the value
    logic summed;  // send a UDP checksum, with this sum of the value
    logic [15:0] sum;
  } send_t;

  /// Number of subnets that the core answers: kv_sources. Each costs four LUTs. They come in groups of 14 (a LUT RAM).
  localparam int unsigned Sources = 14;

  // ---- memory: 34 bits of address, so at most 2^22 buckets with four values of 1 KiB each

  localparam int unsigned AddressBits = 34;
  typedef logic [AddressBits-1:0] address_t;
  typedef logic [AddressBits-$clog2(MaxValueBytes)-$clog2(Ways)-1:0] bucket_t;
  /// Limit of bucket_bits, so that all lines and values fit into the memory.
  localparam int unsigned MostBucketBits = AddressBits - $clog2(BeatBytes + Ways * MaxValueBytes);
  localparam int unsigned MinBucketBits = 8;  // a slot is a part of the bucket's number

  /// A set of buckets whose reads and writes are ordered together.
  localparam int unsigned GroupBits = 9;
  typedef logic [GroupBits-1:0] group_t;
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic group_t group_of(bucket_t bucket);
    return bucket[GroupBits-1:0];
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /// The bucket for a frame's hash and candidate, except for `fetch`. Bit 3 of the kind marks frames between nodes,
  /// whose candidate counts.
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic bucket_t bucket_for(kv_t kv, logic [31:0] hash, bucket_t mask);
    logic [9:0] cut;
    bucket_for = bucket_t'(hash) & mask;
    cut = hash[31:22] & mask[19:10];
    cut[0] = mask[10] && (hash[22] || cut[9:1] == '0);  // if no other bit is set, this one is
    if (kv.kind[3]) begin
      bucket_for[9:8] = kv.candidate[1:0] & mask[9:8];
      if (kv.candidate[2]) bucket_for[19:10] = bucket_for[19:10] ^ cut;
    end
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /// The number of a lane.
  typedef logic [12:0] lane_number_t;

  typedef logic [15:0] job_tag_t;
  /// Tag bits above the place. TagNobody: the write has no owner. TagAnswer: an answer waits for the write.
  localparam int unsigned TagNobody = 6, TagAnswer = 7;

  /// A job for memory: kv_jobs.
  typedef struct packed {
    logic write;
    bucket_t bucket;
    logic [1:0] way;
    logic [10:0] length;  // of the value
    // Only for writes:
    logic has_value;  // the value in `place` of the pool
    logic has_header;  // the way's new header, which comes beside the job
    logic clears;  // all of the bucket's line: the header is 0
    place_t place;
    job_tag_t tag;  // returned when memory has done the job
  } memory_job_t;

  // ---- the registers, and their readers

  /// Register values that take effect with a new epoch.
  typedef struct packed {
    logic [31:0] epoch;  // 0 in the low 16 bits: no epoch
    logic [2:0] node;
    logic [7:0] members;
    logic [7:0] serving_members;
    endpoint_t self;  // this node: its entry among the peers, with udp_port as its port
  } staged_t;

  /// Register values that take effect immediately.
  typedef struct packed {
    logic enable;
    logic accept;
    logic [31:0] retry_cycles;
    logic [5:0] bucket_bits;  // at most MostBucketBits
    logic [63:0] line_base;
    logic [63:0] value_base;
  } direct_t;

  /// The register values that the core uses.
  typedef struct packed {
    staged_t staged;
    direct_t direct;
    logic leased;  // the lease has not ended
    logic misplaced;  // the table does not fit into memory, or did not when it should have been cleared
  } kv_settings_t;

  /// The state of this node in its epoch.
  typedef struct packed {
    logic serving;  // in the epoch's serving set, with a lease, without a fault
    logic opened;  // the node accepts writes
    logic dead;  // there is a fault: the node sends nothing
    logic leftovers;  // leftovers exist
  } standing_t;

  /// Looks up the leader of a slot and the addresses of a node. The answer comes in the same cycle.
  typedef struct packed {
    logic [7:0] slot;
    logic [2:0] node;
  } who_ask_t;
  typedef struct packed {
    logic [2:0] leader;
    endpoint_t  at;
  } who_t;

  /// An order to enter an epoch. It lasts until kv_recovery reports that the epoch is entered.
  typedef struct packed {
    logic valid;
    logic [31:0] epoch;
    logic copied;  // high for one cycle: from now on the settings are those of the new epoch
  } entering_t;
  /// Progress of entering an epoch. Each signal is high for one cycle.
  typedef struct packed {
    logic copy;  // the old settings are no longer needed
    logic entered;
  } entry_step_t;

  /// The items that a returning node must fetch. A write of one of the counts starts the fetch.
  typedef struct packed {
    logic count_write;
    logic lanes_write;
    logic [31:0] data;  // what was written, in that cycle
    logic [31:0] from;  // the first bucket
  } fetch_order_t;
  /// The number of items that are still missing.
  typedef struct packed {
    logic [31:0] count;
    logic [16:0] lanes;
  } fetch_left_t;

  // ---- within kv_registers

  /// An access to a register, in the cycle in which its word is requested.
  typedef struct packed {
    logic valid;
    logic reads;  // a read, or the read before a write
    logic in_file;  // which block has the word; if neither, the value comes from elsewhere
    logic in_counters;
    kv_registers_pkg::word_t word;  // there
  } register_look_t;

  /// A write to the register file, in its last cycle.
  typedef struct packed {
    logic valid;
    kv_registers_pkg::word_t word;
    logic keeps;  // the word may be kept
    logic source;  // it is of the list of sources
    logic idle;  // no epoch was being entered when the word was read
    logic differs;  // from what was there
    logic [31:0] value;  // what was written merged with that
    logic [31:0] given;  // what was written alone
  } register_write_t;

  /// How kv_configuration steps through the register file.
  typedef struct packed {
    kv_registers_pkg::word_t word;
    logic reads;  // or initialises
    logic initialises;
    logic reports;  // the new epoch
  } register_walk_t;

  // ---- events that the registers count. Each occurs at most once per cycle

  /// Events of kv_parser.
  typedef struct packed {
    logic passed;
    logic received;
    logic dropped_checksum;
    logic dropped_length;
    logic dropped_source;
    logic dropped_busy;  // no place, or no room
  } rx_events_t;
  /// Events of kv_engine.
  typedef struct packed {
    logic received;
    logic [4:0] kind;  // of what was received
    logic replied;
    logic [4:0] status;  // of the reply
    logic dropped_epoch;
    logic dropped_duplicate;
  } engine_events_t;
  /// Events of all blocks.
  typedef struct packed {
    rx_events_t rx;
    engine_events_t engine;
    logic retry;
    logic dropped_host;
    logic passed_tx;
    logic sent;
    logic [4:0] sent_kind;
  } events_t;

  /// Signals from memory and transmit to kv_recovery.
  typedef struct packed {
    logic transmit_idle;
    logic job_write;  // a write's job was given to memory
    logic job_done;  // memory has done one
    logic cache_clearing;
  } downstream_t;

  /// The state that kv_recovery reports.
  typedef struct packed {
    logic clearing;  // the table
    logic opened;
    logic overflow;  // there were more leftovers than there is room for
    logic [11:0] leftovers;
    logic retry;  // once: a frame was repeated
  } recovery_state_t;
  function automatic logic is_write(logic [4:0] kind);
    return kind == KindWrite || kind == KindWriteIf || kind == KindRemove || kind == KindRemoveIf;
  endfunction
  function automatic logic is_replicate(logic [4:0] kind);
    return kind == KindReplicate || kind == KindReplicateRemove;
  endfunction
  function automatic logic is_replicated(logic [4:0] kind);
    return kind == KindReplicated || kind == KindReplicatedRemove;
  endfunction
  function automatic logic may_have_value(logic [4:0] kind);
    return kind == KindWrite || kind == KindWriteIf || kind == KindReplicate || kind == KindEntry;
  endfunction

  /// True if all bits are set, computed by the carry of an adder. If each bit is already a LUT, this adds no LUT and no
  /// level. For `== '1` Yosys builds a tree of two or three levels.
  function automatic logic all_of(logic [23:0] bits);
    // verilator lint_off UNUSEDSIGNAL
    logic [25:0] sum;
    // verilator lint_on UNUSEDSIGNAL
    sum = {1'b0, bits, 1'b1} + 26'd1;
    return sum[25];
  endfunction
  /// True if two words are equal. They are compared in groups of three bits, each of which is a LUT.
  function automatic logic same_word(logic [31:0] a, logic [31:0] b);
    logic [23:0] same;
    same = '1;
    for (int i = 0; i < 11; i++) same[23-i] = 3'(a >> 3 * i) == 3'(b >> 3 * i);
    return all_of(same);
  endfunction

  /// True if a is newer than b. Requests of a lane are serial numbers (RFC 1982).
  function automatic logic newer_request(logic [31:0] a, logic [31:0] b);
    // 0 < (a - b) mod 2^32 < 2^31, without a difference.
    return !same_word(a, b) && !(a[31] ^ b[31] ^ (a[30:0] < b[30:0]));
  endfunction

  /// True if version a is newer than b. Versions are serial numbers too, but 0 is older than all others.
  function automatic logic newer(logic [31:0] a, logic [31:0] b);
    return a != '0 && (b == '0 || newer_request(a, b));
  endfunction

  /// True if a is newer than b or equal. Cheaper than `newer`; for uses in which equality makes no difference.
  function automatic logic not_older(logic [31:0] a, logic [31:0] b);
    return b == '0 || (a != '0 && !(a[31] ^ b[31] ^ (a[30:0] < b[30:0])));
  endfunction

  /// A way of a line, as on the wire. The first way is in the lowest bytes.
  function automatic way_header_t way_of(logic [511:0] line, logic [1:0] way);
    logic [127:0] bytes;
    bytes = line[128*way+:128];
    for (int i = 0; i < 16; i++) way_of[8*i+:8] = bytes[8*(15-i)+:8];
  endfunction
  function automatic logic [127:0] way_bytes(way_header_t header);
    for (int i = 0; i < 16; i++) way_bytes[8*i+:8] = header[8*(15-i)+:8];
  endfunction

  /// One's complement sum of two 16-bit words.
  function automatic logic [15:0] add16(logic [15:0] a, logic [15:0] b);
    logic [16:0] total;
    total = {1'b0, a} + {1'b0, b};
    return total[15:0] + {15'b0, total[16]};
  endfunction

  // ---- signals from the receiving side and the engine to memory and transmit

  /// The look-up of a line. If `changes` is set, the line may be written five cycles later.
  typedef struct packed {
    logic read;
    logic changes;
    bucket_t bucket;
  } lookup_t;
  /// A missing line. The request lasts until the line is in the cache.
  typedef struct packed {
    logic want;
    bucket_t bucket;
  } want_t;
  /// A write to a way of a line that was looked up. The header also comes with the job, one cycle earlier.
  typedef struct packed {
    logic write;
    bucket_t bucket;
    logic [1:0] way;
    logic [127:0] header;
  } line_write_t;
  /// A beat of a value, written into the pool.
  typedef struct packed {
    logic write;
    place_t place;
    logic [$clog2(ValueBeats)-1:0] beat;
    logic [511:0] data;
  } pool_write_t;
  /// The place whose value is arriving, and its number of stored beats. Readers stay behind. Other values are whole.
  typedef struct packed {
    logic filling;
    place_t place;
    logic [$clog2(ValueBeats):0] filled;
  } filling_t;
  /// A place of the pool that is freed.
  typedef struct packed {
    logic   valid;
    place_t place;
  } free_place_t;
  /// The place that the pool offers.
  typedef struct packed {
    logic   valid;
    logic   plenty;  // more places are free than those reserved for takes_last_place()
    place_t place;
  } offered_place_t;
  /// A record for transmit, and the list that it joins. At most one of the lists is set.
  typedef struct packed {
    logic  now;
    logic  later;
    logic  deferred;  // when memory has the value of send.place
    send_t send;
  } sending_t;

  // The bundles of the registers' port, and of a stream with the card's tuser.
  `AXI_LITE_TYPES(kv_axil, 12, 32)
  `AXIS_TYPE(kv_axis, 512, DefaultConfig.user_width)

  // ---- signals from memory and transmit to the others

  /// A port of memory.
  `AXI3_TYPES(memory, AddressBits, 256)

  /// A beat to read from the pool. Its data come in the next cycle.
  typedef struct packed {
    logic read;
    place_t place;
    logic [$clog2(ValueBeats)-1:0] beat;
  } pool_read_t;
  /// The result of a look-up, two cycles after it.
  typedef struct packed {
    logic hit;
    logic [511:0] line;
  } found_t;
  /// Memory has done all writes of a job.
  typedef struct packed {
    logic done;
    job_tag_t tag;
  } job_done_t;
  /// Lists of transmit that are almost full.
  typedef struct packed {
    logic now;
    logic later;
  } almost_full_t;

  /* verilator lint_on UNUSEDPARAM */

endpackage
