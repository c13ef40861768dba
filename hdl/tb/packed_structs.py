# SPDX-License-Identifier: Apache-2.0
"""Fields of ports that are packed structs. Their positions are read from the package that declares them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from bench import Bench, Pin, Sink, Source

Layout = dict[str, tuple[int, int]]  # field: lowest bit, bits; fields within fields have a dot


def _width(dimensions: str, constants: dict[str, int]) -> int:
    """Returns the width of [a:b][c:d]..., with numbers, constants, and operators that both languages have."""
    found = 1
    for high, low in re.findall(r"\[([^:\]]+):([^\]]+)\]", dimensions):
        found *= eval(high, {}, constants) - eval(low, {}, constants) + 1  # the repository's own text
    return found


@cache
def layouts(package: Path) -> dict[str, tuple[int, Layout]]:
    """Returns bits and fields of each struct, vector and enumeration type in a package."""
    text = re.sub(r"//.*", "", package.read_text())
    constants = {name: int(value) for name, value in re.findall(r"localparam int unsigned (\w+) = (\d+);", text)}
    found: dict[str, tuple[int, Layout]] = {"logic": (1, {})}
    pattern = (
        r"typedef (?:enum )?logic ?((?:\[[^\]]*\])*)\s*(?:\{[^}]*\})?\s*(\w+);|typedef struct packed \{(.*?)\} (\w+);"
    )
    for dimensions, name, body, struct in re.findall(pattern, text, re.DOTALL):
        if name:
            found[name] = (_width(dimensions, constants), {})
            continue
        fields = re.findall(r"(\w+)\s*((?:\[[^\]]*\])*)\s*(\w+);", body)
        if any(kind not in found for kind, _, _ in fields):
            continue  # of numbers that only parameters have
        layout: Layout = {}
        low = 0
        for kind, sizes, field in reversed(fields):
            bits, inner = found[kind]
            width = bits * _width(sizes, constants)
            layout[field] = (low, width)
            layout |= {f"{field}.{part}": (low + at, size) for part, (at, size) in inner.items()}
            low += width
        found[struct] = (low, layout)
    return found


def layout_of(fields: Iterable[tuple[str, int]]) -> tuple[int, Layout]:
    """Returns a struct's bits and fields from declared names and widths. The first field is the uppermost."""
    layout: Layout = {}
    low = 0
    for name, width in reversed(list(fields)):
        layout[name] = (low, width)
        low += width
    return low, layout


def axi_lite(address: int, data: int) -> dict[str, tuple[int, Layout]]:
    """Returns the bundles req and resp of AXI4-Lite (hdl/common/axi.svh)."""
    request = [("aw.addr", address), ("aw_valid", 1), ("w.data", data), ("w.strb", data // 8), ("w_valid", 1)]
    request += [("b_ready", 1), ("ar.addr", address), ("ar_valid", 1), ("r_ready", 1)]
    response = [("aw_ready", 1), ("w_ready", 1), ("b.resp", 2), ("b_valid", 1), ("ar_ready", 1)]
    response += [("r.data", data), ("r.resp", 2), ("r_valid", 1)]
    return {"req": layout_of(request), "resp": layout_of(response)}


def axis(data: int, user: int) -> tuple[int, Layout]:
    """Returns the struct of a stream's beat (hdl/common/axi.svh)."""
    return layout_of([("user", user), ("last", 1), ("keep", data // 8), ("data", data)])


class Struct:
    """A port of a struct type, or an element of an array of them."""

    def __init__(self, bench: Bench, scope: Any, port: str, kind: tuple[int, Layout], index: int | None = None) -> None:
        self.bits, self.layout = kind
        whole = bench.pin(scope, port)
        assert whole.width % self.bits == 0, (port, whole.width, self.bits)
        assert index is not None or whole.width == self.bits, (port, whole.width, self.bits)
        self.net, self.base = whole.net, self.bits * (index or 0)

    def pin(self, field: str) -> Pin:
        """Returns a field."""
        low, width = self.layout[field]
        return Pin(self.net, self.base + low, width)

    def pins(self, fields: str | Iterable[str]) -> list[Pin]:
        """Returns several fields. The names may be in one string."""
        return [self.pin(name) for name in (fields.split() if isinstance(fields, str) else fields)]

    def set(self, **values: int) -> None:
        """Drives fields from now on. __ stands for a dot."""
        for name, value in values.items():
            self.pin(name.replace("__", ".")).set(value)

    def get(self, field: str) -> int:
        """Returns the value of a field after settling."""
        return self.pin(field).get()

    def all(self, fields: str) -> tuple[int, ...]:
        """Returns the values of several fields after settling."""
        return tuple(pin.get() for pin in self.pins(fields))


class Wires:
    """The structs of one package at an instance."""

    def __init__(self, bench: Bench, scope: Any, package: Path) -> None:
        self.bench, self.scope, self.kinds = bench, scope, layouts(package)

    def struct(self, port: str, kind: str, index: int | None = None) -> Struct:
        """Returns a port of that type."""
        return Struct(self.bench, self.scope, port, self.kinds[kind], index)

    def source(self, prefix: str, kind: str, fields: str, index: int | None = None, **options: Any) -> Source:
        """Returns a sender at prefix_valid, prefix_ready and these fields of prefix_payload."""
        valid, ready = (self.bench.pin(self.scope, f"{prefix}_{name}", index) for name in ("valid", "ready"))
        payload = self.struct(f"{prefix}_payload", kind, index).pins(fields)
        return Source(self.bench, valid, ready, payload, **options)

    def sink(self, prefix: str, kind: str, fields: str, **options: Any) -> Sink:
        """Returns a receiver at the ports of the same names."""
        valid, ready = (self.bench.pin(self.scope, f"{prefix}_{name}") for name in ("valid", "ready"))
        return Sink(self.bench, valid, ready, self.struct(f"{prefix}_payload", kind).pins(fields), **options)

    def pin(self, name: str, index: int | None = None, width: int = 1) -> Pin:
        """Returns a port that is not a struct."""
        return self.bench.pin(self.scope, name, index, width)
