# SPDX-License-Identifier: Apache-2.0
"""The whole control part of the DMA engine. The modules dma_control_* have the tests."""

from __future__ import annotations

from typing import Any

import cocotb
from dma_host import DmaHost
from hdl_tools import ROOT, files
from simulate import simulate

MORE = ("dma_control_paths", "dma_control_ends", "dma_control_rates")
INSTANCES: dict[str, tuple[str, dict[str, int]]] = {
    "one": ("dma_control", {"Channels": 1}),
    "four": ("dma_control", {"Channels": 4}),
}


@cocotb.test()
async def registers_read_as_documented_after_a_reset(dut: Any) -> None:
    """Compares all registers with the generated table; then written values are read back."""
    host = DmaHost(dut, "four")
    await host.bench.reset()
    for name, register in host.registers.items():
        for index in {0, register.count - 1}:
            expected = register.reset
            if name == "capability":
                expected = 4 | 7 << 4
            elif name == "function_state":
                expected = 3 | host.max_read << 4
            elif name == "ring_state":
                expected = 2  # idle
            assert await host.value(name, index) == expected, (name, index)
    for name, register in host.registers.items():
        if register.access != "rw" or name == "ring_control":
            continue
        kept = sum(((1 << f.bits) - 1) << f.low for f in register.fields.values()) or 0xFFFFFFFF
        kept = 0xFF if name in ("status_pace", "read_reserve") else kept
        for index in range(register.count):
            value = host.random.getrandbits(32)
            await host.write(name, value, index)
            assert await host.value(name, index) == value & kept, name


def test_dma_control() -> None:
    simulate(__file__, INSTANCES, sources=tuple(ROOT / path for path in files("*_pkg.sv")), more=MORE)
