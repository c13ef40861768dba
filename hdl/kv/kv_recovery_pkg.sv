// SPDX-License-Identifier: Apache-2.0
/// Types that the parts of kv_recovery exchange: docs/design/kv-core.md.
package kv_recovery_pkg;

  import kv_core_pkg::*;
  import kv_engine_pkg::*;

  // Each module that uses the package uses only a part of it.
  /* verilator lint_off UNUSEDPARAM */

  /// An operation without the cell that it concerns. Each part of kv_recovery drives its own order, and drives 0 while
  /// another part has its turn.
  typedef struct packed {
    logic valid;  // an order is present; otherwise the other fields are meaningless
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

  /// Questions about leftovers have tags with this prefix, followed by the leftover's index.
  localparam logic [9:0] TagLeftover = 10'h155;

  /// The goal of a search in the list of leftovers.
  typedef enum logic [1:0] {
    ListNext = 2'd0,  // any leftover
    ListFree = 2'd1,  // an unused entry
    ListAt   = 2'd2,  // a leftover at the location that the frame at the queue's head concerns
    ListShow = 2'd3   // this entry, whatever it holds
  } list_find_e;

  /// Where an operation takes its cell from.
  typedef enum logic [2:0] {
    CellKeep   = 3'd0,
    CellNone   = 3'd1,
    CellSettle = 3'd2,  // a lane's request
    CellList   = 3'd3,  // a leftover
    CellFetch  = 3'd4,  // the location to be fetched
    CellAsk    = 3'd5,  // the fields of the question for it
    CellHead   = 3'd6,  // the location of the frame at the queue's head, and the lane's request
    CellNext   = 3'd7  // the next bucket
  } cell_from_e;

  /// The epoch as kv_recovery's parts see it, one cycle late.
  typedef struct packed {
    logic here;  // this node is in the epoch, and has no fault
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

  /// The result of the previous cycle's look-up, and what the last operation has seen.
  typedef struct packed {
    logic [2:0] leader;  // of the slot
    logic mine;  // this node is the leader
    logic used;  // the place of the window is in use
    logic written;  // the place holds a client's write
    logic noted, same, settled;  // see seen_t
  } heard_t;

  /// A part's turn. It begins once. The part may take a step in each cycle in which no operation is in progress.
  typedef struct packed {
    logic start;
    logic go;
  } turn_t;
  /// The work of a part during its turn.
  typedef struct packed {
    logic active;  // the part is not done
    order_t order;
    cell_from_e cell_from;
    logic again;  // the order repeats an earlier one
  } step_t;

  /// The turn of kv_recovery_epoch. At most one of `enter`, `clear` and `note` begins.
  typedef struct packed {
    logic enter;  // an epoch
    logic clear;  // the table
    logic note;  // note the write of a refresh
    logic go;  // as in turn_t
    logic waits;  // something else has to be done first
  } epoch_turn_t;
  /// The part of its state that all other parts need.
  typedef struct packed {
    logic entering;  // until it is entered, though it is not active
    logic clearing;
    logic forget;  // what belonged to the epoch before
    logic leads;  // this node, a slot
    logic overflow;
  } epoch_state_t;

  /// The outcome of a question or of its answer: kv_recovery_fetch.
  typedef struct packed {
    logic taken;  // the question was sent
    logic own;    // this node itself would have to answer
    logic came;   // the answer at the queue's head was accepted
  } fetch_step_t;

  /// A message from another node about the epoch.
  typedef struct packed {
    logic enter;
    logic entered;
    logic [2:0] node;
  } greeting_t;

  /// Progress of noting a refresh.
  typedef struct packed {
    logic due;
    logic under_way;  // until the number of leftovers shows it
    logic done;  // once
  } refresh_t;

  /// An index in the list of leftovers. It has one bit more, to express the end of a full list.
  typedef logic [10:0] leftover_at_t;
  /// A request to the list of leftovers.
  typedef struct packed {
    logic find;
    list_find_e what;
    logic [$bits(leftover_at_t):0] from;
    logic again;  // search from after the last entry found, not from `at`
    logic keep;  // store the cell there
    logic drop;  // remove the entry there
  } list_ask_t;
  /// The list's answer.
  typedef struct packed {
    logic busy;
    logic found;
    leftover_at_t at;
    logic valid;  // it holds this:
    cell_t what;
    // Compares the frame at the queue's head with the entry's write. The frame is newer; it has the same version; or it
    // is the same request.
    logic newer, equal, same;
  } list_answer_t;

  /// An item that kv_recovery_fetch asks for.
  typedef struct packed {
    logic valid;
    logic lanes;  // the item is a lane's record
    logic again;  // it was asked for before
    logic [31:0] request;
    logic [1:0] way;
    lane_number_t lane;
    logic [2:0] node;  // the node to ask, for a lane
  } question_t;

  /* verilator lint_on UNUSEDPARAM */

endpackage
