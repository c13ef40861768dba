// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// Makes the core's frames, and alternates them with the host's frames on the way to the network.
///
/// Behaviour: a `now` record becomes one frame, or one per node, the lowest first. Its value, if any, is in the pool. A
/// `later` record becomes one frame, whose value is the next one in the `word` stream; it waits until that value
/// begins. A `deferred` record has no value. It waits until memory has the value of its place (job_done_i), and is
/// dropped if dead_i is high then. `free_o` frees that place. No record waits for another record's memory access, so
/// `now` frames overtake `later` frames. If both wait, frames of host and core alternate (kv_tx_output). Both checksums
/// are right (kv_tx_headers); the UDP checksum is 0 unless `summed`. In the core's frames, `user` is their size in
/// bytes.
/// Latency: 4 cycles from a record, or from the event that a deferred one awaits, to the first beat: two for the choice
/// (kv_tx_records), one for the header, one for the output. 1 cycle for the host's beats.
/// Paths: none from input to output, except from m_ready to s_ready and word_ready.
/// Reset: forgets all records and the current frame; m_valid falls.
/// Requirements: peers and self_i change only when nothing waits to be sent, self_i three cycles before the next
/// record. A place gets no other deferred record until it is freed.
module kv_transmit
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_tx_pkg::*;
#(
    /// The stream type, with 512 data bits and at least 16 user bits, for the size of the core's frames.
    parameter type axis_t = kv_axis_t,
    /// The most waiting records of each kind: powers of two.
    parameter int unsigned NowDepth = 32,
    parameter int unsigned LaterDepth = 64
) (
    input wire clk_i,
    input wire rst_i,

    input wire endpoint_t self_i,
    /// Looks up a node's addresses in the same cycle, one cycle after its record was chosen.
    output logic [2:0] peer_o,
    input wire endpoint_t peer_i,

    input  wire sending_t sending_i,
    /// There is room for fewer than eight records.
    output almost_full_t  almost_full_o,

    input  wire job_done_t job_done_i,
    input  wire            dead_i,
    /// Frees a place: memory has its value.
    output free_place_t    free_o,

    // Values from memory, in the order of the records. An empty value has no word.
    input  wire          word_valid,
    output logic         word_ready,
    input  wire  [511:0] word_data,
    /// A value has begun to arrive. One pulse per value, at the latest with its first word at word_valid.
    input  wire          value_begun_i,

    output pool_read_t            pool_read_o,
    input  wire           [511:0] pool_data_i,
    input  wire filling_t         filling_i,

    input  wire        s_valid,
    output logic       s_ready,
    input  wire axis_t s_payload,
    output logic       m_valid,
    input  wire        m_ready,
    output axis_t      m_payload,

    /// No record waits, and no frame of the core is being sent.
    output logic       idle_o,
    /// A frame of this kind has been sent.
    output logic       sent_o,
    output logic [4:0] sent_kind_o,
    output logic       passed_o
);

  // ---- which record, to which node

  logic next_valid, next_take, records_wait;
  tx_next_t next;
  kv_tx_records #(
      .NowDepth  (NowDepth),
      .LaterDepth(LaterDepth)
  ) i_records (
      .*,
      .waiting_o(records_wait)
  );
  assign peer_o = next.node;

  // ---- its header. At the same time the pool's reader begins with its value

  endpoint_t to;
  headers_t  headers;
  assign to = next.to_node ? peer_i : next.record.to;
  kv_tx_headers i_headers (
      .*,
      .to_i(to),
      .record_i(next.record),
      .headers_o(headers)
  );

  tx_header_t made, header;
  value_source_e source;
  logic made_room, made_take, header_valid, header_ready, reader_idle, from_pool, pool_valid, pool_ready;
  assign source = next.record.length == '0 ? ValueNone : next.later ? ValueMemory : ValuePool;
  assign made = '{
          headers: headers,
          length: next.record.length,
          size: next.record.length + 11'(HeaderBytes),
          source: source
      };
  assign from_pool = next_valid && source == ValuePool;
  assign made_take = (reader_idle || !from_pool) && made_room;
  assign next_take = !next_valid || made_take;

  stream_register #(
      .Width($bits(tx_header_t))
  ) i_header (
      .*,
      .s_valid  (next_valid && (reader_idle || !from_pool)),
      .s_ready  (made_room),
      .s_payload(made),
      .m_valid  (header_valid),
      .m_ready  (header_ready),
      .m_payload(header)
  );

  kv_tx_pool_reader i_pool_reader (
      .*,
      .start_i (made_take && from_pool),
      .record_i(next.record),
      .idle_o  (reader_idle),
      .valid_o (pool_valid),
      .take_i  (pool_ready)
  );

  // ---- the output

  logic output_idle;
  kv_tx_output #(
      .axis_t(axis_t)
  ) i_output (
      .*,
      .pool_data(pool_data_i),
      .idle_o(output_idle)
  );

  assign idle_o      = !records_wait && !next_valid && !header_valid && output_idle;
  assign sent_o      = header_valid && header_ready;
  assign sent_kind_o = header.headers.kv.kind;

  `ASSERT(deferred_value, !sending_i.deferred || sending_i.send.length == '0,
          "an answer that waits for memory has no value")

endmodule
`default_nettype wire
