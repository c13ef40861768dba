// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "attributes.svh"

/// Computes the hash of a key: hash_of of kv_frame_pkg with two thirds of its LUTs.
///
/// Behaviour: hash_o is hash_of(key_i). Terms that several bits share are computed once. A term is a parity of at most
/// six bits, each from the key or from another term. A search found the table of terms by repeatedly taking the set
/// that saves most 6-input LUTs. Any other table gives the same hash with more LUTs: each term replaces the part of
/// HashMask that it covers, and the rest comes from the key.
/// Latency: 0 cycles.
/// Reset: none.
/// Requirements: none.
module kv_hash
  import kv_frame_pkg::*;
(
    input  wire  [63:0] key_i,
    output logic [31:0] hash_o
);

  localparam int unsigned Firsts = 34;  // parities of bits of the key
  localparam int unsigned Seconds = 15;  // and of those
  localparam logic [Firsts-1:0][63:0] First = {
    64'h8000a00000080000,
    64'h000012000c002000,
    64'h0180000040000140,
    64'h0800004020110200,
    64'h0540400000000010,
    64'h0280040008080000,
    64'h0001408001040008,
    64'h0002000c01400000,
    64'h0108001000800400,
    64'h1010004000000048,
    64'h0000004000024204,
    64'h0060000106008000,
    64'hc000000080000900,
    64'h0004c00008000000,
    64'h0004042000040024,
    64'h0002000200104010,
    64'h0000010090020003,
    64'h0000000002041280,
    64'h0000000802822001,
    64'h0849000020004000,
    64'h0004000011018000,
    64'h10a0000004000042,
    64'h4200400080000008,
    64'h0000380010020000,
    64'h0010820000042001,
    64'h2000010000003800,
    64'h0100008200100040,
    64'h8000000000090202,
    64'h0080040048204000,
    64'h0000201822400000,
    64'h0040008000008580,
    64'h0620000000000034,
    64'h0010004501008000,
    64'h0008042044800000
  };
  localparam logic [Seconds-1:0][Firsts+63:0] Second = {
    {34'h000000204, 64'h0008002000000000},
    {34'h000002000, 64'h0000000400600000},
    {34'h000000400, 64'h0000000180000400},
    {34'h000000020, 64'h1000020000800800},
    {34'h000000040, 64'h0401000200000020},
    {34'h000001002, 64'h0000000040000200},
    {34'h002000100, 64'h0010000040020000},
    {34'h000001008, 64'h0800081000000000},
    {34'h000100100, 64'h1020000000000400},
    {34'h000000081, 64'h0002000000200084},
    {34'h000000010, 64'h2000020000081008},
    {34'h000000001, 64'h0100080000000114},
    {34'h000000002, 64'h0001010000380000},
    {34'h000000009, 64'h0800021000400000},
    {34'h000000004, 64'h0040010000000880}
  };

  // In this order: bits of the key, parities of the first kind, parities of the second kind.
  typedef logic [Seconds+Firsts+63:0] part_t;
  function automatic part_t [31:0] parts_of_hash();
    part_t of;
    for (int i = 0; i < 32; i++) begin
      of = part_t'(HashMask[i]);
      for (int k = 0; k < int'(Firsts + Seconds); k++) begin
        part_t part;
        part = k < int'(Firsts) ? part_t'(First[k]) : part_t'(Second[k-int'(Firsts)]);
        if ((of & part) == part) of = (of & ~part) | part_t'(1) << (64 + k);
      end
      parts_of_hash[i] = of;
    end
  endfunction
  localparam part_t [31:0] Parts = parts_of_hash();

  // YOSYS_KEEP, because otherwise Yosys makes one copy for each user.
  `YOSYS_KEEP
  logic [Firsts-1:0] first;
  `YOSYS_KEEP
  logic [Seconds-1:0] second;
  always_comb begin
    for (int k = 0; k < int'(Firsts); k++) first[k] = ^(key_i & First[k]);
    for (int k = 0; k < int'(Seconds); k++) second[k] = ^({first, key_i} & Second[k]);
    for (int i = 0; i < 32; i++) hash_o[i] = ^({second, first, key_i} & Parts[i]) ^ HashFlip[i];
  end

endmodule
`default_nettype wire
