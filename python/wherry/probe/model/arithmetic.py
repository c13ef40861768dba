# SPDX-License-Identifier: Apache-2.0
"""Computes published rates and times that follow from specifications and the paper's set-up."""

from __future__ import annotations

from wherry.probe.model.link import Link
from wherry.probe.model.parameters import AXI_BITS, AXI_MHZ, DDR_BITS, DDR_MEGATRANSFERS
from wherry.probe.model.published import Figure, one

ETHERNET_GAP, ETHERNET_FCS = 20, 4
"""ETHERNET_GAP: bytes of preamble, delimiter and gap. ETHERNET_FCS: bytes of the frame check sequence (IEEE 802.3)."""
TCP_SEGMENT, TCP_FRAME = 1448, 1514
"""TCP_SEGMENT: the data bytes of a full frame with TCP time stamps. TCP_FRAME: the bytes of this frame without FCS."""
PACKET, RING = 300, 64
"""The set-up of paper 002: bytes of a test packet, and descriptors of a ring."""


def figures() -> dict[str, Figure]:
    """The computed figures, by the id of the published value."""
    x16 = Link(3, 16).raw()
    lanes = "GT/s, 128b/130b, lanes"
    hbm = one(1024 * 2.0 / 8, "given", "1024 bit at 2 Gbit/s a pin (JEDEC HBM2)")
    packet_ns = PACKET * 8 / 10
    return {
        "ma_link_pcie": one(x16, "given", lanes),
        "ma_link_pcie_theory_62": one(x16, "given", lanes, "the paper rounds 15.75 up"),
        "ma_pcie_gen3_bw_bg": one(x16, "given", lanes, "if 16 lanes are meant"),
        "ma_pcie_lane_bw": one(Link(3, 1).raw(), "given", lanes, "if Gen3 is meant"),
        "bud_t1_pcie_bw": one(Link(4, 16).raw(), "given", lanes),
        "ma_link_ddr": one(DDR_MEGATRANSFERS * DDR_BITS / 8 / 1e3, "given", "DDR4-2400, 64 bit"),
        "ma_link_axi": one(AXI_BITS * AXI_MHZ / 8 / 1e3, "given", "512 bit at 250 MHz"),
        "ma_pci_legacy_bw": one(32 / 8 * 100 / 3, "given", "32 bit at 33.3 MHz"),
        "hb_axi_throughput": one(256 * 250 / 1e3, "given", "256 bit at 250 MHz"),
        "hb_pcie_throughput": one(8 * 8, "given", "8 GT/s, 8 lanes, before 128b/130b"),
        "hb_overrun_jitter": one(RING * packet_ns / 1e3, "given", "64 packets of 300 bytes at 10 Gbit/s"),
        "hb_batch8_theory": one(7 * packet_ns, "given", "7 packets of 300 bytes at 10 Gbit/s"),
        "hb_tcp_link_layer": one(
            9.29 * (TCP_FRAME + ETHERNET_FCS + ETHERNET_GAP) / TCP_SEGMENT, "given",
            "goodput with headers, FCS, preamble and gap", "the paper has 9.99 without saying what it counts",
        ),
        "hb_intel_warning_range": one(8.42 - 7, "given", "first loss less the end of the flat range"),
        "rep_u55c_pcie_bw": one(x16, "given", lanes, "both modes: Gen4 x8 has the same"),
        "rep_hbm2_stack_bw": hbm,
    }  # fmt: skip
