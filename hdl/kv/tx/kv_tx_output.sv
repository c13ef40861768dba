// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "attributes.svh"

/// The output. It sends the core's frames (a header, then the value's words) and the host's frames, which alternate if
/// both wait.
///
/// Behaviour: sends whole frames. A header gives the source and length of the frame's value. The last word's tkeep, and
/// tuser, which is the frame's size, are computed from these. It is not a stream_arbiter: header, pool, memory and host
/// are four inputs of one LUT per bit, and the choice of the next frame may change in each cycle until it begins.
/// Latency: 1 cycle.
/// Paths: m_ready to s_ready, header_ready, pool_ready and word_ready.
/// Reset: forgets the current frame; m_valid falls.
/// Requirements: words come in the order of their headers.
module kv_tx_output
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_tx_pkg::*;
#(
    /// The stream type, with 512 data bits and at least 16 user bits, for the size of the core's frames.
    parameter type axis_t = kv_axis_t
) (
    input wire clk_i,
    input wire rst_i,

    // Frames of the core. The readies for headers and for the pool's words do not depend on their valids.
    input  wire                     header_valid,
    output logic                    header_ready,
    input  wire tx_header_t         header,
    input  wire                     pool_valid,
    output logic                    pool_ready,
    input  wire             [511:0] pool_data,
    input  wire                     word_valid,
    output logic                    word_ready,
    input  wire             [511:0] word_data,

    // Frames of the host.
    input  wire        s_valid,
    output logic       s_ready,
    input  wire axis_t s_payload,

    output logic  m_valid,
    input  wire   m_ready,
    output axis_t m_payload,

    /// No frame of the core is being sent.
    output logic idle_o,
    /// The last beat of a host frame is sent.
    output logic passed_o
);

  localparam int unsigned UserWidth = $bits(s_payload.user);

  typedef enum logic [1:0] {
    Between = 2'd0,  // frames
    Host = 2'd1,
    Pool = 2'd2,
    Memory = 2'd3
  } state_e;

  state_e state_q, from;
  logic host_turn_q;  // the core's frame was the last
  logic out_free, out_valid, out_load, last;
  logic [10:0] left_q;  // bytes of the value that are still to come
  logic [10:0] size_q;  // of the frame
  logic [ 1:0] pick;
  assign pick[1] = state_q[1];
  assign pick[0] = state_q[1] || state_q[0] ? state_q[0] : s_valid && (host_turn_q || !header_valid);

  // In state Between, the value Between of `from` stands for a header.
  always_comb begin
    from = state_q;
    if (state_q == Between && s_valid && (host_turn_q || !header_valid)) from = Host;
  end

  always_comb begin
    last = left_q <= 11'(BeatBytes);
    case (from)
      Between: begin
        out_valid = header_valid;
        last      = header.source == ValueNone;
      end
      Pool:   out_valid = pool_valid;
      Memory: out_valid = word_valid;
      default: begin
        out_valid = s_valid;
        last      = s_payload.last;
      end
    endcase
  end

  // They do not use `from`, because many signals depend on them.
  assign header_ready = out_free && state_q == Between && !(s_valid && host_turn_q);
  assign pool_ready   = out_free && state_q == Pool;
  assign word_ready   = out_free && from == Memory;
  assign s_ready      = out_free && from == Host;
  assign out_load     = out_valid && out_free;

  // tkeep for a header, or for a value with that many bytes left. In groups of eight, so that each byte takes one LUT.
  logic [63:0] core_keep;
  `YOSYS_KEEP
  logic [7:0] group_whole, group_part, below;
  always_comb begin
    for (int i = 0; i < 8; i++) begin
      group_whole[i] = !state_q[1] || left_q[10:6] != '0 || left_q[5:3] > 3'(i);
      group_part[i]  = left_q[5:3] == 3'(i);
      below[i]       = left_q[2:0] > 3'(i);
    end
    for (int i = 0; i < 64; i++) core_keep[i] = group_whole[i/8] || (group_part[i/8] && below[i%8]);
  end

  // Each bit is one LUT, in which the complement is free.
  logic [3:0][511:0] beats;
  headers_t headers;
  always_comb begin
    headers = header.headers;
    headers.ipv4.checksum = ~header.headers.ipv4.checksum;
  end
  assign beats = {word_data, pool_data, s_payload.data, to_beat(headers)};

  axis_t out;
  always_comb begin
    // Two choices, the late bit last. With a single index Yosys makes two LUTs per bit in some joined cores.
    out.data = pick[1] ? (pick[0] ? beats[Memory] : beats[Pool]) : (pick[0] ? beats[Host] : beats[Between]);
    out.keep = pick == Host ? s_payload.keep : core_keep;
    out.last = last;
    out.user = from == Host ? s_payload.user : UserWidth'(from == Between ? header.size : size_q);
  end

  stream_register #(
      .Width($bits(axis_t))
  ) i_out (
      .*,
      .s_valid  (out_valid),
      .s_ready  (out_free),
      .s_payload(out)
  );

  always_ff @(posedge clk_i) begin
    if (out_load) begin
      left_q <= from == Between ? header.length : left_q - 11'(BeatBytes);
      if (from == Between) size_q <= header.size;
      case (from)
        Between: state_q <= header.source == ValuePool ? Pool : header.source == ValueMemory ? Memory : Between;
        default: state_q <= last ? Between : from;
      endcase
      if (last) host_turn_q <= from != Host;
    end
    if (rst_i) begin
      state_q     <= Between;
      host_turn_q <= 1'b0;
    end
  end

  assign idle_o   = state_q == Between || state_q == Host;
  assign passed_o = out_load && from == Host && last;

endmodule
`default_nettype wire
