# SPDX-License-Identifier: Apache-2.0
"""Each block of the bypass core alone, in one simulation. The modules bypass_block_* have the tests."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_blocks import INSTANCES, PACKAGE, PACKAGES
from packed_structs import layouts
from simulate import simulate

MORE = (
    "bypass_block_doorbell",
    "bypass_block_descriptors",
    "bypass_block_rings",
    "bypass_block_receive",
    "bypass_block_transmit",
    "bypass_block_watch",
    "bypass_block_registers",
)


@cocotb.test()
async def structs_have_the_widths_of_their_ports(dut: Any) -> None:
    """The structs that the benches use are as wide as their ports."""
    found = layouts(PACKAGE)
    for port, kind in (("settings_i", "settings_t"), ("read_i", "window_read_t")):
        assert len(getattr(dut.expand_one, port)) == found[kind][0]
    assert len(dut.watch_one.s_payload) == found["post_t"][0]
    assert len(dut.registers_one.events_i) == found["events_t"][0]
    assert len(dut.decode.write_i) == found["window_write_t"][0]


def test_bypass_blocks() -> None:
    simulate(__file__, INSTANCES, sources=PACKAGES, more=MORE)
