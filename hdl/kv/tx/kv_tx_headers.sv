// SPDX-License-Identifier: Apache-2.0
`default_nettype none

/// Makes a frame's headers, with both checksums.
///
/// Behaviour: Ethernet, IPv4, UDP and kv headers from self_i to to_i, with the content of record_i. The UDP checksum is
/// 0 unless `summed`. The IPv4 checksum is output as its complement. `kv_tx_output` inverts it in the LUT that selects
/// the beat.
/// Latency: 0 cycles; 2 cycles from self_i, which is constant.
/// Reset: none.
/// Requirements: self_i changes only when nothing waits to be sent.
module kv_tx_headers
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_tx_pkg::*;
(
    input wire clk_i,

    input wire endpoint_t self_i,

    input  wire endpoint_t  to_i,
    input  wire tx_record_t record_i,
    output headers_t        headers_o
);

  // The sum of the fields that are equal in every frame: IPv4 without destination address and length, UDP likewise. The
  // adders form a chain.
  localparam int unsigned IpFixed = (IpVersionIhl << 8) + IpDontFragment + (IpTtl << 8) + IpProtocolUdp + MinIpLength;
  localparam int unsigned UdpFixed = IpProtocolUdp + 2 * MinUdpLength;
  logic [16:0] self_q;
  logic [17:0] self_port_q;
  logic [18:0] ip_self_q, udp_self_q;
  always_ff @(posedge clk_i) begin
    self_q      <= 17'(self_i.ip[31:16]) + 17'(self_i.ip[15:0]);
    self_port_q <= 18'(self_q) + 18'(self_i.port);
    ip_self_q   <= 19'(self_q) + 19'(IpFixed);
    udp_self_q  <= 19'(self_port_q) + 19'(UdpFixed);
  end

  // verilator lint_off UNUSEDSIGNAL
  logic [18:0] ip_self;
  logic [21:0] ip_to, ip_sum, udp_rest, udp_most, udp_sum;
  assign ip_self  = ip_self_q + 19'(record_i.length);
  assign ip_to    = 22'(to_i.ip[31:16]) + 22'(to_i.ip[15:0]);
  assign ip_sum   = apart(ip_to) + apart(22'(ip_self));
  assign udp_rest = 22'(record_i.sum) + 22'(udp_self_q);
  assign udp_most = apart(udp_rest) + 22'(to_i.port);
  assign udp_sum  = apart(ip_to) + apart(udp_most);

  // Folds a sum of 22 words of 16 bits. The part above 16 bits, plus one, is less than 32.
  logic [16:0] ip_folded, udp_folded;
  logic [5:0] udp_low;
  logic unused_place;
  // verilator lint_on UNUSEDSIGNAL
  logic [15:0] ip_whole, udp_checksum;
  logic udp_above;  // not below 65535
  assign ip_folded = {1'b0, ip_sum[15:0]} + 17'(ip_sum[21:16]);
  assign ip_whole = {ip_folded[15:5], ip_folded[4:0] + 5'(ip_folded[16])};
  // The UDP checksum is never 0. A sum that is 0 modulo 65535 is folded to 0 and not to 65535.
  assign udp_folded = {1'b0, udp_sum[15:0]} + 17'(udp_sum[20:16]);
  assign udp_low = {1'b0, udp_sum[4:0]} + {1'b0, udp_sum[20:16]} + 6'd1;
  assign udp_above = udp_sum[15:5] == '1 && udp_low[5];
  assign udp_checksum = udp_above ? ~16'(udp_folded[4:0] + 5'd1) | 16'hffe0 : ~udp_folded[15:0];
  assign unused_place = ^{record_i.to, record_i.place};

  always_comb begin
    headers_o                      = '0;
    headers_o.ethernet.destination = to_i.mac;
    headers_o.ethernet.source      = self_i.mac;
    headers_o.ethernet.ethertype   = 16'(EthertypeIpv4);
    headers_o.ipv4.version_ihl     = 8'(IpVersionIhl);
    headers_o.ipv4.total_length    = 16'(record_i.length) + 16'(MinIpLength);
    headers_o.ipv4.flags_offset    = 16'(IpDontFragment);
    headers_o.ipv4.ttl             = 8'(IpTtl);
    headers_o.ipv4.protocol        = 8'(IpProtocolUdp);
    headers_o.ipv4.checksum        = ip_whole;
    headers_o.ipv4.source          = self_i.ip;
    headers_o.ipv4.destination     = to_i.ip;
    headers_o.udp.source_port      = self_i.port;
    headers_o.udp.destination_port = to_i.port;
    headers_o.udp.length           = 16'(record_i.length) + 16'(MinUdpLength);
    headers_o.udp.checksum         = record_i.summed ? udp_checksum : '0;
    headers_o.kv                   = record_i.kv;
  end

endmodule
`default_nettype wire
