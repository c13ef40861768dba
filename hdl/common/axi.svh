// SPDX-License-Identifier: Apache-2.0
//
// Typed bundles: the types of an AXI4, AXI4-Lite or stream port of given widths, and the conversion to flat ports.
//
//   `AXI_TYPES(name, AddressWidth, DataWidth, IdWidth)   name_a_t (AW and AR), name_w_t, name_b_t, name_r_t, name_req_t, name_resp_t
//   `AXI_LITE_TYPES(name, AddressWidth, DataWidth)       the same names
//   `AXI3_TYPES(name, AddressWidth, DataWidth)           the same names, for a manager of AXI3 all of whose bursts are INCR, of whole words, and
//                                                        have identifier 0: only what differs is carried
//   `AXIS_TYPE(name, DataWidth, UserWidth)               name_t: data, keep, last, user; valid and ready stay beside it
//   `AXI_FROM_FLAT(prefix, request, response)            in a top that is the subordinate at the flat ports prefix_awid ...
//   `AXI_TO_FLAT(prefix, request, response)              in a top that is the manager there
//   `AXI_LITE_FROM_FLAT(prefix, request, response), `AXI_LITE_TO_FLAT(prefix, request, response)
//   `AXI3_TO_FLAT(prefix, i, request, response)          to element i of the flat ports, which are arrays
//   `AXI3_FROM_FLAT(prefix, i, request, response)        from there
//   `AXI_LITE_SUBORDINATE(prefix, AddressWidth, DataWidth) in a top's list of ports, before others and without a comma, which it
//                                                        brings: the flat ports of a subordinate; _OF_WORDS has no strobes
//   `AXI_LITE_WRITER(prefix, AddressWidth, DataWidth)    the same: those of a manager that only writes, and `AXI_LITE_WRITER_TO_FLAT
//   `AXI_SUBORDINATE(prefix, AddressWidth, DataWidth, IdWidth), `AXI_MANAGER and `AXI_LITE_MANAGER
//   `AXI3_MANAGER(prefix, n, AddressWidth, DataWidth)    the same: those of n managers, which are arrays
//   `AXIS_RECEIVER(prefix, DataWidth, UserWidth), `AXIS_TRANSMITTER(prefix, DataWidth, UserWidth)
//   `AXI3_NETS(prefix, n, AddressWidth, DataWidth)       such arrays
//   `AXI3_PORTS(port, prefix)                            in an instance: its flat ports port_awaddr ..., connected to such arrays
//   `AXI_LITE_PORTS(port, request, response)             the same, connected to a bundle; `AXI_LITE_WRITER_PORTS and `AXI_PORTS
//   `AXIS_PORTS(port, valid, ready, beat)                the same
//
// A request bundle (req) holds the signals that a manager drives: AW, W and AR with their valids, and the readies of B
// and R. A response bundle (resp) holds the signals that a subordinate drives. A cell takes both types as parameters
// (`parameter type axi_req_t`), and has four ports:
//
//   input  wire axi_req_t  s_axi_req,     output axi_req_t  m_axi_req,
//   output axi_resp_t      s_axi_resp,    input  wire axi_resp_t m_axi_resp,
//
// AxLOCK, AxQOS, AxREGION and the user signals are not carried: no cell uses them. A top ties them off. Widths are at least 1.
`ifndef WHERRY_AXI_SVH
`define WHERRY_AXI_SVH

`define AXI_TYPES(name, AddressWidth, DataWidth, IdWidth) \
  typedef struct packed { \
    logic [(IdWidth)-1:0]      id; \
    logic [(AddressWidth)-1:0] addr; \
    logic [7:0]                len; \
    logic [2:0]                size; \
    axi_pkg::burst_e           burst; \
    logic [3:0]                cache; \
    logic [2:0]                prot; \
  } name``_a_t; \
  typedef struct packed { \
    logic [(DataWidth)-1:0]   data; \
    logic [(DataWidth)/8-1:0] strb; \
    logic                     last; \
  } name``_w_t; \
  typedef struct packed { \
    logic [(IdWidth)-1:0] id; \
    axi_pkg::resp_e       resp; \
  } name``_b_t; \
  typedef struct packed { \
    logic [(IdWidth)-1:0]   id; \
    logic [(DataWidth)-1:0] data; \
    axi_pkg::resp_e         resp; \
    logic                   last; \
  } name``_r_t; \
  `AXI_BUNDLES(name)

`define AXI_LITE_TYPES(name, AddressWidth, DataWidth) \
  typedef struct packed { \
    logic [(AddressWidth)-1:0] addr; \
  } name``_a_t; \
  typedef struct packed { \
    logic [(DataWidth)-1:0]   data; \
    logic [(DataWidth)/8-1:0] strb; \
  } name``_w_t; \
  typedef struct packed { \
    axi_pkg::resp_e resp; \
  } name``_b_t; \
  typedef struct packed { \
    logic [(DataWidth)-1:0] data; \
    axi_pkg::resp_e         resp; \
  } name``_r_t; \
  `AXI_BUNDLES(name)

`define AXI3_TYPES(name, AddressWidth, DataWidth) \
  typedef struct packed { \
    logic [(AddressWidth)-1:0] addr; \
    logic [3:0]                len; \
  } name``_a_t; \
  typedef struct packed { \
    logic [(DataWidth)-1:0]   data; \
    logic [(DataWidth)/8-1:0] strb; \
    logic                     last; \
  } name``_w_t; \
  typedef struct packed { \
    axi_pkg::resp_e resp; \
  } name``_b_t; \
  typedef struct packed { \
    logic [(DataWidth)-1:0] data; \
    axi_pkg::resp_e         resp; \
  } name``_r_t; \
  `AXI_BUNDLES(name)

// The struct types that all kinds of bundle share.
`define AXI_BUNDLES(name) \
  typedef struct packed { \
    name``_a_t aw; \
    logic      aw_valid; \
    name``_w_t w; \
    logic      w_valid; \
    logic      b_ready; \
    name``_a_t ar; \
    logic      ar_valid; \
    logic      r_ready; \
  } name``_req_t; \
  typedef struct packed { \
    logic      aw_ready; \
    logic      w_ready; \
    name``_b_t b; \
    logic      b_valid; \
    logic      ar_ready; \
    name``_r_t r; \
    logic      r_valid; \
  } name``_resp_t;

`define AXIS_TYPE(name, DataWidth, UserWidth) \
  typedef struct packed { \
    logic [(UserWidth)-1:0]   user; \
    logic                     last; \
    logic [(DataWidth)/8-1:0] keep; \
    logic [(DataWidth)-1:0]   data; \
  } name``_t;

// First the signals that AXI4-Lite does not have, then those that both have.
`define AXI_FROM_FLAT(prefix, request, response) \
  assign request.aw.id = prefix``_awid; \
  assign request.aw.len = prefix``_awlen; \
  assign request.aw.size = prefix``_awsize; \
  assign request.aw.burst = axi_pkg::burst_e'(prefix``_awburst); \
  assign request.aw.cache = prefix``_awcache; \
  assign request.aw.prot = prefix``_awprot; \
  assign request.w.last = prefix``_wlast; \
  assign prefix``_bid = response.b.id; \
  assign request.ar.id = prefix``_arid; \
  assign request.ar.len = prefix``_arlen; \
  assign request.ar.size = prefix``_arsize; \
  assign request.ar.burst = axi_pkg::burst_e'(prefix``_arburst); \
  assign request.ar.cache = prefix``_arcache; \
  assign request.ar.prot = prefix``_arprot; \
  assign prefix``_rid = response.r.id; \
  assign prefix``_rlast = response.r.last; \
  `AXI_LITE_FROM_FLAT(prefix, request, response)

`define AXI_TO_FLAT(prefix, request, response) \
  assign prefix``_awid = request.aw.id; \
  assign prefix``_awlen = request.aw.len; \
  assign prefix``_awsize = request.aw.size; \
  assign prefix``_awburst = request.aw.burst; \
  assign prefix``_awcache = request.aw.cache; \
  assign prefix``_awprot = request.aw.prot; \
  assign prefix``_wlast = request.w.last; \
  assign response.b.id = prefix``_bid; \
  assign prefix``_arid = request.ar.id; \
  assign prefix``_arlen = request.ar.len; \
  assign prefix``_arsize = request.ar.size; \
  assign prefix``_arburst = request.ar.burst; \
  assign prefix``_arcache = request.ar.cache; \
  assign prefix``_arprot = request.ar.prot; \
  assign response.r.id = prefix``_rid; \
  assign response.r.last = prefix``_rlast; \
  `AXI_LITE_TO_FLAT(prefix, request, response)

`define AXI_LITE_FROM_FLAT(prefix, request, response) \
  assign request.aw.addr = prefix``_awaddr; \
  assign request.aw_valid = prefix``_awvalid; \
  assign prefix``_awready = response.aw_ready; \
  assign request.w.data = prefix``_wdata; \
  assign request.w.strb = prefix``_wstrb; \
  assign request.w_valid = prefix``_wvalid; \
  assign prefix``_wready = response.w_ready; \
  assign prefix``_bresp = response.b.resp; \
  assign prefix``_bvalid = response.b_valid; \
  assign request.b_ready = prefix``_bready; \
  assign request.ar.addr = prefix``_araddr; \
  assign request.ar_valid = prefix``_arvalid; \
  assign prefix``_arready = response.ar_ready; \
  assign prefix``_rdata = response.r.data; \
  assign prefix``_rresp = response.r.resp; \
  assign prefix``_rvalid = response.r_valid; \
  assign request.r_ready = prefix``_rready;

`define AXI_LITE_TO_FLAT(prefix, request, response) \
  assign prefix``_awaddr = request.aw.addr; \
  assign prefix``_awvalid = request.aw_valid; \
  assign response.aw_ready = prefix``_awready; \
  assign prefix``_wdata = request.w.data; \
  assign prefix``_wstrb = request.w.strb; \
  assign prefix``_wvalid = request.w_valid; \
  assign response.w_ready = prefix``_wready; \
  assign response.b.resp = axi_pkg::resp_e'(prefix``_bresp); \
  assign response.b_valid = prefix``_bvalid; \
  assign prefix``_bready = request.b_ready; \
  assign prefix``_araddr = request.ar.addr; \
  assign prefix``_arvalid = request.ar_valid; \
  assign response.ar_ready = prefix``_arready; \
  assign response.r.data = prefix``_rdata; \
  assign response.r.resp = axi_pkg::resp_e'(prefix``_rresp); \
  assign response.r_valid = prefix``_rvalid; \
  assign prefix``_rready = request.r_ready;

`define AXI3_TO_FLAT(prefix, i, request, response) \
  assign prefix``_awaddr[i] = request.aw.addr; \
  assign prefix``_awlen[i] = request.aw.len; \
  assign prefix``_awvalid[i] = request.aw_valid; \
  assign response.aw_ready = prefix``_awready[i]; \
  assign prefix``_wdata[i] = request.w.data; \
  assign prefix``_wstrb[i] = request.w.strb; \
  assign prefix``_wlast[i] = request.w.last; \
  assign prefix``_wvalid[i] = request.w_valid; \
  assign response.w_ready = prefix``_wready[i]; \
  assign response.b.resp = axi_pkg::resp_e'(prefix``_bresp[i]); \
  assign response.b_valid = prefix``_bvalid[i]; \
  assign prefix``_bready[i] = request.b_ready; \
  assign prefix``_araddr[i] = request.ar.addr; \
  assign prefix``_arlen[i] = request.ar.len; \
  assign prefix``_arvalid[i] = request.ar_valid; \
  assign response.ar_ready = prefix``_arready[i]; \
  assign response.r.data = prefix``_rdata[i]; \
  assign response.r.resp = axi_pkg::resp_e'(prefix``_rresp[i]); \
  assign response.r_valid = prefix``_rvalid[i]; \
  assign prefix``_rready[i] = request.r_ready;

`define AXI3_FROM_FLAT(prefix, i, request, response) \
  assign request.aw.addr = prefix``_awaddr[i]; \
  assign request.aw.len = prefix``_awlen[i]; \
  assign request.aw_valid = prefix``_awvalid[i]; \
  assign prefix``_awready[i] = response.aw_ready; \
  assign request.w.data = prefix``_wdata[i]; \
  assign request.w.strb = prefix``_wstrb[i]; \
  assign request.w.last = prefix``_wlast[i]; \
  assign request.w_valid = prefix``_wvalid[i]; \
  assign prefix``_wready[i] = response.w_ready; \
  assign prefix``_bresp[i] = response.b.resp; \
  assign prefix``_bvalid[i] = response.b_valid; \
  assign request.b_ready = prefix``_bready[i]; \
  assign request.ar.addr = prefix``_araddr[i]; \
  assign request.ar.len = prefix``_arlen[i]; \
  assign request.ar_valid = prefix``_arvalid[i]; \
  assign prefix``_arready[i] = response.ar_ready; \
  assign prefix``_rdata[i] = response.r.data; \
  assign prefix``_rresp[i] = response.r.resp; \
  assign prefix``_rvalid[i] = response.r_valid; \
  assign request.r_ready = prefix``_rready[i];

`define AXI_LITE_SUBORDINATE(prefix, AddressWidth, DataWidth) \
  input  wire  [(DataWidth)/8-1:0]  prefix``_wstrb, \
  `AXI_LITE_SUBORDINATE_OF_WORDS(prefix, AddressWidth, DataWidth)

`define AXI_LITE_SUBORDINATE_OF_WORDS(prefix, AddressWidth, DataWidth) \
  input  wire  [(AddressWidth)-1:0] prefix``_awaddr, \
  input  wire                       prefix``_awvalid, \
  output logic                      prefix``_awready, \
  input  wire  [(DataWidth)-1:0]    prefix``_wdata, \
  input  wire                       prefix``_wvalid, \
  output logic                      prefix``_wready, \
  output logic [1:0]                prefix``_bresp, \
  output logic                      prefix``_bvalid, \
  input  wire                       prefix``_bready, \
  input  wire  [(AddressWidth)-1:0] prefix``_araddr, \
  input  wire                       prefix``_arvalid, \
  output logic                      prefix``_arready, \
  output logic [(DataWidth)-1:0]    prefix``_rdata, \
  output logic [1:0]                prefix``_rresp, \
  output logic                      prefix``_rvalid, \
  input  wire                       prefix``_rready,

`define AXI_LITE_WRITER(prefix, AddressWidth, DataWidth) \
  output logic [(AddressWidth)-1:0] prefix``_awaddr, \
  output logic                      prefix``_awvalid, \
  input  wire                       prefix``_awready, \
  output logic [(DataWidth)-1:0]    prefix``_wdata, \
  output logic [(DataWidth)/8-1:0]  prefix``_wstrb, \
  output logic                      prefix``_wvalid, \
  input  wire                       prefix``_wready, \
  input  wire  [1:0]                prefix``_bresp, \
  input  wire                       prefix``_bvalid, \
  output logic                      prefix``_bready,

`define AXI_LITE_WRITER_TO_FLAT(prefix, request, response) \
  assign prefix``_awaddr = request.aw.addr; \
  assign prefix``_awvalid = request.aw_valid; \
  assign response.aw_ready = prefix``_awready; \
  assign prefix``_wdata = request.w.data; \
  assign prefix``_wstrb = request.w.strb; \
  assign prefix``_wvalid = request.w_valid; \
  assign response.w_ready = prefix``_wready; \
  assign response.b.resp = axi_pkg::resp_e'(prefix``_bresp); \
  assign response.b_valid = prefix``_bvalid; \
  assign prefix``_bready = request.b_ready; \
  assign response.ar_ready = 1'b0; \
  assign response.r = '0; \
  assign response.r_valid = 1'b0;

`define AXI_SUBORDINATE(prefix, AddressWidth, DataWidth, IdWidth) \
  input  wire  [(IdWidth)-1:0] prefix``_awid, \
  input  wire  [7:0]           prefix``_awlen, \
  input  wire  [2:0]           prefix``_awsize, \
  input  wire  [1:0]           prefix``_awburst, \
  input  wire  [3:0]           prefix``_awcache, \
  input  wire  [2:0]           prefix``_awprot, \
  input  wire                  prefix``_wlast, \
  output logic [(IdWidth)-1:0] prefix``_bid, \
  input  wire  [(IdWidth)-1:0] prefix``_arid, \
  input  wire  [7:0]           prefix``_arlen, \
  input  wire  [2:0]           prefix``_arsize, \
  input  wire  [1:0]           prefix``_arburst, \
  input  wire  [3:0]           prefix``_arcache, \
  input  wire  [2:0]           prefix``_arprot, \
  output logic [(IdWidth)-1:0] prefix``_rid, \
  output logic                 prefix``_rlast, \
  `AXI_LITE_SUBORDINATE(prefix, AddressWidth, DataWidth)

`define AXI_LITE_MANAGER(prefix, AddressWidth, DataWidth) \
  output logic [(AddressWidth)-1:0] prefix``_araddr, \
  output logic                      prefix``_arvalid, \
  input  wire                       prefix``_arready, \
  input  wire  [(DataWidth)-1:0]    prefix``_rdata, \
  input  wire  [1:0]                prefix``_rresp, \
  input  wire                       prefix``_rvalid, \
  output logic                      prefix``_rready, \
  `AXI_LITE_WRITER(prefix, AddressWidth, DataWidth)

`define AXI_MANAGER(prefix, AddressWidth, DataWidth, IdWidth) \
  output logic [(IdWidth)-1:0] prefix``_awid, \
  output logic [7:0]           prefix``_awlen, \
  output logic [2:0]           prefix``_awsize, \
  output logic [1:0]           prefix``_awburst, \
  output logic [3:0]           prefix``_awcache, \
  output logic [2:0]           prefix``_awprot, \
  output logic                 prefix``_wlast, \
  input  wire  [(IdWidth)-1:0] prefix``_bid, \
  output logic [(IdWidth)-1:0] prefix``_arid, \
  output logic [7:0]           prefix``_arlen, \
  output logic [2:0]           prefix``_arsize, \
  output logic [1:0]           prefix``_arburst, \
  output logic [3:0]           prefix``_arcache, \
  output logic [2:0]           prefix``_arprot, \
  input  wire  [(IdWidth)-1:0] prefix``_rid, \
  input  wire                  prefix``_rlast, \
  `AXI_LITE_MANAGER(prefix, AddressWidth, DataWidth)

`define AXI3_MANAGER(prefix, n, AddressWidth, DataWidth) \
  output logic [(n)-1:0][(AddressWidth)-1:0]  prefix``_awaddr, \
  output logic [(n)-1:0][3:0]                 prefix``_awlen, \
  output logic [(n)-1:0]                      prefix``_awvalid, \
  input  wire  [(n)-1:0]                      prefix``_awready, \
  output logic [(n)-1:0][(DataWidth)-1:0]     prefix``_wdata, \
  output logic [(n)-1:0][(DataWidth)/8-1:0]   prefix``_wstrb, \
  output logic [(n)-1:0]                      prefix``_wlast, \
  output logic [(n)-1:0]                      prefix``_wvalid, \
  input  wire  [(n)-1:0]                      prefix``_wready, \
  input  wire  [(n)-1:0][1:0]                 prefix``_bresp, \
  input  wire  [(n)-1:0]                      prefix``_bvalid, \
  output logic [(n)-1:0]                      prefix``_bready, \
  output logic [(n)-1:0][(AddressWidth)-1:0]  prefix``_araddr, \
  output logic [(n)-1:0][3:0]                 prefix``_arlen, \
  output logic [(n)-1:0]                      prefix``_arvalid, \
  input  wire  [(n)-1:0]                      prefix``_arready, \
  input  wire  [(n)-1:0][(DataWidth)-1:0]     prefix``_rdata, \
  input  wire  [(n)-1:0][1:0]                 prefix``_rresp, \
  input  wire  [(n)-1:0]                      prefix``_rvalid, \
  output logic [(n)-1:0]                      prefix``_rready,

`define AXIS_RECEIVER(prefix, DataWidth, UserWidth) \
  input  wire                      prefix``_tvalid, \
  output logic                     prefix``_tready, \
  input  wire  [(DataWidth)-1:0]   prefix``_tdata, \
  input  wire  [(DataWidth)/8-1:0] prefix``_tkeep, \
  input  wire                      prefix``_tlast, \
  input  wire  [(UserWidth)-1:0]   prefix``_tuser,

`define AXIS_TRANSMITTER(prefix, DataWidth, UserWidth) \
  output logic                     prefix``_tvalid, \
  input  wire                      prefix``_tready, \
  output logic [(DataWidth)-1:0]   prefix``_tdata, \
  output logic [(DataWidth)/8-1:0] prefix``_tkeep, \
  output logic                     prefix``_tlast, \
  output logic [(UserWidth)-1:0]   prefix``_tuser,

`define AXI3_NETS(prefix, n, AddressWidth, DataWidth) \
  logic [(n)-1:0] prefix``_awvalid, prefix``_awready, prefix``_wlast, prefix``_wvalid, prefix``_wready; \
  logic [(n)-1:0] prefix``_bvalid, prefix``_bready, prefix``_arvalid, prefix``_arready, prefix``_rvalid, prefix``_rready; \
  logic [(n)-1:0][(AddressWidth)-1:0] prefix``_awaddr, prefix``_araddr; \
  logic [(n)-1:0][3:0] prefix``_awlen, prefix``_arlen; \
  logic [(n)-1:0][(DataWidth)-1:0] prefix``_wdata, prefix``_rdata; \
  logic [(n)-1:0][(DataWidth)/8-1:0] prefix``_wstrb; \
  logic [(n)-1:0][1:0] prefix``_bresp, prefix``_rresp;

`define AXI3_PORTS(port, prefix) \
  .port``_awaddr(prefix``_awaddr), \
  .port``_awlen(prefix``_awlen), \
  .port``_awvalid(prefix``_awvalid), \
  .port``_awready(prefix``_awready), \
  .port``_wdata(prefix``_wdata), \
  .port``_wstrb(prefix``_wstrb), \
  .port``_wlast(prefix``_wlast), \
  .port``_wvalid(prefix``_wvalid), \
  .port``_wready(prefix``_wready), \
  .port``_bresp(prefix``_bresp), \
  .port``_bvalid(prefix``_bvalid), \
  .port``_bready(prefix``_bready), \
  .port``_araddr(prefix``_araddr), \
  .port``_arlen(prefix``_arlen), \
  .port``_arvalid(prefix``_arvalid), \
  .port``_arready(prefix``_arready), \
  .port``_rdata(prefix``_rdata), \
  .port``_rresp(prefix``_rresp), \
  .port``_rvalid(prefix``_rvalid), \
  .port``_rready(prefix``_rready)

`define AXI_LITE_PORTS(port, request, response) \
  .port``_awaddr(request.aw.addr), \
  .port``_awvalid(request.aw_valid), \
  .port``_awready(response.aw_ready), \
  .port``_wdata(request.w.data), \
  .port``_wstrb(request.w.strb), \
  .port``_wvalid(request.w_valid), \
  .port``_wready(response.w_ready), \
  .port``_bresp({response.b.resp}), \
  .port``_bvalid(response.b_valid), \
  .port``_bready(request.b_ready), \
  .port``_araddr(request.ar.addr), \
  .port``_arvalid(request.ar_valid), \
  .port``_arready(response.ar_ready), \
  .port``_rdata(response.r.data), \
  .port``_rresp({response.r.resp}), \
  .port``_rvalid(response.r_valid), \
  .port``_rready(request.r_ready)

`define AXI_LITE_WRITER_PORTS(port, request, response) \
  .port``_awaddr(request.aw.addr), \
  .port``_awvalid(request.aw_valid), \
  .port``_awready(response.aw_ready), \
  .port``_wdata(request.w.data), \
  .port``_wstrb(request.w.strb), \
  .port``_wvalid(request.w_valid), \
  .port``_wready(response.w_ready), \
  .port``_bresp({response.b.resp}), \
  .port``_bvalid(response.b_valid), \
  .port``_bready(request.b_ready)

`define AXI_PORTS(port, request, response) \
  .port``_awid(request.aw.id), \
  .port``_awlen(request.aw.len), \
  .port``_awsize(request.aw.size), \
  .port``_awburst({request.aw.burst}), \
  .port``_awcache(request.aw.cache), \
  .port``_awprot(request.aw.prot), \
  .port``_wlast(request.w.last), \
  .port``_bid(response.b.id), \
  .port``_arid(request.ar.id), \
  .port``_arlen(request.ar.len), \
  .port``_arsize(request.ar.size), \
  .port``_arburst({request.ar.burst}), \
  .port``_arcache(request.ar.cache), \
  .port``_arprot(request.ar.prot), \
  .port``_rid(response.r.id), \
  .port``_rlast(response.r.last), \
  `AXI_LITE_PORTS(port, request, response)

`define AXIS_PORTS(port, valid, ready, beat) \
  .port``_tvalid(valid), \
  .port``_tready(ready), \
  .port``_tdata(beat.data), \
  .port``_tkeep(beat.keep), \
  .port``_tlast(beat.last), \
  .port``_tuser(beat.user)

`endif
