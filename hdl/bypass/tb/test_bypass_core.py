# SPDX-License-Identifier: Apache-2.0
"""The joined bypass core with a NIC written from the datasheets: what passes, unchanged, how fast, and what is refused."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_formats import FORMATS
from bypass_rig import Rig
from hdl_tools import ROOT, files
from simulate import simulate

PACKAGES = tuple(ROOT / path for path in files("*_pkg.sv"))
CORES = {"one": {}, "four": {"queue_bits": 2, "rx_bits": 5, "tx_bits": 5}}
NAMES = {"queue_bits": "QueueBits", "rx_bits": "RxRingBits", "tx_bits": "TxRingBits", "pack_bits": "PackBits"}


def rig_of(dut: Any, name: str = "one", seed: int = 1) -> Rig:
    """The core of that name."""
    return Rig(dut, name, seed=seed, **CORES[name])


def sizes(rig: Rig, count: int, most: int = 1514) -> list[int]:
    """Lengths, often about a multiple of 64 or of 2048."""
    draw = rig.bench.random
    found = []
    for _ in range(count):
        near = draw.choice([64, 2048]) * draw.randint(1, 4) + draw.randint(-2, 2)
        found.append(min(most, max(17, draw.choice([near, 60, 64, draw.randint(17, most)]))))
    return found


@cocotb.test()
async def frames_pass_both_ways_unchanged(dut: Any) -> None:
    rig = rig_of(dut)
    await rig.start()
    there = [rig.random_frame(size) for size in sizes(rig, 60)]
    back = [rig.random_frame(size) for size in sizes(rig, 60)]
    for frame in there:
        rig.arrive(frame)
    for frame in back:
        rig.transmit(frame)
    await rig.bench.until(lambda: len(rig.of_queue(0)) == 60 and len(rig.nic.sent[0]) == 60)
    assert rig.of_queue(0) == there
    assert rig.nic.sent[0] == back
    found = await rig.counters()
    assert found["rx_in"] == found["rx_frames"] == found["tx_in"] == found["tx_posted"] == found["tx_done"] == 60
    assert found["rx_bytes"] == sum(len(f) for f in there)
    assert found["tx_bytes"] == sum(len(f) for f in back)
    assert found["tails"] == len(rig.tails.log)
    assert not rig.nic.errors


def test_bypass_core() -> None:
    text = "module top (input wire clk_i, input wire rst_i);\n"
    for name, options in CORES.items():
        assigned = ", ".join(f".{NAMES[key]}({value})" for key, value in options.items())
        text += f"  bypass_core #({assigned}) {name} (.clk_i, .rst_i);\n"
    simulate(__file__, text=text + "endmodule\n", sources=PACKAGES)


assert FORMATS
