// SPDX-License-Identifier: Apache-2.0
`include "axi.svh"

/// What the blocks of the kv core pass to each other: docs/kv-core.md.
package kv_core_pkg;

  import kv_frame_pkg::*;

  // A package is for many modules, none of which uses all of it.
  /* verilator lint_off UNUSEDPARAM */

  localparam int unsigned BeatBytes = 64;
  localparam int unsigned ValueBeats = MaxValueBytes / BeatBytes;

  /// A place of the pool, which is the place of the window too.
  typedef logic [5:0] place_t;

  /// Where somebody is in the network.
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
    logic [15:0] port;
  } endpoint_t;

  /// A kv frame whose form is right, from the parser or from within.
  typedef struct packed {
    endpoint_t from;
    kv_t kv;
    logic [31:0] hash;  // of kv.key
    logic [10:0] length;  // bytes of the value, at most MaxValueBytes
    logic too_long;  // it was longer: length is MaxValueBytes
    logic summed;  // the frame had a UDP checksum, so that sum is right
    logic [15:0] sum;  // one's complement sum of the value
    logic has_place;  // a place was taken for it
    place_t place;
  } request_t;

  /// What of a request the engine's first stage and the sequencer look at.
  typedef struct packed {
    kv_t kv;
    logic [31:0] hash;
  } subject_t;

  /// The rest of it.
  typedef struct packed {
    endpoint_t from;
    logic [10:0] length;
    logic too_long;
    logic summed;
    logic [15:0] sum;
    logic has_place;
    place_t place;
  } delivery_t;

  /// Kinds for which the parser takes a place: those that may have a value, or end in a write to memory.
  function automatic logic takes_place(logic [4:0] kind);
    case (kind)
      KindWrite, KindWriteIf, KindRemove, KindRemoveIf, KindReplicate, KindReplicateRemove, KindEntry: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction
  /// Of those, kinds that may take the last places, since they end without waiting for another node.
  function automatic logic takes_last_place(logic [4:0] kind);
    return kind == KindReplicate || kind == KindReplicateRemove || kind == KindEntry;
  endfunction

  /// A frame to send, or one for each of several nodes.
  typedef struct packed {
    logic [7:0] nodes;  // to these members; none: to `to`
    endpoint_t to;
    kv_t kv;
    place_t place;  // of its value in the pool; of an answer that waits for memory, what that is to have
    logic [10:0] length;  // of the value
    logic summed;  // send a UDP checksum, with this sum of the value
    logic [15:0] sum;
  } send_t;

  /// Subnets that the core answers: kv_sources. Each costs four LUTs; they come in 14 (a LUT RAM).
  localparam int unsigned Sources = 14;

  // ---- memory: 34 bits of address, so at most 2^22 buckets with four values of 1 KiB each

  localparam int unsigned AddressBits = 34;
  typedef logic [AddressBits-1:0] address_t;
  typedef logic [AddressBits-$clog2(MaxValueBytes)-$clog2(Ways)-1:0] bucket_t;
  /// The largest table whose lines and values fit there.
  localparam int unsigned MostBucketBits = AddressBits - $clog2(BeatBytes + Ways * MaxValueBytes);

  /// Buckets whose reads and writes are kept apart together.
  localparam int unsigned GroupBits = 9;
  typedef logic [GroupBits-1:0] group_t;
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic group_t group_of(bucket_t bucket);
    return bucket[GroupBits-1:0];
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /// The bucket that a frame of this kind and candidate is about, but for `fetch`. With bit 3 a kind is one between nodes whose candidate counts.
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic bucket_t bucket_for(kv_t kv, logic [31:0] hash, bucket_t mask);
    logic [9:0] cut;
    bucket_for = bucket_t'(hash) & mask;
    cut = hash[31:22] & mask[19:10];
    cut[0] = mask[10] && (hash[22] || cut[9:1] == '0);  // if nothing else is there, this is
    if (kv.kind[3]) begin
      bucket_for[9:8] = kv.candidate[1:0] & mask[9:8];
      if (kv.candidate[2]) bucket_for[19:10] = bucket_for[19:10] ^ cut;
    end
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /// Which lane.
  typedef logic [12:0] lane_number_t;

  typedef logic [15:0] job_tag_t;
  /// Bits of a tag above the place: it is nobody's; and an answer waits for this.
  localparam int unsigned TagNobody = 6, TagAnswer = 7;

  /// Something to do in memory: kv_jobs.
  typedef struct packed {
    logic write;
    bucket_t bucket;
    logic [1:0] way;
    logic [10:0] length;  // of the value
    // Of writes only:
    logic has_value;  // the value in `place` of the pool
    logic has_header;  // the way's new header, which comes beside the job
    logic clears;  // all of the bucket's line: the header is 0
    place_t place;
    job_tag_t tag;  // comes back when memory has it
  } memory_job_t;

  /// What a lane's last request was, and came to.
  typedef struct packed {
    logic [31:0] request;
    logic [31:0] version;
    logic [4:0] status;  // as it is told; StatusBusy: a leftover's
    logic in_flight;  // a write that this node leads
    logic settled;  // no write that may yet be taken back
    logic used;  // there was one
  } lane_t;

  /// A write at a follower that may not be committed yet.
  typedef struct packed {
    logic valid;
    bucket_t bucket;
    logic [1:0] way;
    logic [31:0] version;
    lane_number_t lane;
    logic [31:0] request;
  } note_t;

  /// A write at its leader.
  typedef struct packed {
    endpoint_t to;
    logic [4:0] kind;  // of the request
    logic [63:0] key;
    lane_number_t lane;
    logic [31:0] request;
    bucket_t bucket;
    logic group;  // which of the key's the bucket is in
    logic [1:0] way;
    logic [31:0] version;
    logic remove;
    logic [10:0] length;
    logic summed;
    logic [15:0] sum;
    logic leftover;  // of a former epoch: stored already, and there is no client to be told
  } window_t;

  /// Buckets whose writes are counted together. The low 8 bits of a bucket are its slot, which a leader may have few of: with bits from 12 up in
  /// them, a slot's buckets are in all cells, those of a table of at most 2^12 in one each, and a key's in as many as it has.
  typedef logic [11:0] filter_cell_t;
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic filter_cell_t filter_cell(bucket_t bucket);
    return bucket[11:0] ^ {4'd0, bucket[19:12]};
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /// What is under way in a cell's buckets: a write that this node leads, and how many notes, pending or leftover.
  /// The count cannot overflow: there are places for 512 pending notes, and for 1024 leftovers.
  typedef struct packed {
    logic leads;
    logic [10:0] notes;
  } filter_t;

  /// What the sequencer asks the engine to do, besides requests. kv.client names the lane's record, {kv.node, kv.detail[5:0]} the note,
  /// kv.detail[5:0] the place of the window, kv.detail[7:6] the way.
  typedef enum logic [3:0] {
    OpRequest = 4'd0,  // nothing else: a request from the queue
    // The request that the sequencer was told of. flag: its location was leftover; of a client's: it adds a key, as walked.
    OpAgain = 4'd1,
    OpLook = 4'd2,  // nothing is done. flag: with the line
    OpSend = 4'd3,  // the frame kv, to `nodes`; of this epoch
    OpRetry = 4'd4,  // the write at the place, if it is that one: to those who have not answered
    OpKeep = 4'd5,  // a new epoch has the write at the place: it goes on if this node leads, or never was
    OpLeave = 4'd6,  // a new epoch has the note: it goes from there
    OpAsk = 4'd7,  // for the commit of what is noted, and was looked at: its leader is the one of `nodes`
    OpTake = 4'd8,  // into the window, what is in memory
    OpReplay = 4'd9,  // what OpTake took, to the one of `nodes`, if that has not answered
    OpResolve = 4'd10,  // a noted write. flag: it never was; nodes[0]: it counts in the filter
    OpStore = 4'd11,  // the entry that the sequencer was told of, if it is newer. flag: whatever it is
    OpLane = 4'd12,  // a lane's record, if it is newer
    OpFree = 4'd13,  // the request that the sequencer was told of: nothing
    OpClear = 4'd14,  // the bucket in memory
    OpWalk = 4'd15  // nothing is done: what does the bucket say of the key that the sequencer was told of?
  } op_e;

  typedef struct packed {
    op_e op;
    logic flag;
    logic [7:0] nodes;
    kv_t kv;
    bucket_t bucket;
  } op_t;
  /// An operation but for the cell that it is about. The parts of the sequencer give theirs, and 0 when it is another's turn.
  typedef struct packed {
    op_e op;
    logic flag;
    logic [7:0] nodes;
    logic [4:0] kind;
    logic [8:0] at;  // {node, place}
    logic send;  // a frame of this node's
    logic location;  // with the cell's location as its key
    logic head;  // about the frame at the queue's head
    logic window;  // OpLook: the window's write is wanted, not the note's
  } order_t;
  /// Ends what the sequencer was told of.
  function automatic logic consumes(op_e op);
    return op == OpAgain || op == OpStore || op == OpFree;
  endfunction

  /// Where a write is, and whose it is.
  typedef struct packed {
    bucket_t bucket;
    logic [1:0] way;
    logic [31:0] version;
    lane_number_t lane;
    logic [31:0] request;
  } cell_t;

  /// Questions about leftovers have numbers that begin so, and end with the leftover's.
  localparam logic [9:0] TagLeftover = 10'h155;

  /// What to look for among the leftovers.
  typedef enum logic [1:0] {
    ListNext = 2'd0,  // one
    ListFree = 2'd1,  // an entry that holds none
    ListAt   = 2'd2,  // one of the location that the frame at the queue's head is about
    ListShow = 2'd3   // this entry, whatever it holds
  } list_find_e;

  /// Where what an operation is about comes from.
  typedef enum logic [2:0] {
    CellKeep   = 3'd0,
    CellNone   = 3'd1,
    CellSettle = 3'd2,  // a lane's request
    CellList   = 3'd3,  // a leftover
    CellFetch  = 3'd4,  // where what is to be fetched is
    CellAsk    = 3'd5,  // how it is asked for
    CellHead   = 3'd6,  // where what the frame at the queue's head is about is; the record's request
    CellNext   = 3'd7  // the next bucket
  } cell_from_e;

  /// What the sequencer hears of an operation.
  typedef struct packed {
    logic noted;
    cell_t note;
    cell_t window;
    logic same;  // the location has the request's key, or has none as the request says
    logic settled;  // OpLeave: the note was of an older write; OpTake: it has the place, or nobody else is there
    // Of the bucket, for OpWalk:
    logic found;  // the key
    logic [3:0] free;  // ways
    logic [31:0] next;  // version of what is written there
    logic noted_here, leads_here;  // there are notes; a write that this node leads
  } seen_t;

  /// What a request is, and nothing of that if it comes to nothing.
  typedef struct packed {
    logic read, write, replicate, replicated, commit, fetch, ping, lane;
    logic between;  // nodes
    logic theirs;  // the sequencer's business
  } class_t;

  /// What is to be done, as far as it is known before the line's content: at most one of those down to `clear`.
  typedef struct packed {
    logic read;  // with the line's word
    logic write;  // a client's, unless the line speaks against it
    logic tell;  // a client: `status`
    logic tell_lane;
    logic replicate;
    logic commit;  // all have answered; or there is nobody else
    logic collect;  // an answer
    logic again;  // tell that it is committed
    logic settle;  // it is committed
    logic fetch;
    logic send;  // OpSend and so on
    logic retry;
    logic replay;
    logic keep;
    logic drop;
    logic leave;
    logic ask;
    logic take;
    logic alone;  // OpTake, and nobody else is there
    logic resolve;
    logic store;
    logic learn;
    logic clear;

    status_e status;
    logic told;  // `tell` was told before: with the version of the lane's record
    logic question;  // of the node, not of a key
    logic pending;
    logic ends;  // a request ends here, with its place if that is not used
    logic dropped_epoch;
    logic dropped_duplicate;
  } plan_t;

  /// What a bucket's line says of a request.
  typedef struct packed {
    way_header_t header;  // of the way that matters
    logic [1:0] way;
    logic found;  // the key, there
    logic same;  // there is the key, or none, as kv.detail[5] says
    logic fresh;  // kv.version is newer than what is there, or that does not matter
    logic equal;  // or the same
    logic no_key, mismatch, full;  // what speaks against a client's write
    logic [3:0] free;  // ways
    logic lags;  // the way is not the request's, but one whose version lags: it has to be refreshed first
    logic [1:0][31:0] newest;  // versions: of ways 0 and 1, of 2 and 3
  } ways_t;

  /// What is known of a request: most of it in the engine's third stage, all in its last.
  typedef struct packed {
    logic flag;
    logic [7:0] nodes;
    kv_t kv;
    endpoint_t to;
    logic has_place;
    place_t place;
    logic [10:0] length;
    logic summed;
    logic [15:0] value_sum;
    bucket_t bucket;
    logic group;  // which of the key's the bucket is in
    logic written;  // what is stored has a version: not so if a location goes back to nothing
    logic [2:0] leader;
    lane_t lane;
    logic newer_lane;  // than the record's
    logic same_lane;
    note_t note;  // at (sender, place)
    filter_t filter;  // of the bucket
    filter_t filter_old;  // of the note's
    logic [7:0] answered;
    logic [4:0] window_kind;
    logic leftover;  // the window's
    cell_t window;
    logic busy;  // memory is at a write of the group
    logic removes;  // the key, or what came for it
    ways_t ways;
  } looked_t;

  /// What is to be done.
  typedef struct packed {
    logic now_valid;
    logic later_valid;
    send_t send;
    logic second;  // then `commit` to all others
    logic job_valid;
    memory_job_t job;
    way_header_t header;
    logic header_put;  // into the cache, too
    logic lane_put;
    lane_t lane;
    logic note_put;
    logic [2:0] note_node;
    note_t note;
    logic refreshes;  // a way whose version lags: what is noted for this node itself has to become a leftover
    logic filter_put;
    filter_t filter;
    logic filter_old_put;
    filter_t filter_old;
    logic window_put;
    window_t window;
    logic answered_put;
    logic [7:0] answered;
    place_t window_place;
    logic window_clear;  // a place is in use no more
    logic place_free;
    place_t place_freed;
    logic settle;  // the note that was here is committed: its lane's record, too
    logic leftover_done;
    logic defer;  // the frame when memory has the job
    logic replied;
    logic [4:0] status;
    logic dropped_duplicate;
    seen_t seen;
  } decision_t;

  /// Requests that leave nothing behind may follow each other closely.
  function automatic logic changes(logic [4:0] kind);
    case (kind)
      KindRead, KindPing, KindLane, KindFetch: return 1'b0;
      default: return 1'b1;
    endcase
  endfunction
  /// Requests that nothing is looked up for in the table must not bring a line into the cache.
  function automatic logic reads_line(logic [4:0] kind);
    case (kind)
      KindPing, KindLane, KindCommit, KindEnter, KindEntered, KindEntry, KindLaneRecord: return 1'b0;
      default: return 1'b1;
    endcase
  endfunction
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

  /// Requests of a lane are serial numbers (RFC 1982): a is newer than b.
  function automatic logic newer_request(logic [31:0] a, logic [31:0] b);
    // 0 < (a - b) mod 2^32 < 2^31, without a difference.
    return a != b && !(a[31] ^ b[31] ^ (a[30:0] < b[30:0]));
  endfunction

  /// So are versions, but 0 is older than all others.
  function automatic logic newer(logic [31:0] a, logic [31:0] b);
    return a != '0 && (b == '0 || newer_request(a, b));
  endfunction

  /// The newer of the two is a, or they are the same: less than `newer`, where that makes no difference.
  function automatic logic not_older(logic [31:0] a, logic [31:0] b);
    return b == '0 || (a != '0 && !(a[31] ^ b[31] ^ (a[30:0] < b[30:0])));
  endfunction

  /// A way whose version has these upper bits lags behind one whose version has those: docs/kv-protocol.md, section 5.
  function automatic logic version_lags(logic [2:0] older, logic [2:0] newest);
    return 3'(newest - older) == 3'd3;
  endfunction

  /// The ways of a line: the first one in its lowest bytes, each as on the wire.
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

  // ---- what the receiving side and the engine give to memory and transmit

  /// A line that is looked up; it may be written five cycles later (changes).
  typedef struct packed {
    logic read;
    logic changes;
    bucket_t bucket;
  } lookup_t;
  /// A line that is not in the cache, until it is.
  typedef struct packed {
    logic want;
    bucket_t bucket;
  } want_t;
  /// A way of a line that was looked up. The header comes with the job a cycle before, too.
  typedef struct packed {
    logic write;
    bucket_t bucket;
    logic [1:0] way;
    logic [127:0] header;
  } line_write_t;
  /// A beat of a value, into the pool.
  typedef struct packed {
    logic write;
    place_t place;
    logic [$clog2(ValueBeats)-1:0] beat;
    logic [511:0] data;
  } pool_write_t;
  /// The place whose value is arriving, and how many beats of it are in the pool; readers stay behind. All others are whole.
  typedef struct packed {
    logic filling;
    place_t place;
    logic [$clog2(ValueBeats):0] filled;
  } filling_t;
  /// A place of the pool that is given back.
  typedef struct packed {
    logic   valid;
    place_t place;
  } free_place_t;
  /// The place that the pool offers.
  typedef struct packed {
    logic   valid;
    logic   plenty;  // there are more than those kept back for takes_last_place()
    place_t place;
  } offered_place_t;
  /// A record for transmit, and the list that it joins: at most one.
  typedef struct packed {
    logic  now;
    logic  later;
    logic  deferred;  // when memory has send.place
    send_t send;
  } sending_t;

  `AXIS_TYPE(kv_axis, 512, 48)

  // ---- what memory and transmit give to the others

  /// A port of memory.
  `AXI3_TYPES(memory, AddressBits, 256)

  /// A beat that is read from the pool; its data come in the next cycle.
  typedef struct packed {
    logic read;
    place_t place;
    logic [$clog2(ValueBeats)-1:0] beat;
  } pool_read_t;
  /// What a look-up finds, two cycles after it.
  typedef struct packed {
    logic hit;
    logic [511:0] line;
  } found_t;
  /// Memory has all that a job writes.
  typedef struct packed {
    logic done;
    job_tag_t tag;
  } job_done_t;
  /// Lists of transmit that have room for few records more.
  typedef struct packed {
    logic now;
    logic later;
  } almost_full_t;

  /* verilator lint_on UNUSEDPARAM */

endpackage
