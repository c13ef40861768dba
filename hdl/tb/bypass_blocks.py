# SPDX-License-Identifier: Apache-2.0
"""Tests the blocks of the bypass core one by one, with some of their parameters, in one simulation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from bench import Bench
from cocotb.handle import Immediate
from hdl_tools import ROOT, files
from packed_structs import Wires

PACKAGE = ROOT / "hdl" / "bypass" / "bypass_pkg.sv"
PACKAGES = tuple(ROOT / path for path in files("*_pkg.sv"))
BEATS = 64  # bytes of a line
SLOT = 2048
PACES = ((0.0, 0.0), (0.5, 0.0), (0.0, 0.6), (0.4, 0.4))  # idle, stall


@dataclass(frozen=True)
class Config:
    """The build parameters of a core (bypass_config_t), as powers of two."""

    queue_bits: int = 0
    rx_bits: int = 8
    tx_bits: int = 9
    pack_bits: int = 9

    @property
    def queues(self) -> int:
        """Returns the number of queue pairs."""
        return 1 << self.queue_bits

    @property
    def text(self) -> str:
        """Returns the struct as a parameter."""
        fields = ", ".join(f"{name}: {value}" for name, value in vars(self).items())
        return f"bypass_pkg::bypass_config_t'{{{fields}}}"

    def slot_line(self, queue: int, slot: int) -> int:
        """Returns the line (offset / 64) in the window at which the first copy of a slot begins
        (docs/design/bypass-core.md)."""
        return (0x400000 + queue * (1 << (self.rx_bits + 12)) + slot * SLOT) >> 6

    def pack_line(self, line: int) -> int:
        """Returns the line in the window of a line of the packed buffer."""
        return (0x280000 >> 6) + line


ONE, FOUR = Config(), Config(2, 4, 3, 9)
CONFIGURED = {
    "expand": "bypass_expand",
    "frames": "bypass_rx_frames",
    "reader": "bypass_rx_reader",
    "slots": "bypass_slots",
    "post": "bypass_post",
    "input": "bypass_tx_input",
    "watch": "bypass_watch",
    "verdicts": "bypass_verdicts",
    "registers": "bypass_registers",
}
INSTANCES: dict[str, tuple[str, dict[str, Any]]] = {
    "bell_small": ("bypass_doorbell", {"Bits": 4}),
    "bell_large": ("bypass_doorbell", {"Bits": 9}),
    "tails_one": ("bypass_tails", {"Queues": 1}),
    "tails_four": ("bypass_tails", {"Queues": 4}),
    "decode": ("bypass_decode", {}),
    "ring_small": ("bypass_rx_ring", {"Bits": 4, "Queue": 3}),
    "ring_large": ("bypass_rx_ring", {"Bits": 8}),
    "tx_ring_small": ("bypass_tx_ring", {"Bits": 3, "Queue": 2}),
    "tx_ring_large": ("bypass_tx_ring", {"Bits": 9}),
    **{f"{name}_one": (cell, {"Config": ONE.text}) for name, cell in CONFIGURED.items()},
    **{f"{name}_four": (cell, {"Config": FOUR.text}) for name, cell in CONFIGURED.items()},
}
CONFIGS = {"one": ONE, "four": FOUR}


def _is_input(port: str) -> bool:
    if port.startswith("m_"):
        return port.endswith(("_ready", "_resp"))
    return port.endswith("_i") if not port.startswith("s_") else not port.endswith(("_ready", "_resp"))


def quiet(dut: Any) -> None:
    """Clears the requests of all instances, and the state that an earlier test left."""
    for name in INSTANCES:
        scope = getattr(dut, name)
        for port in PORTS[name]:
            getattr(scope, port).value = Immediate(0)


def _inputs(cell: str) -> list[str]:
    """Returns the cell's inputs, except clock and reset."""
    text = next(ROOT / path for path in files(f"{cell}.sv")).read_text()
    text = re.sub(r"//.*", "", text)
    header = text[text.index("\nmodule ") : text.index("\n);")] + ","
    found = re.findall(r"\binput\s+wire\b[^,]*?(\w+)\s*,", header)
    assert all(_is_input(port) for port in found), found
    return [port for port in found if port not in ("clk_i", "rst_i")]


PORTS = {name: _inputs(cell) for name, (cell, _) in INSTANCES.items()}


class Block:
    """A bench for one of the instances. It is an agent; subclasses implement its methods."""

    def __init__(self, dut: Any, name: str, seed: int = 1) -> None:
        quiet(dut)
        self.bench = Bench(dut, seed)
        self.random = self.bench.random
        self.wires = Wires(self.bench, getattr(dut, name), PACKAGE)
        self.pin, self.struct = self.wires.pin, self.wires.struct
        self.source, self.sink = self.wires.source, self.wires.sink
        self.config = CONFIGS.get(name.rsplit("_", 1)[-1], ONE)
        self.bench.agents.append(self)

    def drive(self) -> None:
        """Sets inputs. Outputs that come from registers can be read already."""

    def sample(self) -> None:
        """Compares outputs with the expected ones."""

    def reset(self) -> None:
        """Forgets transfers in flight."""

    def chance(self, share: float) -> bool:
        """Returns true with probability `share`."""
        return self.random.random() < share
