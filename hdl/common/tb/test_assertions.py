# SPDX-License-Identifier: Apache-2.0
"""Violates a requirement of a cell in simulation and expects the cell's assertion to fail the test."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from bench import Bench
from simulate import Instances, simulate

INSTANCES: Instances = {"demux": ("stream_demux", {"Outputs": 3}), "credits": ("credit_counter", {})}


@cocotb.test()
async def change_the_output_while_a_beat_waits(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    valid, select = bench.pin(dut.demux, "s_valid"), bench.pin(dut.demux, "select_i")
    valid.set(1), select.set(0)
    await bench.cycle(2)
    select.set(1)
    await bench.cycle(2)


def test_a_broken_requirement_fails_with_its_sentence() -> None:
    with pytest.raises(pytest.fail.Exception, match="select_i changed while a beat waited"):
        simulate(__file__, INSTANCES)
