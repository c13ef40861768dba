// SPDX-License-Identifier: Apache-2.0
`include "axi.svh"

/// Shared by the blocks of the DMA engine's control part, and by
/// the PCIe function around dma_control (docs/design/dma.md).
package dma_control_pkg;

  // Each module that imports this package uses only a part of it.
  // verilator lint_off UNUSEDPARAM
  // verilator lint_off UNUSEDSIGNAL

  /// Number of rings. A channel's rings are numbered: those to the card first, then those to the host.
  localparam int unsigned Rings = 8;
  /// The store holds at most 2^n descriptors of a ring.
  localparam int unsigned AheadBits = 7;
  /// At most 2^n turns of a ring are in flight.
  localparam int unsigned FlightBits = 7;
  /// Most descriptors in one read, and most reads of descriptors in flight.
  localparam int unsigned FetchMost = 16;
  localparam int unsigned FetchTags = 8;
  /// Offset of the tail in a ring's 64 bytes of the doorbell window; the descriptor precedes it.
  localparam int unsigned TailOffset = 32;

  typedef logic [2:0] ring_t;  // bit 2: to the host
  typedef logic [15:0] count_t;  // of descriptors since the ring was reset, modulo 2^16
  typedef logic [AheadBits-1:0] ahead_t;
  typedef logic [FlightBits-1:0] flight_t;
  typedef logic [27:0] offset_t;  // within a transfer
  typedef logic [2:0] code_t;  // dma_pkg::error_e
  typedef logic [Rings-1:0] each_t;  // a bit for each ring

  /// A descriptor as it is stored; docs/design/dma.md specifies the fields.
  typedef struct packed {
    logic        bad;            // no bytes, or 2^28 or more
    logic        one_page;       // it ends in the host's page in which it begins
    logic        one_turn;       // it has TurnBytes at most
    logic        end_of_packet;  // to the card, with stream
    logic        notify;
    logic        stream;
    offset_t     bytes;
    logic [63:0] card;
    logic [63:0] host;
  } descriptor_t;

  /// Computed before a descriptor is cut: one_page and one_turn.
  function automatic logic [1:0] fits_of(offset_t bytes, logic [11:0] host);
    logic [13:0] page_end;
    logic short;
    page_end = 14'(bytes[12:0]) + 14'(host);
    short    = bytes[27:13] == '0;
    return {short && (page_end[13:12] == '0 || page_end == 14'd4096), short && (!bytes[12] || bytes[11:0] == '0)};
  endfunction

  /// Decodes a descriptor of 32 bytes in host memory. Its last 8 bytes belong to software.
  function automatic descriptor_t descriptor_of(logic [191:0] raw);
    descriptor_t found;
    found.bad                        = raw[159:128] == '0 || raw[159:156] != '0;
    {found.one_page, found.one_turn} = fits_of(raw[155:128], raw[11:0]);
    found.end_of_packet              = raw[162];
    found.notify                     = raw[161];
    found.stream                     = raw[160];
    found.bytes                      = raw[155:128];
    found.card                       = raw[127:64];
    found.host                       = raw[63:0];
    return found;
  endfunction

  /// Stored with a turn while it is in flight.
  typedef struct packed {
    logic stream_to_host;  // a packet entry is written when it ends
    logic notify;
    logic ends;            // the descriptor
  } flight_info_t;

  /// A turn starts; a turn was completed.
  typedef struct packed {
    logic         valid;
    ring_t        ring;
    flight_t      index;
    flight_info_t info;
  } flight_event_t;
  typedef struct packed {
    logic  valid;
    ring_t ring;
    logic  packet;  // to the host
  } answer_t;

  /// A write to the doorbell window: up to 64 bytes, within one ring's part.
  typedef struct packed {
    logic [8:0]   offset;  // in the window, of the first byte
    logic [6:0]   bytes;
    logic [511:0] data;    // the first byte in lane 0
  } bell_t;

  /// A write to a ring's register, or to its vector.
  typedef struct packed {
    logic        ring_valid;
    logic        vector_valid;
    ring_t       ring;
    logic [3:0]  place;         // the word: of a ring 0 to 15, of a vector 0 to 3
    logic [31:0] data;
  } setting_t;

  /// Commands of dma_life: ignore rings under reset, hold new work, and then clear one ring in each cycle.
  typedef struct packed {
    each_t ignore;
    logic  hold;
    logic  clear;
    ring_t clear_ring;
    logic  forget;      // the function is reset: all reads are forgotten
    logic  restart;     // and registers get their reset values
  } life_t;

  /// A doorbell: a ring's tail, and the preceding descriptor if the write carries it.
  typedef struct packed {
    ring_t       ring;
    count_t      tail;
    logic        carries;
    descriptor_t descriptor;
  } doorbell_t;

  /// A write to the store: one or both descriptors of a row; or a descriptor that came with a doorbell.
  typedef struct packed {
    logic [1:0]           write;
    ring_t                ring;
    logic [AheadBits-2:0] row;
    descriptor_t [1:0]    data;
  } row_t;
  typedef struct packed {
    logic        valid;
    ring_t       ring;
    descriptor_t data;
  } carry_t;

  /// The number of further descriptors of a ring that are available.
  typedef struct packed {
    logic       valid;
    ring_t      ring;
    logic [4:0] count;
  } stored_t;

  /// A descriptor to be read: the carried one, or the one at an index.
  typedef struct packed {
    logic   carried;
    ring_t  ring;
    ahead_t index;
  } look_t;

  /// An event of a ring.
  typedef struct packed {
    logic  valid;
    ring_t ring;
  } event_t;

  /// The PCIe function's configuration.
  typedef struct packed {
    logic       bus_master;
    logic       msix_enable;
    logic       msix_mask;
    logic [2:0] max_read;     // 128 << n bytes
  } function_t;

  /// The kinds of posts: a status word, a packet entry, or an interrupt message.
  typedef enum logic [1:0] {
    PostStatus,
    PostPacket,
    PostMessage
  } post_e;
  typedef struct packed {
    post_e       kind;
    ring_t       ring;
    logic [31:0] count;          // descriptors that are done; with a packet, this one among them
    code_t       error;
    logic        end_of_packet;
    offset_t     bytes;          // moved: of the descriptor that is not done, or of the packet's buffer
  } post_t;

  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNUSEDPARAM

endpackage
`default_nettype wire
