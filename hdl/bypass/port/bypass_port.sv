// SPDX-License-Identifier: Apache-2.0
`default_nettype none
`include "assertions.svh"

/// The NIC's port to the window: it passes on written and read beats together with their region.
///
/// Behaviour: a written beat leaves with its region in the cycle in which it arrives. A read beat leaves with its
/// region and the last byte requested. Its data follow a cycle later: descriptors (expanded_i), packed buffer
/// (packed_i), slots (slot_i); heads read as 0. Beats outside all regions, and writes to the packed buffer, get SLVERR.
/// Latency: W to write_o 0; AR to read_o 1, to R 3; events_o a cycle later. A beat a cycle each way.
/// Paths: W to write_o.
/// Reset: discards accesses in progress.
/// Requirements: none; every access that AXI4 allows is allowed.
module bypass_port
  import bypass_pkg::*;
#(
    parameter bypass_config_t Config = DefaultConfig
) (
    input wire clk_i,
    input wire rst_i,

    input  wire window_req_t s_axi_req,
    output window_resp_t     s_axi_resp,

    /// Receive descriptors are 32 bytes long.
    input wire rx_32_bytes_i,

    output window_write_t write_o,
    output window_read_t  read_o,
    /// A cycle after read_o.
    input  wire data_t    expanded_i,
    input  wire data_t    packed_i,
    input  wire data_t    slot_i,

    output events_t events_o
);

  logic write, read, refused;
  offset_t write_offset, read_offset;
  data_t write_data, data;
  strobe_t strobe;
  logic [2:0] size;
  region_e region_q;

  axi_port #(
      .axi_req_t(window_req_t),
      .axi_resp_t(window_resp_t),
      .AddressWidth(WindowBits),
      .ReadLatency(1)
  ) i_port (
      .*,
      .write_o(write),
      .write_address_o(write_offset),
      .write_data_o(write_data),
      .write_strobe_o(strobe),
      .write_error_i(refused),
      .read_o(read),
      .read_address_o(read_offset),
      .read_size_o(size),
      .read_data_i(data),
      .read_error_i(region_q == NoRegion)
  );

  assign write_o = '{
          valid: write,
          offset: write_offset,
          region: region_of(write_offset, rx_32_bytes_i, Config),
          strobe: strobe,
          data: write_data
      };
  assign refused = !takes_writes(write_offset, rx_32_bytes_i, Config);

  // A beat ends according to its size: QEMU's NICs read the last three bytes of a frame as two and one.
  logic [5:0] beyond;
  assign beyond = ~(6'b111111 << size);
  assign read_o = '{
          valid: read,
          offset: read_offset,
          region: region_of(read_offset, rx_32_bytes_i, Config),
          last_byte: read_offset[5:0] | beyond
      };

  // The data enter the response queue directly: a register would delay each descriptor and payload by a cycle.
  always_comb begin
    case (region_q)
      RxRing, TxRing: data = expanded_i;
      Pack: data = packed_i;
      Slots: data = slot_i;
      default: data = '0;
    endcase
  end
  logic read_q, refused_q;
  always_ff @(posedge clk_i) begin
    region_q  <= read_o.region;
    read_q    <= read;
    refused_q <= write && refused;
  end
  always_comb begin
    events_o               = '0;
    events_o.outside_write = refused_q;
    events_o.outside_read  = read_q && region_q == NoRegion;
  end

  `ASSERT(refuses_by_region, !write || refused == (write_o.region == NoRegion || write_o.region == Pack),
          "what is refused is not what lies there")

endmodule
`default_nettype wire
