// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// Reads of the DMA engine as AXI4 bursts, and their data as completions.
///
/// Behaviour:
/// - A read becomes one INCR burst of whole lines of 64 bytes, with id 0. So its data come in the order of the reads.
/// - The first line, if the read begins within it, is a completion of its own, moved down to lane 0. The lines behind it
///   are one more completion. A completion's data leave as they come.
/// - DECERR is ErrorUnsupported, SLVERR is ErrorAborted. From the first error on, a read's data are dropped. After its
///   last beat, one beat without data reports the error, with final_.
/// - Every read that the engine can have in flight has room here, whether or not older ones are answered. So s_read
///   never waits for the host's data, and neither does a doorbell behind it (dma_fetch).
/// Cuts: valid and payload of both streams, and the readies of s_read.
/// Latency: read to its address 2 cycles; data to completion 2 cycles.
/// Reset: forgets reads in flight, so both sides of the bus must be reset.
/// Requirements: no valid is high during reset. At most Reads reads are in flight; each is within a page.
module dma_axi_reads
  import dma_pkg::*;
#(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Bursts in flight; a power of two, at least 2.
    parameter int unsigned Outstanding = 32,
    /// Reads that may wait here; a power of two, at least 128. The engine has 136 tags.
    parameter int unsigned Reads = 256
) (
    input wire clk_i,
    input wire rst_i,

    `STREAM_RECEIVER(s_read, read_t)
    `STREAM_SENDER(m_completion, completion_t)

    // The read channels; the write channels are idle.
    output axi_req_t       m_axi_req,
    // verilator lint_off UNUSEDSIGNAL
    input  wire axi_resp_t m_axi_resp
    // verilator lint_on UNUSEDSIGNAL
);

  // ---- requests
  logic read_valid, read_ready;
  read_t read;
  stream_fifo #(
      .Width($bits(read_t)),
      .Depth(Reads)
  ) i_reads (
      .*,
      `STREAM_PORTS(s, s_read_valid, s_read_ready, s_read_payload),
      `STREAM_PORTS(m, read_valid, read_ready, read)
  );

  // A burst in flight: the lane of its first byte in its first line, and that of its last byte in its last line.
  typedef struct packed {
    logic [7:0] tag;
    logic [5:0] from;
    logic [5:0] to;
  } flying_t;
  flying_t asked, oldest, flying_q;
  logic room, fits, is_oldest, load, is_flying_q, beat, came;
  logic [12:0] reach;
  assign reach = 13'(read.addr[5:0]) + (read.bytes - 13'd1);
  assign asked = '{tag: read.tag, from : read.addr[5:0], to: reach[5:0]};
  assign read_ready = m_axi_resp.ar_ready && room;
  // verilator lint_off PINCONNECTEMPTY
  credit_counter #(
      .Credits(Outstanding)
  ) i_credit (
      .*,
      .take_i(read_valid && read_ready),
      .give_i(came),
      .available_o(room),
      .count_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  stream_fifo #(
      .Width($bits(flying_t)),
      .Depth(Outstanding),
      .Block(1'b0)
  ) i_flying (
      .*,
      `STREAM_PORTS(s, read_valid && read_ready, fits, asked),
      `STREAM_PORTS(m, is_oldest, load, oldest)
  );
  // The oldest burst. Its lanes are in registers, because they move 512 bits. After its first line, `from` is 0.
  assign load = !is_flying_q || came;
  always_ff @(posedge clk_i) begin
    if (load) begin
      is_flying_q <= is_oldest;
      flying_q    <= oldest;
    end else if (beat) begin
      flying_q.from <= '0;
    end
    if (rst_i) is_flying_q <= 1'b0;
  end

  // ---- data
  logic here, open_q, emits, shift_ready;
  error_e error, error_q;
  logic [5:0] to;
  assign here = m_axi_resp.r_valid && is_flying_q;
  assign to   = m_axi_resp.r.last ? flying_q.to : '1;
  always_comb begin
    error = error_q;
    if (error == ErrorNone && m_axi_resp.r.resp == axi_pkg::RespDecErr) error = ErrorUnsupported;
    if (error == ErrorNone && m_axi_resp.r.resp == axi_pkg::RespSlvErr) error = ErrorAborted;
  end
  assign emits = error == ErrorNone || m_axi_resp.r.last;
  assign beat  = here && (shift_ready || !emits);
  assign came  = beat && m_axi_resp.r.last;

  // What a completion_t has beside its data.
  typedef struct packed {
    logic [7:0] tag;
    logic       first;
    logic       last;
    logic       final_;
    error_e     error;
    logic [6:0] bytes;
  } about_t;
  about_t about, about_out;
  assign about = '{
          tag: flying_q.tag,
          first: !open_q,
          last: m_axi_resp.r.last || flying_q.from != '0,
          final_: m_axi_resp.r.last,
          error: error,
          bytes: (7'(to) - 7'(flying_q.from) + 7'd1) & {7{error == ErrorNone}}
      };
  always_ff @(posedge clk_i) begin
    if (beat) begin
      error_q <= m_axi_resp.r.last ? ErrorNone : error;
      if (emits) open_q <= !about.last;
    end
    if (rst_i) begin
      open_q  <= 1'b0;
      error_q <= ErrorNone;
    end
  end

  logic [511:0] data;
  dma_axi_rotate #(
      .UserWidth($bits(about_t))
  ) i_down (
      .*,
      .s_valid(here && emits),
      .s_ready(shift_ready),
      .s_data (m_axi_resp.r.data),
      .s_down (flying_q.from),
      .s_user (about),
      .m_valid(m_completion_valid),
      .m_ready(m_completion_ready),
      .m_data (data),
      .m_user (about_out)
  );
  assign m_completion_payload = {about_out, data};

  always_comb begin
    m_axi_req          = '0;
    m_axi_req.ar.addr  = {read.addr[63:6], 6'd0};
    m_axi_req.ar.len   = {1'b0, reach[12:6]};
    m_axi_req.ar.size  = 3'd6;
    m_axi_req.ar.burst = axi_pkg::BurstIncr;
    m_axi_req.ar.cache = axi_pkg::CacheNormal;
    m_axi_req.ar.prot  = axi_pkg::ProtData;
    m_axi_req.ar_valid = read_valid && room;
    m_axi_req.r_ready  = is_flying_q && (shift_ready || !emits);
  end

  `ASSERT(data_awaited, !m_axi_resp.r_valid || is_flying_q || is_oldest, "read data that nobody asked for")
  `ASSERT(oldest_fits, !(read_valid && read_ready) || fits, "a burst in flight has no room")
  `ASSERT(within_page, !read_valid || 13'(read.addr[11:0]) + read.bytes <= 13'd4096, "a read crosses a page")
  `ASSERT(reads_have_room, !s_read_valid || s_read_ready, "more reads are in flight than there are tags")

endmodule
`default_nettype wire
