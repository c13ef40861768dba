// SPDX-License-Identifier: Apache-2.0
`include "axi.svh"

/// What the parts of the DMA engine say to each other (docs/design/dma.md).
///
/// The control part (dma_control: registers, doorbells, descriptor fetch, turn-taker, status words, interrupts) hands turns to the data part
/// (dma_data: cutters, tags, realignment, AXI), which hands back what became of each. Both reach the host through dma_requester.
package dma_pkg;

  // verilator lint_off UNUSEDPARAM

  /// Bytes of the longest turn: channels take turns after so many.
  localparam int unsigned TurnBytes = 4096;
  /// Channels in each direction, at most.
  localparam int unsigned MaxChannels = 4;

  // verilator lint_on UNUSEDPARAM

  /// Why a transfer failed; the numbers are those of its status word.
  typedef enum logic [2:0] {
    ErrorNone,
    ErrorUnsupported,  // PCIe: completion with status UR
    ErrorAborted,      // PCIe: completion with status CA
    ErrorPoisoned,     // PCIe: completion with EP
    ErrorTimeout,      // PCIe: no completion in time
    ErrorMalformed,    // PCIe: a completion that fits no request; or a descriptor that says what cannot be
    ErrorMemory,       // AXI: SLVERR or DECERR
    ErrorReset         // ended by a reset of the function or of its channel
  } error_e;

  /// A piece of a descriptor: 1 to TurnBytes bytes between host and card. One direction has one stream of turns; all turns of a channel come,
  /// and are answered, in the order of its descriptors.
  typedef struct packed {
    logic [1:0]  channel;
    logic        stream;   // card side: the packet stream, not memory
    logic        last;     // the descriptor's last piece; with stream, to the card: the packet ends here
    logic [12:0] bytes;    // 1 to TurnBytes; with stream, to the host: room for so many
    logic [63:0] host;
    logic [63:0] card;     // without meaning with stream
  } turn_t;

  /// What became of a turn. To the card: its bytes are written and answered (B), or taken by the stream. To the host: its last write was
  /// taken by the requester, so that a status word that is posted later arrives later.
  typedef struct packed {
    logic [1:0]  channel;
    error_e      error;
    logic        end_of_packet;  // with stream, to the host: the packet ended in this turn
    logic [12:0] bytes;          // moved
  } done_t;

  /// A request to read the host's memory: it lies in one 4 KiB page, and has no more bytes than MRRS. The requester's tags are the user's own.
  typedef struct packed {
    logic [7:0]  tag;
    logic [12:0] bytes;
    logic [63:0] addr;
  } read_t;

  /// A beat of a completion. Completions of one request come in the order of its addresses, those of several in any order; beats of two
  /// completions never mix. The first byte is in lane 0 of the first beat.
  typedef struct packed {
    logic [7:0]   tag;
    logic         first;
    logic         last;    // of this completion
    logic         final_;  // of this completion, and with it the request is complete
    error_e       error;   // ErrorUnsupported, ErrorAborted, ErrorPoisoned, ErrorTimeout; with final_, no data counts
    logic [6:0]   bytes;   // in this beat, 1 to 64; 0 if an error carries none
    logic [511:0] data;
  } completion_t;

  /// A posted write: it lies in one 4 KiB page, and has no more bytes than MPS. A beat with first has its address and size; data begin in lane 0.
  typedef struct packed {
    logic         first;
    logic         last;
    logic [12:0]  bytes;  // of the write, with first
    logic [63:0]  addr;   // with first
    logic [511:0] data;
  } write_t;

  /// The packet stream, both ways: user is {the packet is worthless, channel}. To the host the former means nothing.
  `AXIS_TYPE(dma_axis, 512, 3)

endpackage
`default_nettype wire
