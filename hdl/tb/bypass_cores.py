# SPDX-License-Identifier: Apache-2.0
"""The cores of the bench, and the modules with tests of them."""

from __future__ import annotations

from typing import Any

from bypass_rig import Rig
from hdl_tools import ROOT, files

PACKAGES = tuple(ROOT / path for path in files("*_pkg.sv"))

CORES = {"one": {}, "four": {"queue_bits": 2, "rx_bits": 5, "tx_bits": 5}}
CORNERS = {
    "sixteen": {"queue_bits": 4, "rx_bits": 4, "tx_bits": 3},
    "big": {"rx_bits": 10, "tx_bits": 12, "pack_bits": 11},
}
DEEPER = ("bypass_watch.sweeps_q",)
NAMES = {"queue_bits": "QueueBits", "rx_bits": "RxRingBits", "tx_bits": "TxRingBits", "pack_bits": "PackBits"}
MORE = ("bypass_core_times", "bypass_core_in_place", "bypass_core_refuses", "bypass_core_stops")


def rig_of(dut: Any, name: str = "one", seed: int = 1) -> Rig:
    """Returns a rig for the core of that name."""
    return Rig(dut, name, seed=seed, **(CORES | CORNERS)[name])


def top_of(cores: dict[str, dict[str, int]]) -> str:
    """Returns a top with these cores."""
    text = "module top (input wire clk_i, input wire rst_i);\n"
    for name, options in cores.items():
        assigned = ", ".join(f".{NAMES[key]}({value})" for key, value in options.items())
        text += f"  bypass_core #({assigned}) {name} (.clk_i, .rst_i);\n"
    return text + "endmodule\n"
