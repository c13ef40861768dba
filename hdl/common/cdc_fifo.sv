// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"
`include "stream.svh"

/// A queue in a stream from s_clk_i to m_clk_i.
///
/// Behaviour: a RAM of Depth beats in LUTs, and a register for the output beat. Each side sends its pointer to the
/// other in Gray code, in which one bit changes at a time. So a pointer that is sampled during a change has either the
/// old or the new value.
/// Latency: from input to output 1 cycle of s_clk_i and Stages + 1 cycles of m_clk_i. The throughput is one beat per
/// cycle of the slower clock if Depth is at least 2 * Stages + 4.
/// Paths: none from input to output, except from s_rst_i to s_ready.
/// Reset: either reset empties both sides, see cdc_reset. Beats inside are lost, and s_ready and m_valid are low until
/// the reset is over. After configuration of the FPGA the queue is empty.
/// Requirements: s_valid is low during reset.
/// Clock crossing: pointers by sync. cdc_fifo.xdc bounds their skew and the delay from the RAM to the output register.
module cdc_fifo #(
    /// Bits of the payload; at least 1.
    parameter int unsigned Width  = 8,
    /// Beats in the RAM; a power of two, at least 2.
    parameter int unsigned Depth  = 16,
    /// Flip-flops of each synchroniser; at least 2.
    parameter int unsigned Stages = 2
) (
    input wire s_clk_i,
    input wire s_rst_i,
    `STREAM_RECEIVER(s, logic [Width-1:0])
    `STREAM_SENDER(m, logic [Width-1:0])
    input wire m_clk_i,
    input wire m_rst_i
);

  // The initial values are intended: the FPGA's configuration sets them.
  // verilator lint_off PROCASSINIT

  if (Width < 1) begin : gen_check_width
    $fatal(1, "Width must be at least 1 in %m");
  end
  if (Depth < 2 || 2 ** $clog2(Depth) != Depth) begin : gen_check_depth
    $fatal(1, "Depth must be a power of two and at least 2 in %m");
  end

  localparam int unsigned AddressWidth = $clog2(Depth);

  // One bit more than an address, to distinguish a full queue from an empty one.
  typedef logic [AddressWidth:0] pointer_t;
  function automatic pointer_t gray_of(pointer_t pointer);
    return pointer ^ (pointer >> 1);
  endfunction

  logic s_rst, s_clear, m_rst, m_clear;
  cdc_reset #(
      .Stages(Stages)
  ) i_reset (
      .s_clk_i,
      .m_clk_i,
      .s_rst_i,
      .s_rst_o  (s_rst),
      .s_clear_o(s_clear),
      .m_rst_i,
      .m_rst_o  (m_rst),
      .m_clear_o(m_clear)
  );

  pointer_t write_q = '0;
  pointer_t write_gray_q = '0;
  pointer_t read_q = '0;
  pointer_t read_gray_q = '0;
  logic valid_q = 1'b0;
  logic [Width-1:0] payload_q;

  pointer_t write_next, read_next, write_seen, read_seen;  // seen: the other side's pointer, in Gray code
  logic put, fetch;
  logic [Width-1:0] ram_payload;

  sync #(
      .Width (AddressWidth + 1),
      .Stages(Stages)
  ) i_write (
      .clk_i  (m_clk_i),
      .value_i(write_gray_q),
      .value_o(write_seen)
  );
  sync #(
      .Width (AddressWidth + 1),
      .Stages(Stages)
  ) i_read (
      .clk_i  (s_clk_i),
      .value_i(read_gray_q),
      .value_o(read_seen)
  );

  // The queue is full if the pointers are Depth apart. In Gray code their two upper bits then differ.
  assign s_ready    = write_gray_q != (read_seen ^ (pointer_t'(2'b11) << (AddressWidth - 1))) && !s_rst;
  assign put        = s_valid && s_ready;
  assign fetch      = read_gray_q != write_seen && (!valid_q || m_ready) && !m_rst;
  assign write_next = write_q + 1'b1;
  assign read_next  = read_q + 1'b1;
  assign m_valid    = valid_q;
  assign m_payload  = payload_q;

  always_ff @(posedge s_clk_i) begin
    if (put) begin
      write_q      <= write_next;
      write_gray_q <= gray_of(write_next);
    end
    if (s_clear) begin
      write_q      <= '0;
      write_gray_q <= '0;
    end
  end

  lutram #(
      .Width(Width),
      .Depth(Depth)
  ) i_ram (
      .clk_i          (s_clk_i),
      .write_i        (put),
      .write_address_i(write_q[AddressWidth-1:0]),
      .write_data_i   (s_payload),
      .read_address_i (read_q[AddressWidth-1:0]),
      .read_data_o    (ram_payload)
  );

  always_ff @(posedge m_clk_i) begin
    if (fetch) begin
      read_q      <= read_next;
      read_gray_q <= gray_of(read_next);
      payload_q   <= ram_payload;
    end
    if (fetch) valid_q <= 1'b1;
    else if (m_ready) valid_q <= 1'b0;
    if (m_rst) valid_q <= 1'b0;
    if (m_clear) begin
      read_q      <= '0;
      read_gray_q <= '0;
    end
  end

`ifndef SYNTHESIS
  if (1) begin : gen_s_checks
    wire clk_i = s_clk_i;
    wire rst_i = s_rst;
    `ASSERT_NEXT(one_bit_of_write, 1'b1, $onehot0(write_gray_q ^ $past(write_gray_q)),
                 "two bits of the write pointer changed at once")
    `ASSERT(room_is_right, pointer_t'(write_q - read_q) <= pointer_t'(Depth), "holds more beats than it has places for")
  end
  if (1) begin : gen_m_checks
    wire clk_i = m_clk_i;
    wire rst_i = m_rst;
    `ASSERT_NEXT(one_bit_of_read, 1'b1, $onehot0(read_gray_q ^ $past(read_gray_q)),
                 "two bits of the read pointer changed at once")
    `ASSERT_NEXT(valid_kept, m_valid && !m_ready, m_valid, "a beat was withdrawn before it was taken")
    `ASSERT_NEXT(payload_kept, m_valid && !m_ready, m_payload == $past(m_payload), "a beat changed before it was taken")
  end
`endif

  // verilator lint_on PROCASSINIT
endmodule
`default_nettype wire
