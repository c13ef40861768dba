# SPDX-License-Identifier: Apache-2.0
"""Tests the results that tools/synth.py derives from a netlist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import netlist_depth
import pytest
import synth


def cell(kind: str, inputs: dict[str, list[int]], outputs: dict[str, list[int]]) -> dict[str, Any]:
    directions = dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output")
    return {"type": kind, "port_directions": directions, "connections": inputs | outputs}


def test_path_ends_at_registers_and_runs_through_carries_and_lut_ram() -> None:
    cells = {
        "register": cell("FDRE", {"D": [9], "CE": [1]}, {"Q": [2]}),
        "first": cell("LUT2", {"I0": [2], "I1": [1]}, {"O": [3]}),
        "carry": cell("CARRY4", {"S": [3, 2], "DI": [1, 1], "CI": [1]}, {"O": [4, 5], "CO": [6, 7]}),
        "ram": cell("RAM32M16", {"ADDRA": [7], "ADDRH": [9]}, {"DOA": [8], "DOH": [10]}),
        "last": cell("LUT1", {"I0": [8]}, {"O": [9]}),
    }
    assert netlist_depth.longest_path({"cells": cells}) == 4  # first, ram, last, and then the ram again through ADDRH


def test_path_runs_through_a_multiplier() -> None:
    cells = {
        "register": cell("FDRE", {"D": [4], "CE": [1]}, {"Q": [2]}),
        "multiplier": cell("DSP48E2", {"A": [2], "B": [1]}, {"P": [3]}),
        "last": cell("LUT1", {"I0": [3]}, {"O": [4]}),
    }
    assert netlist_depth.longest_path({"cells": cells}) == netlist_depth.DSP_LUTS + 1


def test_combinational_loop_is_refused() -> None:
    cells = {"a": cell("LUT1", {"I0": [2]}, {"O": [3]}), "b": cell("LUT1", {"I0": [3]}, {"O": [2]})}
    with pytest.raises(ValueError, match="loop"):
        netlist_depth.longest_path({"cells": cells})


def test_drift_of_more_than_two_percent_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"name": "cell", "parameters": {"Width": 8}, **dict.fromkeys(synth.COLUMNS, 0), "lut": 100, "ff": 100}
    table = tmp_path / "resources.json"
    table.write_text(json.dumps([row]))
    monkeypatch.setattr(synth, "TABLE", table)
    assert synth.drifts([row | {"lut": 102, "ff": 98}]) == []
    assert synth.drifts([row | {"lut": 103}]) == ["cell {'Width': 8}: LUT was 100, is 103"]
    assert synth.drifts([row | {"bram36": 1}]) == ["cell {'Width': 8}: BRAM36 was 0, is 1"]
    assert synth.drifts([row | {"name": "other"}]) == ["other {'Width': 8}: not in resources.json"]
