// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Descriptors as the NIC writes them back: what has been received, what has been transmitted.
///
/// Behaviour: a descriptor is done with the byte that has its DD bit. Its length may have come before that, in another beat: NICs write 16
/// bytes at once, but QEMU's write 4, the status last. So the last length that came is kept, with its place.
/// Latency: 1 cycle.
/// Reset: forgets the length, and what it says.
/// Requirements: none.
module bypass_decode
  import bypass_pkg::*;
(
    input wire clk_i,
    input wire rst_i,

    // verilator lint_off UNUSEDSIGNAL  // not all of each matters here
    input wire personality_t  nic_i,
    input wire window_write_t write_i,
    // verilator lint_on UNUSEDSIGNAL

    output rx_written_t rx_o,
    output tx_written_t tx_o
);

  logic in_rx, in_tx;
  logic [9:0] line;  // of the ring
  assign in_rx = write_i.valid && write_i.region == RxRing;
  assign in_tx = write_i.valid && write_i.region == TxRing;
  assign line  = write_i.offset[15:6];

  // The length that came last: of the descriptor at place_q.
  logic kept_q;
  logic [15:0] place_q;
  bytes_t bytes_q;

  logic [3:0] length_here, rx_done, eop, error, tx_done;
  bytes_t [3:0] length, bytes;
  always_comb begin
    for (int i = 0; i < 4; i++) begin
      // verilator lint_off UNUSEDSIGNAL
      logic [127:0] descriptor;
      logic [15:0] strobe;
      // verilator lint_on UNUSEDSIGNAL
      logic whole;  // not the second half of a descriptor of 32 bytes
      descriptor = write_i.data[128*i+:128];
      strobe = write_i.strobe[16*i+:16];
      whole = !nic_i.rx_32_bytes || i % 2 == 0;
      case (nic_i.rx_length)
        2'd0: length[i] = descriptor[109:96];
        2'd1: length[i] = descriptor[115:102];
        default: length[i] = descriptor[45:32];
      endcase
      // The byte of the length's upper bits comes with the lower ones.
      length_here[i] = (nic_i.rx_length[1] ? strobe[5] : strobe[13]) && whole;
      bytes[i] = length_here[i] ? length[i]
               : kept_q && place_q == {write_i.offset[20:17], line, 2'(i)} ? bytes_q : '0;
      rx_done[i] = strobe[8] && descriptor[64] && whole;
      eop[i] = descriptor[65];
      error[i] = (descriptor[95:64] & nic_i.rx_error_mask) != '0;
      tx_done[i] = nic_i.tx_done_type ? strobe[8] && descriptor[67:64] == '1 : strobe[12] && descriptor[96];
    end
  end

  // In groups of four descriptors.
  logic narrow;
  assign narrow = nic_i.rx_32_bytes;
  function automatic logic [3:0] grouped(logic [3:0] lanes, logic narrow_i, logic upper);
    if (!narrow_i) return lanes;
    return upper ? {lanes[2], lanes[0], 2'b00} : {2'b00, lanes[2], lanes[0]};
  endfunction

  logic [1:0] last_tx;
  always_comb begin
    last_tx = '0;
    for (int i = 0; i < 4; i++) if (tx_done[i]) last_tx = 2'(i);
  end

  always_ff @(posedge clk_i) begin
    rx_o.valid <= in_rx && rx_done != '0;
    rx_o.pair <= write_i.offset[20:17];
    rx_o.group <= narrow ? {1'b0, line[9:1]} : line;
    rx_o.done  <= grouped(rx_done, narrow, line[0]);
    rx_o.eop   <= grouped(eop, narrow, line[0]);
    rx_o.error <= grouped(error, narrow, line[0]);
    rx_o.bytes <= narrow ? {bytes[2], bytes[0], bytes[2], bytes[0]} : bytes;

    if (in_rx && length_here != '0) kept_q <= 1'b1;
    for (int i = 0; i < 4; i++) begin
      if (in_rx && length_here[i]) begin
        place_q <= {write_i.offset[20:17], line, 2'(i)};
        bytes_q <= length[i];
      end
    end

    // Of a head the low 16 bits count.
    tx_o.valid <= (in_tx && tx_done != '0) || (write_i.valid && write_i.region == Heads && write_i.strobe[0]);
    tx_o.pair <= in_tx ? write_i.offset[20:17] : write_i.offset[9:6];
    tx_o.head  <= in_tx ? {line, last_tx} + 1'b1 : write_i.data[11:0];

    if (rst_i) begin
      rx_o.valid <= 1'b0;
      tx_o.valid <= 1'b0;
      kept_q     <= 1'b0;
    end
  end

endmodule
`default_nettype wire
