// SPDX-License-Identifier: Apache-2.0
`include "axi.svh"

/// Shared by the blocks of the bypass core: the layout of the NIC's window,
/// and the types that pass between blocks (docs/design/bypass-core.md).
package bypass_pkg;

  // Each module that imports this package uses only a part of it.
  // verilator lint_off UNUSEDPARAM
  // verilator lint_off UNUSEDSIGNAL

  // ---- layout of the window (BAR 2): 8 MiB

  localparam int unsigned WindowBits = 23;
  localparam int unsigned LineBits = 6;  // a line: 64 bytes, a beat
  localparam int unsigned SlotBits = 11;  // a slot: a receive buffer of 2 KiB
  localparam int unsigned MaxQueueBits = 4;
  localparam int unsigned MaxFrame = 9728;
  /// Receive descriptors of the longest frame. A frame without an end after that many is dropped.
  localparam int unsigned MaxSlots = 8;

  typedef logic [WindowBits-1:0] offset_t;
  typedef logic [MaxQueueBits-1:0] queue_t;
  typedef logic [11:0] index_t;  // of a descriptor in its ring
  typedef logic [13:0] bytes_t;  // of a frame
  typedef logic [3:0] count_t;  // of descriptors, or of slots
  typedef logic [14:0] line_t;  // of the slots, or of the packed buffer
  typedef logic [511:0] data_t;
  typedef logic [63:0] strobe_t;

  localparam offset_t HeadsOffset = 23'h200000;  // one of 64 bytes for each queue
  localparam offset_t PackOffset = 23'h280000;  // the packed buffer, twice
  localparam offset_t SlotsOffset = 23'h400000;  // each queue's slots, twice

  typedef enum logic [2:0] {
    NoRegion,
    RxRing,
    TxRing,
    Heads,
    Pack,
    Slots
  } region_e;

  /// Build parameters of a core, as powers of two.
  typedef struct packed {
    int unsigned queue_bits;
    int unsigned rx_bits;  // descriptors of a receive ring, and slots
    int unsigned tx_bits;  // descriptors of a transmit ring
    int unsigned pack_bits;  // lines of the packed buffer
  } bypass_config_t;
  localparam bypass_config_t DefaultConfig = '{queue_bits: 0, rx_bits: 8, tx_bits: 9, pack_bits: 9};

  /// Limits: rx_bits allows four groups of four descriptors and more than MaxSlots; each queue's
  /// slots appear twice in the window. pack_bits allows the longest frame and a second one behind it.
  function automatic logic config_is_valid(bypass_config_t config_i);
    return config_i.queue_bits <= MaxQueueBits && config_i.rx_bits >= 4 && config_i.queue_bits + config_i.rx_bits <= 10
        && config_i.tx_bits >= 3 && config_i.tx_bits <= 12 && config_i.pack_bits >= 9 && config_i.pack_bits <= 11;
  endfunction

  /// Limits a number to existing queues. With one queue it is a constant, which synthesis does not see behind a memory.
  function automatic queue_t existing(queue_t pair, bypass_config_t config_i);
    return queue_t'(32'(pair) & ((32'd1 << config_i.queue_bits) - 32'd1));
  endfunction

  /// The region of the window at an offset.
  function automatic region_e region_of(offset_t offset, logic rx_32_bytes, bypass_config_t config_i);
    logic [15:0] index;
    logic pair;  // it exists
    index = {4'd0, offset[15:4]};
    if (rx_32_bytes && !offset[16]) index >>= 1;
    if (offset[22])
      return 32'(offset[21:0]) >> (config_i.queue_bits + config_i.rx_bits + 1 + SlotBits) == '0 ? Slots : NoRegion;
    if (!offset[21]) begin
      pair = 32'(offset[20:17]) >> config_i.queue_bits == '0;
      if (offset[16]) return pair && 32'(index) >> config_i.tx_bits == '0 ? TxRing : NoRegion;
      return pair && 32'(index) >> config_i.rx_bits == '0 ? RxRing : NoRegion;
    end
    if (offset[20:10] == HeadsOffset[20:10]) return 32'(offset[9:6]) >> config_i.queue_bits == '0 ? Heads : NoRegion;
    if (offset[20:19] == PackOffset[20:19]) begin
      return 32'(offset[18:0]) >> (config_i.pack_bits + 1 + LineBits) == '0 ? Pack : NoRegion;
    end
    return NoRegion;
  endfunction

  /// Whether the region at an offset accepts writes (Slots, a ring or Heads). It agrees with region_of, but is faster.
  function automatic logic takes_writes(offset_t offset, logic rx_32_bytes, bypass_config_t config_i);
    logic in_slots, in_ring, in_heads;
    in_slots = offset[22] && 32'(offset[21:0]) >> (config_i.queue_bits + config_i.rx_bits + 1 + SlotBits) == '0;
    in_ring  = 32'(offset[15:0]) >> (config_i.rx_bits + 4) == '0;
    if (rx_32_bytes) in_ring = 32'(offset[15:0]) >> (config_i.rx_bits + 5) == '0;
    if (offset[16]) in_ring = 32'(offset[15:0]) >> (config_i.tx_bits + 4) == '0;
    in_ring &= offset[22:21] == '0 && 32'(offset[20:17]) >> config_i.queue_bits == '0;
    in_heads = offset[22:10] == HeadsOffset[22:10] && 32'(offset[9:6]) >> config_i.queue_bits == '0;
    return in_slots || in_ring || in_heads;
  endfunction

  /// For a line in Slots: its queue, its slot, and the line's number in the memory of all slots.
  function automatic queue_t slot_queue(offset_t offset, bypass_config_t config_i);
    return queue_t'(32'(offset[21:0]) >> (config_i.rx_bits + 1 + SlotBits));
  endfunction
  function automatic index_t slot_index(offset_t offset, bypass_config_t config_i);
    return index_t'(32'(offset[21:SlotBits]) & ((32'd1 << config_i.rx_bits) - 32'd1));
  endfunction
  function automatic line_t slot_line(offset_t offset, bypass_config_t config_i);
    int unsigned bits;
    logic [31:0] line;
    bits = config_i.rx_bits + SlotBits - LineBits;  // of a queue's lines
    line = 32'(offset[21:LineBits]);
    return line_t'((line & ((32'd1 << bits) - 32'd1)) | ((line >> (bits + 1)) << bits));
  endfunction
  function automatic line_t pack_line(offset_t offset, bypass_config_t config_i);
    return line_t'(32'(offset[18:LineBits]) & ((32'd1 << config_i.pack_bits) - 32'd1));
  endfunction
  /// The inverse: the offset of a slot's first line.
  function automatic offset_t slot_offset(queue_t pair, index_t index, bypass_config_t config_i);
    return SlotsOffset | offset_t'((32'(pair) << (config_i.rx_bits + 1 + SlotBits)) | (32'(index) << SlotBits));
  endfunction
  function automatic offset_t pack_offset(line_t line);
    return PackOffset | {2'd0, line, 6'd0};
  endfunction

  /// The number of lines, and of slots, that a frame takes.
  function automatic logic [7:0] lines_of(bytes_t bytes);
    return bytes[13:6] + 8'(bytes[5:0] != '0);
  endfunction
  function automatic count_t slots_of(bytes_t bytes);
    return {1'b0, bytes[13:11]} + 4'(bytes[10:0] != '0);
  endfunction

  // ---- registers

  /// The NIC's descriptor format: the register `descriptors` and those that follow it.
  typedef struct packed {
    logic        rx_32_bytes;
    logic [1:0]  rx_length;
    logic [13:0] rx_errors;     // of bits 95:83 and 74 of a descriptor
    logic [63:0] tx_word;
    logic        tx_length_34;
    logic        tx_total_46;
    logic        tx_done_type;
    logic        tx_report_5;
  } personality_t;

  /// When the doorbell writes a tail. The receive rings share one setting, and the transmit rings another.
  typedef struct packed {
    logic [3:0]  credits;
    logic [7:0]  batch;
    logic [2:0]  align;
    logic [15:0] timer;
  } bell_settings_t;

  typedef struct packed {
    personality_t               personality;
    logic [63:WindowBits]       base;
    bell_settings_t             rx_bell;
    bell_settings_t             tx_bell;
    index_t                     rx_limit;
    index_t                     tx_limit;
    logic                       written_back;
    logic                       report;
    index_t                     report_mask;
    bytes_t                     max_frame;
    logic [2**MaxQueueBits-1:0] enable;
    logic [2**MaxQueueBits-1:0] in_place;
  } settings_t;

  // ---- receive

  /// Receive descriptors in a beat written back: a queue's group of four. Without done and sized, there are none.
  typedef struct packed {
    queue_t           pair;
    logic [9:0]       group;
    logic [3:0]       done;
    logic [3:0]       sized;  // the length was written
    logic [3:0]       eop;
    logic [3:0]       error;
    logic [3:0][13:0] bytes;
  } rx_written_t;

  typedef enum logic [1:0] {
    Good,
    BadError,
    BadSize,
    BadStopped
  } verdict_e;

  /// A received frame: its position in the ring, and whether it must be dropped.
  typedef struct packed {
    queue_t   pair;
    index_t   index;
    bytes_t   bytes;
    count_t   slots;
    verdict_e verdict;
  } frame_t;

  /// Slots that return to the NIC.
  typedef struct packed {
    logic   valid;
    queue_t pair;
    count_t slots;
  } release_t;

  // ---- transmit

  /// A frame to be transmitted, and its first line. With `skip`, it is not transmitted, and its slots return in order.
  typedef struct packed {
    queue_t                       pair;
    logic                         skip;
    logic                         in_place;
    count_t                       slots;
    logic [WindowBits-1:LineBits] line;
    bytes_t                       bytes;
  } post_t;

  /// A transmit descriptor.
  typedef struct packed {
    logic [WindowBits-1:LineBits] line;
    bytes_t                       bytes;
  } tx_entry_t;

  /// The NIC has read a transmitted frame completely.
  typedef struct packed {
    logic   valid;
    queue_t pair;
  } tx_done_t;

  /// The NIC has written back the transmit descriptors before `head`.
  typedef struct packed {
    logic   valid;
    queue_t pair;
    index_t head;
  } tx_written_t;

  // ---- the window

  /// The NIC reads a beat; last_byte is the last byte that it asks for.
  typedef struct packed {
    logic       valid;
    offset_t    offset;
    region_e    region;
    logic [5:0] last_byte;  // in its line
  } window_read_t;

  /// A beat is written.
  typedef struct packed {
    logic    valid;
    offset_t offset;
    region_e region;
    strobe_t strobe;
    data_t   data;
  } window_write_t;

  /// Data for a slot's line.
  typedef struct packed {
    logic    valid;
    offset_t offset;
    strobe_t strobe;
    data_t   data;
  } slot_write_t;

  /// The NIC fetches descriptors: a queue's group of four.
  typedef struct packed {
    logic       valid;
    logic       tx;
    queue_t     pair;
    logic [9:0] group;
  } fetch_t;

  // ---- queue pairs

  /// Events for all pairs; each pair selects its own.
  typedef struct packed {
    rx_written_t    rx_written;
    tx_written_t    tx_written;
    fetch_t         fetch;
    release_t [1:0] released;    // of the reader, of the watch
    tx_done_t       done;
    index_t         writes;      // the slot that is written to, whoever's
    index_t         reads;       // and the one that is read
  } news_t;

  /// Commands to one pair: take a received descriptor; a frame may be posted in this cycle; a frame is posted.
  typedef struct packed {
    logic take;
    logic coming;
    logic post;
  } order_t;

  /// A tail was written, which offers `count` more descriptors.
  typedef struct packed {
    logic   valid;
    index_t count;
  } gave_t;

  /// A receive ring; accept: the descriptors of the group in rx_written that count; ended, unexpected: event counts.
  typedef struct packed {
    logic [3:0] accept;
    logic [2:0] ended;
    logic [2:0] unexpected;
    index_t     want;        // the tail as it could be
    index_t     taken;
    index_t     given;
    logic       has;
    logic       idle;
    logic       may_write;   // the slot news_t.writes is the NIC's
    logic       may_read;    // the slot news_t.reads is a frame's that may be transmitted in place
  } rx_ring_t;

  /// A transmit ring; about its oldest frame: reported: its descriptor was written back; told: the NIC has its tail.
  typedef struct packed {
    index_t tail;
    index_t given;
    logic   room;
    logic   reported;
    logic   told;
    logic   idle;
    logic   unexpected;
  } tx_ring_t;

  /// State of a queue pair; begins: it runs from the next cycle on.
  typedef struct packed {
    logic     running;
    logic     begins;
    logic     idle;
    rx_ring_t rx;
    tx_ring_t tx;
  } pair_state_t;

  /// Event counts of one cycle, named as the counters' registers. A block sets its own events; the others are 0.
  typedef struct packed {
    logic [2:0] rx_in;
    logic       rx_frame;
    bytes_t     rx_bytes;
    logic       rx_error;
    logic       rx_size;
    logic       rx_stopped;
    logic [2:0] rx_unexpected;
    logic       rx_stray;
    logic [1:0] tx_in;
    logic       tx_posted;
    bytes_t     tx_bytes;
    logic       tx_done;
    logic       tx_stopped;
    logic       tx_refused;
    logic       tx_size;
    logic       tx_late;
    logic       verdict_drop;
    logic       tail;
    logic       tail_error;
    logic       fetch;
    logic       tx_written_back;
    logic       tx_unexpected;
    logic       outside_write;
    logic       outside_read;
  } events_t;

  // ---- between bypass_register_file and the blocks of registers

  /// A register access: its first, second and last cycle (read data is due). `write`: of whole words only.
  typedef struct packed {
    logic        starts;
    logic        second;
    logic        ends;
    logic        read;
    logic        write;
    logic [15:0] address;
    logic [31:0] data;
  } register_access_t;
  /// A word is written in the access's second cycle. `word` is also valid for a read.
  typedef struct packed {
    logic        valid;
    logic [8:0]  word;
    logic [31:0] data;
  } register_write_t;
  /// Properties of the accessed word; reset: the reset value of the word in register_fill_t.
  typedef struct packed {
    logic        writable;
    logic [31:0] bits;
    logic [31:0] reset;
  } register_word_t;
  /// A word gets its reset value.
  typedef struct packed {
    logic       valid;
    logic [8:0] word;
  } register_fill_t;

  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNUSEDPARAM

  `AXI_TYPES(window, WindowBits, 512, 6)
  `AXI_LITE_TYPES(bypass_axil, 16, 32)
  `AXI_LITE_TYPES(tail, 64, 32)
  `AXIS_TYPE(bypass_axis, 512, 48)

  // ---- between the core and its functions: streams, each with the ready signal of the other direction

  typedef struct packed {
    logic         valid;
    bypass_axis_t beat;
  } bypass_stream_t;

  /// To a function: received frames, and ready for the frames that it sends.
  typedef struct packed {
    bypass_stream_t rx;
    logic           tx_ready;
  } to_function_t;
  typedef struct packed {
    bypass_stream_t tx;
    logic           rx_ready;
  } from_function_t;

  /// The same for frames in place: their first beats, and verdicts.
  typedef struct packed {
    bypass_stream_t head;
    logic           verdict_ready;
  } to_judge_t;
  typedef struct packed {
    bypass_stream_t verdict;
    logic           head_ready;
  } from_judge_t;

endpackage
