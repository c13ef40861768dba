// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Decodes the descriptors that the NIC writes back for received and for transmitted frames.
///
/// Behaviour: a descriptor is done when the byte with DD is written. The length may come with DD or before: NICs
/// write 16 bytes at once, but QEMU's write 4, the status last. Of 32-byte descriptors, the first half counts.
/// Latency: 1 cycle.
/// Reset: nothing is reported as written back.
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

  logic [3:0] sized, rx_done, eop, error, tx_done;
  bytes_t [3:0] bytes;
  always_comb begin
    for (int i = 0; i < 4; i++) begin
      // verilator lint_off UNUSEDSIGNAL
      logic [127:0] descriptor;
      logic [ 15:0] strobe;
      // verilator lint_on UNUSEDSIGNAL
      descriptor = write_i.data[128*i+:128];
      strobe = write_i.strobe[16*i+:16];
      case (nic_i.rx_length)
        2'd0: bytes[i] = descriptor[109:96];
        2'd1: bytes[i] = descriptor[115:102];
        default: bytes[i] = descriptor[45:32];
      endcase
      // The byte of the length's upper bits is written together with the lower byte.
      sized[i] = nic_i.rx_length[1] ? strobe[5] : strobe[13];
      rx_done[i] = strobe[8] && descriptor[64];
      eop[i] = descriptor[65];
      error[i] = ({descriptor[95:83], descriptor[74]} & nic_i.rx_errors) != '0;
      tx_done[i] = nic_i.tx_done_type ? strobe[8] && descriptor[67:64] == '1 : strobe[12] && descriptor[96];
    end
  end

  // In groups of four descriptors: a beat has two 32-byte descriptors, the lower or the upper half of a group.
  function automatic logic [3:0] grouped(logic [3:0] lanes, logic wide, logic upper);
    if (!wide) return lanes;
    return {{2{upper}} & {lanes[2], lanes[0]}, {2{!upper}} & {lanes[2], lanes[0]}};
  endfunction

  logic [1:0] last_tx;
  always_comb begin
    last_tx = '0;
    for (int i = 0; i < 4; i++) if (tx_done[i]) last_tx = 2'(i);
  end

  logic wide;
  assign wide = nic_i.rx_32_bytes;
  always_ff @(posedge clk_i) begin
    rx_o.pair  <= write_i.offset[20:17];
    rx_o.group <= wide ? {1'b0, line[9:1]} : line;
    rx_o.done  <= grouped(rx_done, wide, line[0]);
    rx_o.sized <= grouped(sized, wide, line[0]);
    rx_o.eop   <= wide ? {eop[2], eop[0], eop[2], eop[0]} : eop;
    rx_o.error <= wide ? {error[2], error[0], error[2], error[0]} : error;
    rx_o.bytes <= wide ? {bytes[2], bytes[0], bytes[2], bytes[0]} : bytes;

    // A head's value is in the low bits. One offset bit separates heads from rings, before the region is known.
    tx_o.valid <= (in_tx && tx_done != '0) || (write_i.valid && write_i.region == Heads && write_i.strobe[0]);
    tx_o.pair  <= !write_i.offset[21] ? write_i.offset[20:17] : write_i.offset[9:6];
    tx_o.head  <= !write_i.offset[21] ? {line, last_tx} + 1'b1 : write_i.data[11:0];

    if (rst_i || !in_rx) begin
      rx_o.done  <= '0;
      rx_o.sized <= '0;
    end
    if (rst_i) tx_o.valid <= 1'b0;
  end

endmodule
`default_nettype wire
