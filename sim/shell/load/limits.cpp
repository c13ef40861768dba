// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/limits.hpp"

#include <array>

namespace wherry::sim::shell::load {
namespace {

constexpr std::array kLimits{
    Limit{"adapter_beats", &Limits::adapter_beats, "beats", "given",
          "packet adapter, each way: the power of two above 1.5 packets of 4096 bytes (OpenNIC, packet_adapter_rx.sv, "
          "packet_adapter_tx.sv: C_FIFO_DEPTH)"},
    Limit{"wire_overhead", &Limits::wire_overhead, "bytes", "given",
          "a frame's FCS, preamble and gap on the wire: 4 + 8 + 12 (IEEE 802.3, 3.1 and 4.4.2)"},
    Limit{"wire_gbits", &Limits::wire_gbits, "Gbit/s", "given", "the 100G CMAC (PG203; thesis, section 5.2.2)"},
    Limit{"queues", &Limits::queues, "", "bound",
          "queues of each kind; QDMA has up to 2048 (PG302, Features). More hide more of the descriptors' latency"},
    Limit{"ring", &Limits::ring, "descriptors", "bound",
          "of each queue; the host fills a place again at once, so no ring is ever the limit of the card"},
    Limit{"c2h_fifo", &Limits::c2h_fifo, "beats", "given",
          "C2H Payload FIFO Depth: 512 units of 64 bytes (PG347, QDMA Performance Optimization, table 1)"},
    Limit{"h2c_buffer", &Limits::h2c_buffer, "bytes", "given",
          "re-ordering buffer of 32 KB (PG302 and PG344, H2C Stream Engine)"},
    Limit{"h2c_requests", &Limits::h2c_requests, "requests", "given",
          "up to 256 requests outstanding (PG302 and PG344, H2C Stream Engine)"},
    Limit{"memory_buffer", &Limits::memory_buffer, "bytes", "given",
          "MM Reorder Buffer Depth: 512 units of 64 bytes (PG347, QDMA Performance Optimization, table 1); taken for "
          "the data of C2H MM, too"},
    Limit{"descriptor_buffer", &Limits::descriptor_buffer, "bytes", "given",
          "256 entries of the datapath's width in each direction (PG344, Descriptor Fetch)"},
    Limit{"prefetch", &Limits::prefetch, "descriptors", "bound",
          "fetched on a packet's coming beyond what it needs (num_pfch; PG302, C2H Stream Engine). 0: off, as in the "
          "thesis (section 5.3.1); AMD recommends 8 (PG302, Performance and Resource Utilization, PFCH_CFG_2)"},
    Limit{"descriptor_cache", &Limits::descriptor_cache, "descriptors", "given",
          "the prefetch module fetches up to 512 (PG302, C2H Stream Engine)"},
    Limit{"completion", &Limits::completion, "bytes", "given",
          "of an entry of the completion ring: 8, 16, 32 or 64 (PG302, Completion Input Packet)"},
    Limit{"interrupts", &Limits::interrupts, "", "bound",
          "1: trigger mode EVERY with status and MSI-X, one outstanding in each queue (PG302, Completion Queue; PG347, "
          "Completion Status/Interrupt Moderation), and a host that answers at once. 0: the host polls the ring"},
    Limit{"memory_order", &Limits::memory_order, "", "bound",
          "C2H MM: one transaction in the engine (0), one of each descriptor (1), all overlap (2). 1 is the least that "
          "keeps Table 5.5's spike; the two others bound it"},
    Limit{"mover_gap", &Limits::mover_gap, "cycles", "given",
          "from TLAST to the next packet's TREADY or TVALID, without realignment (PG022, Latency)"},
    Limit{"mover_buffer", &Limits::mover_buffer, "beats", "bound",
          "between stream and memory on writes: two AXI3 bursts. More of it moves waiting from the adapter to here"},
    Limit{"mover_reads", &Limits::mover_reads, "commands", "bound",
          "under way at a time: as many as sim/hbm's port takes bursts. Six with store and forward (PG022, Store and "
          "Forward), which the thesis has switched off (section 4.1.2)"},
    Limit{"mover_bytes", &Limits::mover_bytes, "bytes", "bound",
          "of reads under way and in the store before the adapter. Above 8 GB/s times the latency it changes nothing"},
    Limit{
        "link_ahead", &Limits::link_ahead, "bytes", "bound",
        "in the hard block before RQ must wait: the half of `flight` that lies there (2.1 KiB at the link's rate) and "
        "two TLPs. Less would cost rate; more is only a longer queue"},
};

}  // namespace

std::span<const Limit> limits() noexcept { return kLimits; }

}  // namespace wherry::sim::shell::load
