# SPDX-License-Identifier: Apache-2.0
"""Wraps cells whose ports are bundles (hdl/common/axi.svh) in modules with flat ports, so that a bench drives signals
by name.

An AXI4 bundle becomes the ports prefix_awid, prefix_awaddr, ... of a module that also contains an axi_monitor. A stream
becomes prefix_valid, prefix_ready, prefix_data, prefix_keep, prefix_last and prefix_user.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import hdl_tools
from simulate import COMMON, ROOT, simulate

PACKAGE = COMMON / "axi_pkg.sv"

# For each channel: signals, with a width that is a number or the name of a field of Axi. AW and AR are alike.
ADDRESS = [("id", "id"), ("addr", "address"), ("len", 8), ("size", 3), ("burst", 2), ("cache", 4), ("prot", 3)]
AXI = {
    "aw": ADDRESS,
    "w": [("data", "data"), ("strb", "strobes"), ("last", 1)],
    "b": [("id", "id"), ("resp", 2)],
    "ar": ADDRESS,
    "r": [("id", "id"), ("data", "data"), ("resp", 2), ("last", 1)],
}
AXI_LITE = {
    "aw": [("addr", "address")],
    "w": [("data", "data"), ("strb", "strobes")],
    "b": [("resp", 2)],
    "ar": [("addr", "address")],
    "r": [("data", "data"), ("resp", 2)],
}


@dataclass(frozen=True)
class Axi:
    """An AXI4 port of a cell, or with id = 0 an AXI4-Lite port. With `count`, several ports side by side, called
    s0_axi, s1_axi and so on."""

    port: str = "s_axi"
    address: int = 64
    data: int = 512
    id: int = 4
    count: int = 0
    types: str = "axi"
    outstanding: int = 64
    boundary: int = 1

    @property
    def strobes(self) -> int:
        """Returns the number of byte lanes."""
        return self.data // 8

    @property
    def channels(self) -> dict[str, list[tuple[str, str | int]]]:
        """Returns the signals of each channel, without valid and ready."""
        found = AXI if self.id else AXI_LITE
        return {name: list(signals) for name, signals in found.items()}

    @property
    def prefixes(self) -> list[str]:
        """Returns the prefixes of the flat ports."""
        role, _, rest = self.port.partition("_")
        return [f"{role}{i}_{rest}" for i in range(self.count)] if self.count else [self.port]

    def ports(self) -> list[str]:
        """Returns the declarations of the flat ports."""
        found = []
        for prefix in self.prefixes:
            for channel, signals in self.channels.items():
                forward = (channel in ("aw", "w", "ar")) == self.port.startswith("s")
                payload, ready = ("input wire", "output logic") if forward else ("output logic", "input wire")
                for signal, width in signals:
                    bits = width if isinstance(width, int) else getattr(self, width)
                    found.append(f"{payload} [{bits - 1}:0] {prefix}_{channel}{signal}")
                found += [f"{payload} {prefix}_{channel}valid", f"{ready} {prefix}_{channel}ready"]
        return found

    def body(self) -> list[str]:
        """Returns the bundle, its connections to the flat ports, and its monitor."""
        kind = "AXI" if self.id else "AXI_LITE"
        way = f"{kind}_FROM_FLAT" if self.port.startswith("s") else f"{kind}_TO_FLAT"
        widths = f"{self.address}, {self.data}" + (f", {self.id}" if self.id else "")
        array = f"[{self.count - 1}:0] " if self.count else ""
        lines = [f"  `{kind}_TYPES({self.port}, {widths})"]
        lines += [f"  {self.port}_{half}_t {array}{self.port}_{half};" for half in ("req", "resp")]
        for i, prefix in enumerate(self.prefixes):
            index = f"[{i}]" if self.count else ""
            lines.append(f"  `{way}({prefix}, {self.port}_req{index}, {self.port}_resp{index})")
            if self.id:
                options = f".Outstanding({self.outstanding}), .Boundary({self.boundary})"
                types = f".axi_req_t({self.port}_req_t), .axi_resp_t({self.port}_resp_t)"
                lines.append(f"  axi_monitor #({types}, {options}) {prefix}_monitor (.clk_i, .rst_i,")
                lines.append(f"    .axi_req({self.port}_req{index}), .axi_resp({self.port}_resp{index}));")
        return lines

    def parameters(self) -> dict[str, str]:
        """Returns the type parameters of the cell."""
        return {f"{self.types}_{half}_t": f"{self.port}_{half}_t" for half in ("req", "resp")}


@dataclass(frozen=True)
class Axis:
    """A stream whose payload is a bundle. `types` is the cell's type parameter, or empty if another bundle sets it."""

    port: str = "s"
    data: int = 512
    user: int = 1
    types: str = "axis"

    def ports(self) -> list[str]:
        """Returns the declarations of the flat ports."""
        forward = self.port.startswith("s")
        payload, ready = ("input wire", "output logic") if forward else ("output logic", "input wire")
        widths = {"data": self.data, "keep": self.data // 8, "last": 1, "user": self.user}
        found = [f"{payload} [{width - 1}:0] {self.port}_{name}" for name, width in widths.items()]
        return [*found, f"{payload} {self.port}_valid", f"{ready} {self.port}_ready"]

    def body(self) -> list[str]:
        """Returns the bundle and its connections to the flat ports."""
        lines = [f"  `AXIS_TYPE({self.port}, {self.data}, {self.user})", f"  {self.port}_t {self.port}_payload;"]
        for name in ("data", "keep", "last", "user"):
            flat, bundle = f"{self.port}_{name}", f"{self.port}_payload.{name}"
            lines.append(
                f"  assign {bundle} = {flat};" if self.port.startswith("s") else f"  assign {flat} = {bundle};"
            )
        return lines

    def parameters(self) -> dict[str, str]:
        """Returns the type parameter of the cell."""
        return {f"{self.types}_t": f"{self.port}_t"} if self.types else {}


@dataclass(frozen=True)
class Wrapped:
    """An instance of a cell, with its bundles."""

    cell: str
    bundles: list[Axi | Axis]
    parameters: dict[str, int | str] = field(default_factory=dict)

    def plain_ports(self) -> list[str]:
        """Returns the cell's ports that are not bundles, as declared, with the widths that the cell computes."""
        text = (COMMON / f"{self.cell}.sv").read_text()
        header = text[text.index("\nmodule ") : text.index(");", text.index(") ("))]
        taken = [bundle.port for bundle in self.bundles]
        found = []
        for line in header[header.index(") (") + 3 :].splitlines():
            match = re.match(r"\s*((?:input\s+wire|output\s+logic)\b.*?(\w+)),?\s*$", line)
            if not match or match[2] in ("clk_i", "rst_i"):
                continue
            if not any(re.fullmatch(rf"{port}_(req|resp|payload|valid|ready)", match[2]) for port in taken):
                found.append(match[1])
        return found

    def constants(self) -> dict[str, str]:
        """Returns the cell's parameters and localparams, for the widths of its plain ports."""
        text = (COMMON / f"{self.cell}.sv").read_text()
        header = text[text.index("#(") : text.index(") (")] if "#(" in text else ""
        found = dict(
            re.findall(r"(?:localparam|parameter)\s+int unsigned (\w+)\s*=\s*(.*?),?\s*$", header, re.MULTILINE)
        )
        return found | {name: str(value) for name, value in self.parameters.items() if name in found}

    def module(self, name: str) -> str:
        """Returns the text of a module `name` with flat ports."""
        ports = ["input wire clk_i", "input wire rst_i"]
        for bundle in self.bundles:
            ports += bundle.ports()
        ports += self.plain_ports()
        assigned = {key: str(value) for key, value in self.parameters.items()}
        for bundle in self.bundles:
            assigned |= bundle.parameters()
        parameters = ", ".join(f"parameter int unsigned {key} = {value}" for key, value in self.constants().items())
        lines = [f"module {name} #({parameters}) (" if parameters else f"module {name} ("]
        lines += [",\n".join(f"  {port}" for port in ports), ");"]
        for bundle in self.bundles:
            lines += bundle.body()
        lines.append(f"  {self.cell} #({', '.join(f'.{key}({value})' for key, value in assigned.items())}) dut (.*);")
        return "\n".join([*lines, "endmodule", ""])


def top_of(instances: dict[str, Wrapped]) -> str:
    """Returns a module `top` with one instance per entry, named like its key."""
    lines = ["// verilator lint_off UNUSEDPARAM", '`include "axi.svh"', ""]
    lines += [wrapped.module(f"{name}_flat") for name, wrapped in instances.items()]
    lines.append("module top (input wire clk_i, input wire rst_i);")
    lines += [f"  {name}_flat {name} (.clk_i, .rst_i);" for name in instances]
    return "\n".join([*lines, "endmodule", ""])


def elaborate(test_file: str, instances: dict[str, Wrapped]) -> None:
    """Elaborates every instance with its parameters in Yosys, and checks that there are no latches and no loops."""
    path = (ROOT / "build" / "hdl" / Path(test_file).stem / "top.sv").relative_to(ROOT)
    tops = " --top ".join(f"{name}_flat" for name in instances)
    script = f"{hdl_tools.read(tops, sources=str(path))}; proc; flatten; select -assert-none t:$dlatch; check -assert"
    result = hdl_tools.yosys(script)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]


def simulate_wrapped(test_file: str, instances: dict[str, Wrapped]) -> None:
    """Runs every cocotb test of the file on the instances, and then Yosys' checks."""
    simulate(test_file, text=top_of(instances), sources=(PACKAGE,))
    elaborate(test_file, instances)
