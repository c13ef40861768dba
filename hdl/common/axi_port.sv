// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// A simple AXI4 subordinate port. It gives its user one beat of a write or of a read per cycle, with the address.
///
/// Behaviour:
/// - Writes: write_o is high for each beat of data, with its address, data and strobes. The user takes the beat in that
///   cycle, or raises write_error_i to reject it (SLVERR for the burst).
/// - Reads: read_o is high for each beat, with its address and AxSIZE. The user gives the data and read_error_i (SLVERR
///   for the beat) exactly ReadLatency cycles later. Up to ReadBeats beats wait here for the manager.
/// - INCR and FIXED bursts of every length and size, aligned or not. A narrow beat comes with the address of its own
///   bytes; its data and strobes are in their lanes. A read returns the whole word. A WRAP burst is answered with
///   SLVERR, and the user does not see it.
/// Responses come in the order of the requests, separately for each direction. A write is answered after its last beat
/// was taken. So a read that is requested after that response comes after the write.
/// Throughput: one beat per cycle in each direction, without a pause between bursts.
/// Cuts: every path of the bus except W. `write_error_i`, and the room for a response, take effect in the next cycle.
/// Latency: 1 cycle from address to first read_o, ReadLatency + 2 to R; 0 from W to write_o, 1 from the last W to B.
/// Reset: forgets transactions in flight.
/// Requirements: all valid signals are low during reset.
module axi_port #(
    /// The bundles of the bus: see axi.svh.
    parameter type axi_req_t = axi_pkg::axi_req_t,
    parameter type axi_resp_t = axi_pkg::axi_resp_t,
    /// Bits of an address and of a data word, as in the bundles.
    parameter int unsigned AddressWidth = 64,
    parameter int unsigned DataWidth = 512,
    /// Cycles from read_o to its data; at least 1.
    parameter int unsigned ReadLatency = 1,
    /// The most read beats that can wait here; a power of two, at least 4. Full throughput needs ReadLatency + 3.
    parameter int unsigned ReadBeats = 32
) (
    input wire clk_i,
    input wire rst_i,

    input  wire axi_req_t s_axi_req,
    output axi_resp_t     s_axi_resp,

    output logic                    write_o,
    output logic [AddressWidth-1:0] write_address_o,
    output logic [   DataWidth-1:0] write_data_o,
    output logic [ DataWidth/8-1:0] write_strobe_o,
    input  wire                     write_error_i,

    output logic                    read_o,
    output logic [AddressWidth-1:0] read_address_o,
    output logic [             2:0] read_size_o,
    input  wire  [   DataWidth-1:0] read_data_i,
    input  wire                     read_error_i
);

  if ($bits(s_axi_req.aw.addr) != AddressWidth || $bits(s_axi_req.w.data) != DataWidth) begin : gen_check_widths
    $fatal(1, "AddressWidth and DataWidth must be those of axi_req_t in %m");
  end
  if (ReadLatency < 1) begin : gen_check_latency
    $fatal(1, "ReadLatency must be at least 1 in %m");
  end
  if (ReadBeats < 4 || 2 ** $clog2(ReadBeats) != ReadBeats) begin : gen_check_beats
    $fatal(1, "ReadBeats must be a power of two and at least 4 in %m");
  end

  localparam int unsigned IdWidth = $bits(s_axi_req.aw.id);

  // A burst with its attributes.
  typedef struct packed {
    logic [IdWidth-1:0]      id;
    logic [AddressWidth-1:0] addr;
    logic [7:0]              len;
    logic [2:0]              size;
    axi_pkg::burst_e         burst;
  } burst_t;

  // ---- each direction holds up to two bursts, and passes their beats one by one: 0 writes, 1 reads
  logic [1:0] s_valid, s_ready, valid, beat, last, refused;
  burst_t [1:0] s_burst, burst;
  logic [1:0][AddressWidth-1:0] address;
  assign s_valid = {s_axi_req.ar_valid, s_axi_req.aw_valid};
  assign {s_axi_resp.ar_ready, s_axi_resp.aw_ready} = s_ready;
  assign s_burst[0] = {s_axi_req.aw.id, s_axi_req.aw.addr, s_axi_req.aw.len, s_axi_req.aw.size, s_axi_req.aw.burst};
  assign s_burst[1] = {s_axi_req.ar.id, s_axi_req.ar.addr, s_axi_req.ar.len, s_axi_req.ar.size, s_axi_req.ar.burst};

  for (genvar i = 0; i < 2; i++) begin : gen_direction
    logic first_q, stays;
    logic [7:0] beat_q;
    logic [axi_pkg::BoundaryBits-1:0] offset_q, offset;

    stream_fifo #(
        .Width($bits(burst_t)),
        .Depth(2)
    ) i_bursts (
        .*,
        `STREAM_PORTS(s, s_valid[i], s_ready[i], s_burst[i]),
        `STREAM_PORTS(m, valid[i], beat[i] && last[i], burst[i])
    );

    assign last[i]    = beat_q == burst[i].len;
    assign refused[i] = burst[i].burst != axi_pkg::BurstIncr && burst[i].burst != axi_pkg::BurstFixed;
    // A burst stays within 4 KiB, so only the low address bits change.
    assign stays      = first_q || burst[i].burst == axi_pkg::BurstFixed;
    assign offset     = stays ? burst[i].addr[axi_pkg::BoundaryBits-1:0] : offset_q;
    assign address[i] = {burst[i].addr[AddressWidth-1:axi_pkg::BoundaryBits], offset};

    always_ff @(posedge clk_i) begin
      if (beat[i]) begin
        first_q  <= last[i];
        beat_q   <= last[i] ? '0 : beat_q + 1'b1;
        offset_q <= axi_pkg::next_beat(offset, burst[i].size);
      end
      if (rst_i) begin
        first_q <= 1'b1;
        beat_q  <= '0;
      end
    end
  end

  // ---- writes
  logic b_ready, failed_q, failed;
  assign s_axi_resp.w_ready = valid[0] && b_ready;
  assign beat[0]            = s_axi_req.w_valid && s_axi_resp.w_ready;
  assign write_o            = beat[0] && !refused[0];
  assign write_address_o    = address[0];
  assign write_data_o       = s_axi_req.w.data;
  assign write_strobe_o     = s_axi_req.w.strb;
  assign failed             = failed_q || refused[0] || write_error_i;
  always_ff @(posedge clk_i) begin
    if (beat[0]) failed_q <= failed && !last[0];
    if (rst_i) failed_q <= 1'b0;
  end

  stream_fifo #(
      .Width($bits(s_axi_resp.b)),
      .Depth(2)
  ) i_b (
      .*,
      `STREAM_PORTS(s, beat[0] && last[0], b_ready, {burst[0].id, failed, 1'b0}),
      `STREAM_PORTS(m, s_axi_resp.b_valid, s_axi_req.b_ready, s_axi_resp.b)
  );

  // ---- reads: a beat is requested only if there is room for its data
  typedef struct packed {
    logic               valid;
    logic [IdWidth-1:0] id;
    logic               refused;
    logic               last;
  } asked_t;
  asked_t asked, here;  // here: the beat whose data arrive in this cycle
  asked_t [ReadLatency-1:0] asked_q;
  logic r_room, r_fits;
  assign beat[1]        = valid[1] && r_room;
  assign read_o         = beat[1] && !refused[1];
  assign read_address_o = address[1];
  assign read_size_o    = burst[1].size;
  assign here           = asked_q[ReadLatency-1];
  assign asked          = {beat[1], burst[1].id, refused[1], last[1]};
  always_ff @(posedge clk_i) begin
    asked_q[0] <= asked;
    for (int i = 1; i < int'(ReadLatency); i++) asked_q[i] <= asked_q[i-1];
    if (rst_i) begin
      for (int i = 0; i < int'(ReadLatency); i++) asked_q[i].valid <= 1'b0;
    end
  end

  // verilator lint_off PINCONNECTEMPTY
  credit_counter #(
      .Credits(ReadBeats)
  ) i_room (
      .*,
      .take_i(beat[1]),
      .give_i(s_axi_resp.r_valid && s_axi_req.r_ready),
      .available_o(r_room),
      .count_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  stream_fifo #(
      .Width($bits(s_axi_resp.r)),
      .Depth(ReadBeats)
  ) i_r (
      .*,
      `STREAM_PORTS(s, here.valid, r_fits, {here.id, read_data_i, here.refused || read_error_i, 1'b0, here.last}),
      `STREAM_PORTS(m, s_axi_resp.r_valid, s_axi_req.r_ready, s_axi_resp.r)
  );

  `ASSERT(last_agrees, !beat[0] || s_axi_req.w.last == last[0], "write data end where AWLEN does not say")
  `ASSERT(read_fits, !here.valid || r_fits, "a beat of a read has no room")

endmodule
`default_nettype wire
