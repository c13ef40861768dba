# SPDX-License-Identifier: Apache-2.0
"""The longest path of a netlist that Yosys mapped to Xilinx cells, in LUTs.

Yosys' own `ltp` treats the vendor's flip-flops as logic, and so finds loops. Here a path begins and ends at registers,
block RAM and ports. It counts 1 for a LUT, and 1 for LUT RAM that is read without a clock. A DSP block without its own
registers counts 4, because Yosys does not pack registers into it on this family. Carry chains and wide multiplexers
count 0, because they take a fraction of the delay of a LUT with its wiring.
"""

import re
from collections import defaultdict
from typing import Any

Bit = int | str
# Output bit to (LUTs of this cell, input bits).
Logic = dict[Bit, tuple[int, list[Bit]]]

MULTIPLEXER = re.compile(r"MUXF[789]$")
LUT = re.compile(r"LUT[1-6]$|INV$")
LUT_RAM_WIDE = re.compile(r"RAM\d+M\d*$")
# Chosen value for a multiplication in one cycle.
DSP_LUTS = 4
LUT_RAM = re.compile(r"RAM\d+X\d+[SD]")


def _inputs(cell: dict[str, Any], *prefixes: str) -> list[Bit]:
    ports = cell["connections"]
    named = [port for port in ports if cell["port_directions"][port] == "input" and port.startswith(prefixes)]
    return [bit for port in named for bit in ports[port]]


def _logic_of(cell: dict[str, Any]) -> Logic:
    kind, ports = cell["type"], cell["connections"]
    outputs = [port for port, direction in cell["port_directions"].items() if direction == "output"]
    found: Logic = {}
    for port in outputs:
        for i, bit in enumerate(ports[port]):
            if LUT.match(kind):
                found[bit] = (1, _inputs(cell, ""))
            elif MULTIPLEXER.match(kind):
                found[bit] = (0, _inputs(cell, ""))
            elif kind in ("CARRY4", "CARRY8"):
                below = ports["S"][: i + 1] + ports["DI"][: i + 1] + _inputs(cell, "C")
                found[bit] = (0, below)
            elif kind == "DSP48E2":
                found[bit] = (DSP_LUTS, _inputs(cell, ""))
            elif LUT_RAM_WIDE.match(kind):
                found[bit] = (1, _inputs(cell, f"ADDR{port[-1]}"))
            elif LUT_RAM.match(kind):
                found[bit] = (1, _inputs(cell, "DPR") if port == "DPO" else _inputs(cell, "A"))
    return found


def longest_path(module: dict[str, Any]) -> int:
    """The number of LUTs on the longest path of a module in Yosys' JSON."""
    logic: Logic = {}
    for cell in module["cells"].values():
        logic |= _logic_of(cell)
    users: dict[Bit, list[Bit]] = defaultdict(list)
    waiting: dict[Bit, int] = {}
    depth: dict[Bit, int] = defaultdict(int)
    for output, (_, inputs) in logic.items():
        sources = [bit for bit in inputs if bit in logic]
        waiting[output] = len(sources)
        for bit in sources:
            users[bit].append(output)
    ready = [bit for bit, count in waiting.items() if not count]
    done = 0
    while ready:
        bit = ready.pop()
        done += 1
        cost, inputs = logic[bit]
        depth[bit] = cost + max((depth[i] for i in inputs), default=0)
        for user in users[bit]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    if done != len(logic):
        raise ValueError("a combinational loop")
    return max(depth.values(), default=0)
