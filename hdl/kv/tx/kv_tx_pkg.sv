// SPDX-License-Identifier: Apache-2.0
/// Types that the blocks of kv_transmit exchange: docs/design/kv-core.md.
package kv_tx_pkg;

  import kv_frame_pkg::*;
  import kv_core_pkg::*;

  // Each module that uses the package uses only a part of it.
  /* verilator lint_off UNUSEDPARAM */

  /// The part of a frame that is stored until its turn.
  typedef struct packed {
    endpoint_t to;
    kv_t kv;
    place_t place;
    logic [10:0] length;
    logic summed;
    logic [19:0] sum;  // under the UDP checksum, but for ports and addresses: sum_of
  } tx_record_t;

  /// The frame that is sent next.
  typedef struct packed {
    logic later;  // its value comes from memory
    logic to_node;  // to this one, not to whom the record says
    logic [2:0] node;
    tx_record_t record;
  } tx_next_t;

  /// The source of a frame's value.
  typedef enum logic [1:0] {
    ValueNone   = 2'd0,
    ValuePool   = 2'd1,
    ValueMemory = 2'd2
  } value_source_e;

  /// A frame without its value.
  typedef struct packed {
    headers_t headers;  // of the IPv4 checksum, the complement
    logic [10:0] length;  // of the value
    logic [10:0] size;  // of the frame
    value_source_e source;
  } tx_header_t;

  /// Separates two-input adders, so that each becomes a carry chain, as in kv_sum.
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic logic [21:0] apart(logic [21:0] a);
    return {a[21:16], a[15] && (a[15] || a[0]), a[14:0]};
  endfunction

  /// The sum of the fields in a record. Its length is counted twice.
  function automatic logic [19:0] sum_of(send_t send);
    logic [11:0][15:0] word;
    logic [ 5:0][16:0] pair;
    logic [ 2:0][17:0] four;
    logic [18:0] first, rest;
    word = {send.sum, send.kv};
    for (int i = 0; i < 6; i++) pair[i] = 17'(word[2*i]) + 17'(word[2*i+1]);
    for (int i = 0; i < 3; i++) four[i] = 18'(apart(22'(pair[2*i]))) + 18'(apart(22'(pair[2*i+1])));
    first = 19'(apart(22'(four[0]))) + 19'(apart(22'(four[1])));
    rest  = 19'(apart(22'(four[2]))) + 19'({send.length, 1'b0});
    return 20'(apart(22'(first))) + 20'(apart(22'(rest)));
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  /* verilator lint_on UNUSEDPARAM */

endpackage
