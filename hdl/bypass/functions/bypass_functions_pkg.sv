// SPDX-License-Identifier: Apache-2.0

/// Shared by the network functions behind the bypass core: docs/design/bypass-functions.md.
package bypass_functions_pkg;

  // Each module that imports this package uses only a part of it.
  // verilator lint_off UNUSEDPARAM
  // verilator lint_off UNUSEDSIGNAL

  // ---- a frame's first 64 bytes, in wire order

  localparam logic [15:0] EthertypeIpv4 = 16'h0800;  // IEEE 802
  localparam logic [15:0] EthertypeArp = 16'h0806;
  localparam logic [7:0] ProtocolIcmp = 8'd1;  // IANA
  localparam logic [7:0] ProtocolUdp = 8'd17;
  /// Version 4, five words of header (RFC 791, 3.1).
  localparam logic [7:0] Ipv4NoOptions = 8'h45;
  /// Ethernet as hardware, IPv4 as protocol, their address lengths, and the operation "request" (RFC 826).
  localparam logic [63:0] ArpRequest = 64'h0001_0800_06_04_0001;
  localparam logic [15:0] ArpReply = 16'h0002;
  /// Type and code (RFC 792).
  localparam logic [15:0] IcmpEchoRequest = 16'h0800;

  // Offsets of the fields.
  localparam int unsigned AtSource = 6;
  localparam int unsigned AtEthertype = 12;
  localparam int unsigned AtIp = 14;  // or ARP
  localparam int unsigned AtIpLength = 16;
  localparam int unsigned AtIpFragment = 20;
  localparam int unsigned AtIpProtocol = 23;
  localparam int unsigned AtIpSource = 26;
  localparam int unsigned AtIpDestination = 30;
  localparam int unsigned AtPayload = 34;  // UDP or ICMP
  localparam int unsigned AtIcmpChecksum = 36;
  localparam int unsigned AtArpOperation = 20;
  localparam int unsigned AtArpSender = 22;
  localparam int unsigned AtArpSenderIp = 28;
  localparam int unsigned AtArpTarget = 32;
  localparam int unsigned AtArpTargetIp = 38;
  localparam int unsigned ArpEnd = 42;

  /// Numbers of several bytes are in wire order: the first byte is the most significant one.
  function automatic logic [15:0] word_at(logic [511:0] data, int unsigned at);
    return {data[8*at+:8], data[8*(at+1)+:8]};
  endfunction
  function automatic logic [31:0] ip_at(logic [511:0] data, int unsigned at);
    return {word_at(data, at), word_at(data, at + 2)};
  endfunction
  function automatic logic [47:0] mac_at(logic [511:0] data, int unsigned at);
    return {word_at(data, at), ip_at(data, at + 2)};
  endfunction
  /// The inverse: a number as it lies in a beat.
  function automatic logic [15:0] word_of(logic [15:0] number);
    return {number[7:0], number[15:8]};
  endfunction
  function automatic logic [31:0] ip_of(logic [31:0] number);
    return {word_of(number[15:0]), word_of(number[31:16])};
  endfunction
  function automatic logic [47:0] mac_of(logic [47:0] number);
    return {ip_of(number[31:0]), word_of(number[47:32])};
  endfunction

  // ---- registers behind one port of 64 KiB

  localparam axi_pkg::region_t CoreRegion = '{base: 64'h0, size: 64'h8000};
  localparam axi_pkg::region_t FunctionsRegion = '{base: 64'h8000, size: 64'h8000};
  localparam axi_pkg::region_t FunctionsBesideKvRegion = '{base: 64'h8000, size: 64'h4000};
  localparam axi_pkg::region_t KvRegion = '{base: 64'hC000, size: 64'h4000};

  // ---- settings, named as their registers

  /// The destination of a stream frame.
  typedef enum logic [1:0] {
    ToNobody,
    ToEcho,
    ToChecker,
    ToOutside
  } target_e;

  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
    logic        arp;
    logic        icmp;
    logic        udp;
    logic        udp_any;
    logic        reflect;
    logic [15:0] udp_port;
  } echo_settings_t;

  localparam int unsigned MaxRules = 8;

  typedef struct packed {
    logic                drop_default;
    logic [MaxRules-1:0] enable;
    logic [MaxRules-1:0] drop;
  } filter_settings_t;

  typedef struct packed {
    logic              enable;
    logic [7:0]        pair;
    logic [13:0]       bytes;
    logic [31:0]       interval;
    logic [31:0]       count;
    logic [15:0]       run;
    logic [4:0]        shift;
    logic [10:0][31:0] header;
  } generator_settings_t;

  typedef struct packed {
    target_e             stream;
    logic                in_place;   // to echo
    echo_settings_t      echo;
    filter_settings_t    filter;
    generator_settings_t generator;
  } functions_settings_t;

  // ---- the generator's frames: 42 bytes of any header, the frame's identification, and a pattern up to the end

  localparam int unsigned AtRun = 42;
  localparam int unsigned AtNumber = 44;
  localparam int unsigned AtStamp = 48;
  localparam int unsigned AtPattern = 52;
  localparam int unsigned LeastGenerated = 60;

  /// Bytes 4i to 4i + 3 of the pattern, with the first one in the lowest bits.
  function automatic logic [31:0] pattern(logic [31:0] number, logic [11:0] i);
    return number ^ {4'd0, i, 4'd0, i};
  endfunction

  // ---- the checker's counters, named as their registers and in the same order

  localparam int unsigned LatencyBins = 512;

  typedef struct packed {
    logic [63:0] latency_sum;
    logic [31:0] latency_most;
    logic [31:0] latency_least;
    logic [31:0] wrong;
    logic [31:0] duplicates;
    logic [31:0] late;
    logic [31:0] skipped;
    logic [31:0] foreign;
    logic [31:0] checked;
  } checked_t;

  /// The counters of the checker and of the generator.
  typedef struct packed {
    checked_t    of_checker;
    logic [31:0] behind;
    logic [31:0] generated;
  } check_counts_t;

  /// Reads a counter of the histogram; the value follows a cycle later.
  typedef struct packed {
    logic       read;
    logic [8:0] bin;
  } bin_read_t;

  // ---- the filter and the file of registers

  /// To the filter: build the table again; another block reads the file (taken); the word asked for a cycle ago.
  typedef struct packed {
    logic        build;
    logic        taken;
    logic [31:0] word;
  } rules_given_t;
  /// From the filter: it is building; it needs this word: the first 128 are filter_match, the others filter_mask.
  typedef struct packed {
    logic       building;
    logic [7:0] word;
  } rules_asked_t;

  // ---- a frame on its way

  /// The destination of a frame, the same for all its beats.
  typedef struct packed {
    logic    place;   // this is the first beat of a frame in place: a verdict is asked for, not the frame
    logic    look;    // echo looks at it, rather than hand it on
    logic    drop;    // the filter says so; of a frame in place
    target_e target;  // of a frame that is not in place
  } way_t;

  /// What echo did with a frame, in the order of the counters.
  typedef enum logic [2:0] {
    AnsweredArp,
    AnsweredIcmp,
    EchoedUdp,
    EchoedFragment,
    Reflected,
    NotOurs,
    Malformed,
    AsItIs
  } echo_e;

  /// Events of frames: judged by echo, and how; judged by the filter, and by which rule (MaxRules: none); discarded.
  typedef struct packed {
    logic       echo;
    echo_e      echo_kind;
    logic       filter;
    logic [3:0] filter_rule;
    logic       discarded;
  } function_events_t;

  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNUSEDPARAM

endpackage
