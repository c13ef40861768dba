# SPDX-License-Identifier: Apache-2.0
"""Signals by name for cells whose ports are packed structs, so that a bench drives and reads fields instead of bits.

A wrapper contains the cell as the instance `dut`, a net for each named field, and the structs between them. Ports that
are not structs stay open, and the bench drives them at `dut`. Scope finds both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from simulate import KV_PACKAGES, ROOT

# For each port: its type, and the field of each net. The cell drives ports that end with _o or begin with m_.
Bundles = Mapping[str, tuple[str, Mapping[str, str]]]

PACKAGES = " ".join(f"import {path.stem}::*;" for path in KV_PACKAGES if "kv" in path.stem)


def config(**changed: int) -> str:
    """Returns a kv_config_t: kv_core_pkg's DefaultConfig with some fields changed."""
    text = (ROOT / "hdl" / "kv" / "kv_core_pkg.sv").read_text()
    default = re.search(r"DefaultConfig = '\{(.*?)\};", text, re.DOTALL)
    assert default
    fields = dict(re.findall(r"(\w+): ([\w']+)", default[1]))
    assert set(changed) <= set(fields), changed
    fields |= {name: f"1'b{value}" if fields[name].startswith("1'b") else str(value) for name, value in changed.items()}
    return "kv_core_pkg::kv_config_t'{" + ", ".join(f"{name}: {value}" for name, value in fields.items()) + "}"


def nets(bundles: Bundles) -> str:
    """Returns the nets, and a struct `PORT_bundle` for each port. Input fields without a net are 0."""
    lines = []
    for port, (kind, fields) in bundles.items():
        bundle = f"{port}_bundle"
        lines.append(f"  {kind} {bundle};")
        lines += [f"  logic [$bits({bundle}.{field})-1:0] {net};" for net, field in fields.items()]
        if port.endswith("_o") or port.startswith("m_"):
            lines += [f"  assign {net} = {bundle}.{field};" for net, field in fields.items()]
        else:
            lines.append(f"  always_comb begin\n    {bundle} = '0;")
            lines += [
                f"    {{{bundle}.{field}}} = {net};" for net, field in fields.items()
            ]  # braces: it may be an enum
            lines.append("  end")
    return "\n".join(lines) + "\n"


def wrapper(
    name: str, cell: str, bundles: Bundles, *, parameters: str = "", declared: str = "", connected: str = ""
) -> str:
    """Returns the module `name` around a cell. `declared` comes before the nets, and `connected` is added to the
    ports."""
    ports = [".clk_i, .rst_i", *(f".{port}({port}_bundle)" for port in bundles), *([connected] if connected else [])]
    return (
        f"module {name} (input wire clk_i, input wire rst_i);\n  {PACKAGES}\n{declared}{nets(bundles)}"
        f"  {cell} #({parameters}) dut ({', '.join(ports)});\nendmodule\n"
    )


class Scope:
    """A wrapper as the bench sees it: its nets, and the ports of the cell inside it."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._handle, name)
        except AttributeError:
            return getattr(self._handle.dut, name)
