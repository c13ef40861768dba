// SPDX-License-Identifier: Apache-2.0
//
// Streams (docs/design/hdl.md): valid, ready and a payload, in lists of ports and in instances.
//
//   `STREAM_RECEIVER(prefix, kind)   in a module's list of ports, before others and without a comma, which it brings: prefix_valid, prefix_ready,
//                                    and prefix_payload of the type kind
//   `STREAM_SENDER(prefix, kind)     the same for the sender
//   `STREAM_PORTS(port, valid, ready, payload)  in an instance: the three ports port_valid, port_ready and port_payload
`ifndef WHERRY_STREAM_SVH
`define WHERRY_STREAM_SVH

`define STREAM_RECEIVER(prefix, kind) \
  input  wire  prefix``_valid, \
  output logic prefix``_ready, \
  input  wire kind prefix``_payload,

`define STREAM_SENDER(prefix, kind) \
  output logic prefix``_valid, \
  input  wire  prefix``_ready, \
  output kind  prefix``_payload,

`define STREAM_PORTS(port, valid, ready, payload) \
  .port``_valid(valid), \
  .port``_ready(ready), \
  .port``_payload(payload)

`endif
