// SPDX-License-Identifier: Apache-2.0
/// Types that the stages of the engine exchange, and the engine with kv_recovery: docs/design/kv-core.md.
package kv_engine_pkg;

  import kv_frame_pkg::*;
  import kv_core_pkg::*;

  // Many modules use the package, but each uses only a part.
  /* verilator lint_off UNUSEDPARAM */

  /// A lane's last request, and its outcome.
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

  /// Buckets whose writes are counted together. The low 8 bits of a bucket are its slot, and a leader may have few
  /// slots. With bits from 12 up mixed in, a slot's buckets are in all cells. In a table of at most 2^12 buckets each
  /// has its own cell. A key has as many cells as buckets.
  typedef logic [11:0] filter_cell_t;
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic filter_cell_t filter_cell(bucket_t bucket);
    return bucket[11:0] ^ {4'd0, bucket[19:12]};
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /// The state of a cell's buckets: whether this node leads a write in flight, and the number of notes, pending or
  /// leftover. The count cannot overflow: there are places for 512 pending notes, and for 1024 leftovers.
  typedef struct packed {
    logic leads;
    logic [10:0] notes;
  } filter_t;

  /// The operations that kv_recovery requests of the engine, besides requests. kv.client names the lane's record,
  /// {kv.node, kv.detail[5:0]} the note, kv.detail[5:0] the place of the window, kv.detail[7:6] the way.
  typedef enum logic [3:0] {
    OpRequest = 4'd0,  // nothing else: a request from the queue
    // The request that kv_recovery was told of. flag: its location was leftover; for a client's request: it adds a key,
    // as the walk found.
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
    OpStore = 4'd11,  // the entry that kv_recovery was told of, if it is newer. flag: whatever it is
    OpLane = 4'd12,  // a lane's record, if it is newer
    OpFree = 4'd13,  // the request that kv_recovery was told of: nothing
    OpClear = 4'd14,  // the bucket in memory
    OpWalk = 4'd15  // nothing is done: what does the bucket say of the key that kv_recovery was told of?
  } op_e;

  typedef struct packed {
    op_e op;
    logic flag;
    logic [7:0] nodes;
    kv_t kv;
    bucket_t bucket;
  } op_t;
  /// Ends the handling of the request that kv_recovery got.
  function automatic logic consumes(op_e op);
    return op == OpAgain || op == OpStore || op == OpFree;
  endfunction

  /// A write's place, and its owner.
  typedef struct packed {
    bucket_t bucket;
    logic [1:0] way;
    logic [31:0] version;
    lane_number_t lane;
    logic [31:0] request;
  } cell_t;

  /// Signals to kv_recovery about an operation.
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

  /// The kind of a request. All bits are 0 if the request has no effect.
  typedef struct packed {
    logic read, write, replicate, replicated, commit, fetch, ping, lane;
    logic between;  // nodes
    logic theirs;  // kv_recovery's business
  } class_t;

  /// The action, as far as it is known before the line's content: at most one of the fields down to `clear`.
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

  /// The content of a bucket's line for a request.
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

  /// Properties of a request: most are known in the engine's third stage, and all in its last.
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

  /// The operation that enters the engine in a cycle.
  typedef struct packed {
    logic valid;
    logic op;  // it is the operation
    logic from_queue;  // it is the request at the queue's head, or an operation that ends that
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

  /// The data in the engine's memories about a request.
  typedef struct packed {
    lane_t   lane;
    note_t   note;    // at (sender, place)
    filter_t filter;  // of the bucket; then of the note's
    window_t window;
  } records_t;

  /// The results of the second stage, besides the class.
  typedef struct packed {
    logic line;  // an operation that needs the line
    logic leads;  // this node, the slot
    logic known;  // a frame between nodes from whom and of what it says
    status_e refusal;  // of a client's request; StatusOk: none yet
  } judged_t;

  /// How a request compares with the records.
  typedef struct packed {
    logic matches_note;  // the commit
    logic matches_window;  // the answer, or OpRetry
    logic in_window;  // at the operation's place
    logic place_used;  // at the request's, by a leftover
    logic unanswered;  // somebody has not answered
  } compared_t;

  /// The changes that a request in the engine's last stage is about to make.
  typedef struct packed {
    logic valid;
    kv_t kv;
    filter_cell_t where;
    logic all;  // it conflicts with all
    logic settles;  // its note
  } changing_t;

  /// The actions to do.
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

  // ---- the engine and kv_recovery

  /// The memories of lanes, notes and filters are cleared, an address a cycle.
  typedef struct packed {
    logic valid;
    logic [11:0] at;
  } ram_clear_t;

  /// Signals from kv_recovery to the engine.
  typedef struct packed {
    logic op_valid;  // until it is done
    op_t op;
    logic [31:0] walked_version;  // of a key that OpAgain adds after a walk
    logic refreshing;  // there may be no other refresh
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
    logic handed_on;  // once: the head of the queue is not the engine's business
    bucket_t looked_in;  // in that cycle: where the engine looked
    subject_t head;  // of the queue
    logic settle;  // a note made way for another one: the lane's record is settled
    lane_request_t settled;
    logic pending;  // a read was refused for the sake of a note in one of this cell's buckets
    filter_cell_t pending_cell;
    logic leftover_done;  // what OpTake took is committed, or had nobody to wait for
    // A way's version is refreshed. This node's note at place 0 must become a leftover. Until then, and while there are
    // leftovers, there is no other refresh.
    logic refresh;
    logic quiet;  // nothing is on its way, but the queue may hold requests
    logic [Places-1:0] window;  // places in flight
    place_count_t in_flight;  // so many
  } from_engine_t;

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

  /// A way whose version has these upper bits lags behind one whose version has those: docs/design/kv-protocol.md,
  /// section 5.
  function automatic logic version_lags(logic [2:0] older, logic [2:0] newest);
    return 3'(newest - older) == 3'd3;
  endfunction

  /* verilator lint_on UNUSEDPARAM */

endpackage
