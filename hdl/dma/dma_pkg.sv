// SPDX-License-Identifier: Apache-2.0
`include "axi.svh"

/// Shared by the parts of the DMA engine (docs/design/dma.md).
///
/// dma_control (registers, doorbells, descriptor fetch, turns, status words, interrupts) gives turns to dma_data
/// (cutters, tags, realignment, AXI), which returns an answer for each. Both reach the host through dma_requester.
package dma_pkg;

  // verilator lint_off UNUSEDPARAM

  /// Bytes of the longest turn. A channel may be replaced by another after each turn.
  localparam int unsigned TurnBytes = 4096;
  /// The most channels in each direction.
  localparam int unsigned MaxChannels = 4;

  // verilator lint_on UNUSEDPARAM

  /// Why a transfer failed; status words use the same numbers.
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

  /// A piece of a descriptor: 1 to TurnBytes bytes between host and card. Each direction has one
  /// stream of turns. A channel's turns come, and are answered, in the order of its descriptors.
  typedef struct packed {
    logic [1:0]  channel;
    logic        stream;   // card side: the packet stream, not memory
    logic        last;     // the descriptor's last piece; with stream, to the card: the packet ends here
    logic [12:0] bytes;    // 1 to TurnBytes; with stream, to the host: room for so many
    logic [63:0] host;
    logic [63:0] card;     // without meaning with stream
  } turn_t;

  /// The answer of a turn. To the card: its bytes are written and answered (B), or taken by the stream.
  /// To the host: the requester took its last write, so a status word posted later also arrives later.
  typedef struct packed {
    logic [1:0]  channel;
    error_e      error;
    logic        end_of_packet;  // with stream, to the host: the packet ended in this turn
    logic [12:0] bytes;          // moved
  } done_t;

  /// A read of host memory, within one 4 KiB page and at most MRRS bytes. Its sender chooses the tag.
  typedef struct packed {
    logic [7:0]  tag;
    logic [12:0] bytes;
    logic [63:0] addr;
  } read_t;

  /// A beat of a completion. A request's completions come in address order, those of several requests
  /// in any order. Beats of two completions never mix. The first byte is in lane 0 of the first beat.
  typedef struct packed {
    logic [7:0]   tag;
    logic         first;
    logic         last;    // of this completion
    logic         final_;  // of this completion, and with it the request is complete
    error_e       error;   // ErrorUnsupported, ErrorAborted, ErrorPoisoned, ErrorTimeout; with final_, no data counts
    logic [6:0]   bytes;   // in this beat, 1 to 64; 0 if an error carries none
    logic [511:0] data;
  } completion_t;

  /// A posted write, within one 4 KiB page and at most MPS bytes. `first` has address and size; data begin in lane 0.
  typedef struct packed {
    logic         first;
    logic         last;
    logic [12:0]  bytes;  // of the write, with first
    logic [63:0]  addr;   // with first
    logic [511:0] data;
  } write_t;

  /// The packet stream in both directions; user: {the packet is bad, channel}. To the host, `bad` has no effect.
  `AXIS_TYPE(dma_axis, 512, 3)

endpackage
`default_nettype wire
