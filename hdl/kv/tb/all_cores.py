# SPDX-License-Identifier: Apache-2.0
"""Runs the core's tests on every configuration, on random initial states, and on Yosys' netlist: `make all-cores`.

It takes a quarter of an hour on two cores. `make test` runs one configuration, with all registers at 0 before reset.
"""

from __future__ import annotations

from pathlib import Path

import hdl_tools
import pytest
from kv_core_rig import MORE, TOP
from simulate import KV_PACKAGES, ROOT, simulate

TESTS = str(Path(__file__).with_name("test_kv_core.py"))
UNTIMED = tuple(module for module in MORE if module != "kv_core_times")
"""This module asserts latencies for two channels and whole frames, so it runs only on that configuration."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("whole", [0, 1])
def test_form(whole: int, channels: int) -> None:
    """Tests the core with these values of WholeFrames and Channels."""
    top = TOP.replace("kv_core #(", f"kv_core #(.WholeFrames({whole}), .Channels({channels}), ")
    more = MORE if (whole, channels) == (1, 2) else UNTIMED
    name = f"all_cores_{whole}_{channels}"
    simulate(TESTS, text=top, sources=KV_PACKAGES, more=more, name=name, seed=1 + 4 * whole + channels)


@pytest.mark.timeout(3600)
def test_netlist() -> None:
    """Tests the netlist: logic as 6-input tables, as Yosys maps it for the card. Memories are unchanged."""
    netlist = ROOT / "build" / "hdl" / "all_cores_netlist" / "kv_core_netlist.v"
    netlist.parent.mkdir(parents=True, exist_ok=True)
    script = f"{hdl_tools.read('kv_core', {'LineCacheBits': 4, 'HostBeats': 256})}; synth -flatten -run begin:fine; "
    script += "opt -fast -full; techmap; opt -fast; abc -lut 6; opt -fast; clean; check -assert; rename -top kv_core; "
    script += f"write_verilog -noattr {netlist.relative_to(ROOT)}"
    result = hdl_tools.yosys(script, timeout=3000)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    # Yosys writes a LUT as a wide constant that is shifted. Only one bit of the result is used.
    netlist.write_text("/* verilator lint_off WIDTH */\n" + netlist.read_text())
    top = "module top (input wire clk_i, input wire rst_i);\n  kv_core dut (.clk_i, .rst_i);\nendmodule\n"
    simulate(TESTS, text=top, sources=(netlist,), more=MORE, name="all_cores_netlist")
