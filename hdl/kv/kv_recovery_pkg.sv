// SPDX-License-Identifier: Apache-2.0
/// Types that the parts of kv_recovery exchange: docs/design/kv-core.md.
package kv_recovery_pkg;

  import kv_core_pkg::*;
  import kv_engine_pkg::*;

  // Many modules use the package, but each uses only a part.
  /* verilator lint_off UNUSEDPARAM */

  /// An operation, except the cell that it is about. The parts of kv_recovery give theirs, and 0 when it is another's
  /// turn.
  typedef struct packed {
    logic valid;  // there is one; else the rest means nothing
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

  /// Questions about leftovers have numbers that begin so, and end with the leftover's.
  localparam logic [9:0] TagLeftover = 10'h155;

  /// The object of a search among the leftovers.
  typedef enum logic [1:0] {
    ListNext = 2'd0,  // one
    ListFree = 2'd1,  // an entry that holds none
    ListAt   = 2'd2,  // one of the location that the frame at the queue's head is about
    ListShow = 2'd3   // this entry, whatever it holds
  } list_find_e;

  /// The source of an operation's subject.
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

  /// The epoch as its parts see it, a cycle late.
  typedef struct packed {
    logic here;  // this node is in it, and alive
    logic [2:0] node;
    logic [7:0] others;  // members
    logic alone;  // there are none
    logic [7:0] serving_others;
    bucket_t bucket_mask;  // the bits that a bucket's number does not have
  } epoch_t;

  /// Signals that begin or end a walk.
  typedef struct packed {
    logic tick;  // the timer has gone off
    logic entered;  // an epoch
    logic forget;  // what belonged to the epoch before
  } occasion_t;

  /// The question of a cycle ago, and the result that the last operation has seen.
  typedef struct packed {
    logic [2:0] leader;  // of the slot
    logic mine;  // that is this node
    logic used;  // the place of the window
    logic written;  // by a client's write
    logic noted, same, settled;  // see seen_t
  } heard_t;

  /// A part's turn. It begins once, and a step may be taken in each cycle without an operation in progress.
  typedef struct packed {
    logic start;
    logic go;
  } turn_t;
  /// The work of a part in its turn.
  typedef struct packed {
    logic active;  // it is not done
    order_t order;
    cell_from_e cell_from;
    logic again;  // the order is something said again
  } step_t;

  /// The turn of kv_recovery_epoch: at most one of `enter`, `clear` and `note` begins.
  typedef struct packed {
    logic enter;  // an epoch
    logic clear;  // the table
    logic note;  // what is said of a refresh
    logic go;  // as in turn_t
    logic waits;  // something else has to be done first
  } epoch_turn_t;
  /// The part of it that all others need.
  typedef struct packed {
    logic entering;  // until it is entered, though it is not active
    logic clearing;
    logic forget;  // what belonged to the epoch before
    logic leads;  // this node, a slot
    logic overflow;
  } epoch_state_t;

  /// The outcome of a question or its answer: kv_recovery_fetch.
  typedef struct packed {
    logic taken;  // the question was sent
    logic own;    // this node is the one to be asked
    logic came;   // what the queue's head answers was taken
  } fetch_step_t;

  /// Another node's message about the epoch.
  typedef struct packed {
    logic enter;
    logic entered;
    logic [2:0] node;
  } greeting_t;

  /// How far the note of a refresh is.
  typedef struct packed {
    logic due;
    logic under_way;  // until the number of leftovers tells
    logic done;  // once
  } refresh_t;

  /// An entry of the list of leftovers. One bit more also covers the end of a full list.
  typedef logic [10:0] leftover_at_t;
  /// A request to that list.
  typedef struct packed {
    logic find;
    list_find_e what;
    logic [$bits(leftover_at_t):0] from;
    logic again;  // not from there, but after what was found last
    logic keep;  // the cell, there
    logic drop;  // what is there
  } list_ask_t;
  /// What it has.
  typedef struct packed {
    logic busy;
    logic found;
    leftover_at_t at;
    logic valid;  // it holds this:
    cell_t what;
    // The frame at the queue's head compared with the entry's write: the frame is newer; has the same version; is the
    // same request.
    logic newer, equal, same;
  } list_answer_t;

  /// The items that kv_recovery_fetch asks for.
  typedef struct packed {
    logic valid;
    logic lanes;  // of a lane's record
    logic again;  // it was asked for before
    logic [31:0] request;
    logic [1:0] way;
    lane_number_t lane;
    logic [2:0] node;  // whom, of a lane
  } question_t;

  /* verilator lint_on UNUSEDPARAM */

endpackage
