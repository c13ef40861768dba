// SPDX-License-Identifier: Apache-2.0
/// Types that the engine's stages exchange, and the engine and kv_recovery: docs/design/kv-core.md.
package kv_engine_pkg;

  import kv_frame_pkg::*;
  import kv_core_pkg::*;

  // Each module that uses the package uses only a part of it.
  /* verilator lint_off UNUSEDPARAM */

  /// The last request of a lane, and its outcome.
  typedef struct packed {
    logic [31:0] request;
    logic [31:0] version;
    logic [4:0] status;  // as reported to a client; StatusBusy: the record of a leftover
    logic in_flight;  // a write that this node leads
    logic settled;  // the request's write can no longer be undone
    logic used;  // the lane has had a request
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

  /// A write in flight at its leader.
  typedef struct packed {
    endpoint_t to;
    logic [4:0] kind;  // of the request
    logic [63:0] key;
    lane_number_t lane;
    logic [31:0] request;
    bucket_t bucket;
    logic group;  // which of the key's groups the bucket is in
    logic [1:0] way;
    logic [31:0] version;
    logic remove;
    logic [10:0] length;
    logic summed;
    logic [15:0] sum;
    logic leftover;  // the write is of a former epoch: it is stored already, and no client waits for it
  } window_t;

  /// A set of buckets whose writes are counted together. The low 8 bits of a bucket are its slot, and a leader may have
  /// few slots. Mixing in bits 12 and up spreads a slot's buckets over all cells. A table of at most 2^12 buckets has a
  /// cell for each. The buckets of one key are in different cells.
  typedef logic [11:0] filter_cell_t;
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic filter_cell_t filter_cell(bucket_t bucket);
    return bucket[11:0] ^ {4'd0, bucket[19:12]};
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /// The state of a cell's buckets: whether this node leads a write in flight, and how many notes (pending or leftover)
  /// exist. The count cannot overflow, since there are at most 512 pending notes and 1024 leftovers.
  typedef struct packed {
    logic leads;
    logic [10:0] notes;
  } filter_t;

  /// The operations that kv_recovery requests from the engine. `kv.client` names the lane's record, {kv.node,
  /// kv.detail[5:0]} the note, kv.detail[5:0] the place of the window, and kv.detail[7:6] the way.
  typedef enum logic [3:0] {
    OpRequest = 4'd0,  // not an operation: a request from the queue
    // Continues the request that was handed to kv_recovery. flag: its location was leftover; in a client's request: it
    // adds a key, as the walk found.
    OpAgain = 4'd1,
    OpLook = 4'd2,  // only reads. flag: also reads the line
    OpSend = 4'd3,  // sends the frame kv of this epoch to `nodes`
    OpRetry = 4'd4,  // repeats the write at the place, if it is that one, to the nodes that have not answered
    OpKeep = 4'd5,  // in a new epoch: keeps the write at the place if this node leads it; otherwise drops it
    OpLeave = 4'd6,  // in a new epoch: removes the note, which becomes a leftover
    OpAsk = 4'd7,  // asks the leader in `nodes` for the commit of the noted write that was looked at
    OpTake = 4'd8,  // takes the write in memory into the window
    OpReplay = 4'd9,  // sends the write of OpTake to the node in `nodes`, if that has not answered
    OpResolve = 4'd10,  // settles a noted write. flag: it is undone; nodes[0]: it counts in the filter
    OpStore = 4'd11,  // stores the entry that was handed to kv_recovery, if it is newer. flag: in any case
    OpLane = 4'd12,  // stores a lane's record, if it is newer
    OpFree = 4'd13,  // ends the request that was handed to kv_recovery, without effect
    OpClear = 4'd14,  // clears the bucket in memory
    OpWalk = 4'd15  // only reads: searches the bucket for the key of the request that was handed to kv_recovery
  } op_e;

  typedef struct packed {
    op_e op;
    logic flag;
    logic [7:0] nodes;
    kv_t kv;
    bucket_t bucket;
  } op_t;
  /// True if the operation ends the request that was handed to kv_recovery.
  function automatic logic consumes(op_e op);
    return op == OpAgain || op == OpStore || op == OpFree;
  endfunction

  /// The location of a write, and the lane and request that own it.
  typedef struct packed {
    bucket_t bucket;
    logic [1:0] way;
    logic [31:0] version;
    lane_number_t lane;
    logic [31:0] request;
  } cell_t;

  /// What an operation has seen, for kv_recovery.
  typedef struct packed {
    logic noted;
    cell_t note;
    cell_t window;
    logic same;  // the location holds the request's key, or is free if the request says so
    logic settled;  // OpLeave: the note was of an older write. OpTake: it has the place, or this node is alone
    // About the bucket, for OpWalk:
    logic found;  // the key
    logic [3:0] free;  // free ways
    logic [31:0] next;  // next version of the bucket
    logic noted_here, leads_here;  // there are notes; this node leads a write
  } seen_t;

  /// The kind of a request. All bits are 0 if the request must have no effect.
  typedef struct packed {
    logic read, write, replicate, replicated, commit, fetch, ping, lane;
    logic between;  // the frame is from another node
    logic theirs;  // kv_recovery handles the request
  } class_t;

  /// The action, as far as it is known without the line. At most one of the fields down to `clear` is set.
  typedef struct packed {
    logic read;  // with the line's word
    logic write;  // a client's write, unless the line forbids it
    logic tell;  // answers a client with `status`
    logic tell_lane;
    logic replicate;
    logic commit;  // all have answered, or this node is alone
    logic collect;  // notes an answer
    logic again;  // repeats that the write is committed
    logic settle;  // the note's write is committed
    logic fetch;
    logic send;  // OpSend; the following fields are other operations
    logic retry;
    logic replay;
    logic keep;
    logic drop;
    logic leave;
    logic ask;
    logic take;
    logic alone;  // OpTake while this node is the only member
    logic resolve;
    logic store;
    logic learn;
    logic clear;

    status_e status;
    logic told;  // `tell` repeats an earlier answer, with the version of the lane's record
    logic question;  // the question is about the node, not a key
    logic pending;
    logic ends;  // the request ends here; its place is freed if it is not used
    logic dropped_epoch;
    logic dropped_duplicate;
  } plan_t;

  /// What a bucket's line contains for a request.
  typedef struct packed {
    way_header_t header;  // of the selected way
    logic [1:0] way;
    logic found;  // the key is there
    logic same;  // the location holds the key, or is free, as kv.detail[5] says
    logic fresh;  // kv.version is newer than the stored one, or the comparison does not matter
    logic equal;  // kv.version equals the stored one
    logic no_key, mismatch, full;  // reasons to refuse a client's write
    logic [3:0] free;  // free ways
    logic lags;  // the selected way has a lagging version and must be refreshed first
    logic [1:0][31:0] newest;  // newest versions: of ways 0 and 1, and of ways 2 and 3
  } ways_t;

  /// The properties of a request. Most are known in the engine's third stage, and all in its last.
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
    logic group;  // which of the key's groups the bucket is in
    logic written;  // the stored way gets a version; not if a location becomes unwritten again
    logic [2:0] leader;
    lane_t lane;
    logic newer_lane;  // newer than the record's request
    logic same_lane;
    note_t note;  // at (sender, place)
    filter_t filter;  // of the bucket
    filter_t filter_old;  // of the note's
    logic [7:0] answered;
    logic [4:0] window_kind;
    logic leftover;  // the write in the window is a leftover
    cell_t window;
    logic busy;  // memory is being written in the group
    logic removes;  // removes the key
    ways_t ways;
  } looked_t;

  /// The request or operation that enters the engine in a cycle.
  typedef struct packed {
    logic valid;
    logic op;  // it is an operation
    logic from_queue;  // it is the queue's head, or an operation that ends that request
    logic changes;  // it may change state
    logic reads_line;
    kv_t kv;
    bucket_t bucket;
  } entered_t;

  /// A request in the engine's second stage.
  typedef struct packed {
    op_e op;
    logic flag;
    logic [7:0] nodes;
    logic from_queue;
    logic changes;
    kv_t kv;
    logic [31:0] hash;
    bucket_t bucket;
    logic [2:0] leader;  // of its slot
    logic [31:0] peer_ip;  // of kv.node
    logic [15:0] peer_port;
    logic [7:0] answered;
  } asked_t;

  /// The contents of the engine's memories for a request.
  typedef struct packed {
    lane_t   lane;
    note_t   note;    // at (sender, place)
    filter_t filter;  // of the bucket; then of the note's
    window_t window;
  } records_t;

  /// The results of the second stage, in addition to the class.
  typedef struct packed {
    logic line;  // an operation that needs the line
    logic leads;  // this node leads the slot
    logic known;  // a frame between nodes has the right sender and contents
    status_e refusal;  // of a client's request; StatusOk: not refused so far
  } judged_t;

  /// How a request compares with the records.
  typedef struct packed {
    logic matches_note;  // the commit matches the note
    logic matches_window;  // the answer or OpRetry matches the window
    logic in_window;  // the operation's place is in use
    logic place_used;  // a leftover uses the request's place
    logic unanswered;  // some member has not answered
  } compared_t;

  /// The changes that the request in the engine's last stage is about to make.
  typedef struct packed {
    logic valid;
    kv_t kv;
    filter_cell_t where;
    logic all;  // the request conflicts with all others
    logic settles;  // the request settles its note
  } changing_t;

  /// The actions that a decision requests.
  typedef struct packed {
    logic now_valid;
    logic later_valid;
    send_t send;
    logic second;  // the next cycle sends `commit` to all others
    logic job_valid;
    memory_job_t job;
    way_header_t header;
    logic header_put;  // also writes the header into the cache
    logic lane_put;
    lane_t lane;
    logic note_put;
    logic [2:0] note_node;
    note_t note;
    logic refreshes;  // refreshes a lagging way: this node's own note of it must become a leftover
    logic filter_put;
    filter_t filter;
    logic filter_old_put;
    filter_t filter_old;
    logic window_put;
    window_t window;
    logic answered_put;
    logic [7:0] answered;
    place_t window_place;
    logic window_clear;  // frees a window place
    logic place_free;
    place_t place_freed;
    logic settle;  // the replaced note is committed: settles its lane's record, too
    logic leftover_done;
    logic defer;  // sends the frame when memory has done the job
    logic replied;
    logic [4:0] status;
    logic dropped_duplicate;
    seen_t seen;
  } decision_t;

  // ---- the engine and kv_recovery

  /// Clears the memories of lanes, notes and filters, one address per cycle.
  typedef struct packed {
    logic valid;
    logic [11:0] at;
  } ram_clear_t;

  /// Signals from kv_recovery to the engine.
  typedef struct packed {
    logic op_valid;  // stays high until the operation is done
    op_t op;
    logic [31:0] walked_version;  // the version of a key that OpAgain adds after a walk
    logic refreshing;  // a refresh is in progress: no other one may begin
    ram_clear_t clear;
  } to_engine_t;

  /// A lane's request.
  typedef struct packed {
    lane_number_t lane;
    logic [31:0]  request;
  } lane_request_t;

  /// Signals from the engine to kv_recovery.
  typedef struct packed {
    logic op_done;
    seen_t seen;
    logic handed_on;  // high for one cycle: kv_recovery must handle the queue's head
    bucket_t looked_in;  // in the same cycle: the bucket that the engine looked at
    subject_t head;  // of the queue
    logic settle;  // a note was replaced, so the lane's record is settled
    lane_request_t settled;
    logic pending;  // a read was answered `pending` because of a note in this cell
    filter_cell_t pending_cell;
    logic leftover_done;  // the write of OpTake is committed, or nothing had to answer
    // A way's version is refreshed. This node's note at place 0 must become a leftover. Until that is done, and while
    // there are leftovers, no other refresh begins.
    logic refresh;
    logic quiet;  // nothing is in the stages; the queue may hold requests
    logic [Places-1:0] window;  // window places in use
    place_count_t in_flight;  // their number
  } from_engine_t;

  /// True if the request may change state. Other requests may follow each other in consecutive cycles.
  function automatic logic changes(logic [4:0] kind);
    case (kind)
      KindRead, KindPing, KindLane, KindFetch: return 1'b0;
      default: return 1'b1;
    endcase
  endfunction
  /// True if the request needs a line. Other requests must not bring a line into the cache.
  function automatic logic reads_line(logic [4:0] kind);
    case (kind)
      KindPing, KindLane, KindCommit, KindEnter, KindEntered, KindEntry, KindLaneRecord: return 1'b0;
      default: return 1'b1;
    endcase
  endfunction

  /// True if a version with the upper bits `older` lags behind one with the upper bits `newest`:
  /// docs/design/kv-protocol.md, section 5.
  function automatic logic version_lags(logic [2:0] older, logic [2:0] newest);
    return 3'(newest - older) == 3'd3;
  endfunction

  /* verilator lint_on UNUSEDPARAM */

endpackage
