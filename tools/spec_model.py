# SPDX-License-Identifier: Apache-2.0
"""Reads and checks spec/*.toml. All generated files are made from these objects."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class SpecError(Exception):
    """The specification contradicts itself. The message names the place."""


@dataclass
class Field:
    """A field of a struct. `offset`: its distance in bits from the struct's first (most significant) bit."""

    name: str
    bits: int
    doc: str
    offset: int = 0
    cpp_after: str = ""  # the field before it in the C++ struct, if not the one before it here

    @property
    def first_byte(self) -> int:
        """The first byte that contains bits of the field."""
        return self.offset // 8

    @property
    def spanned_bytes(self) -> int:
        """The number of bytes that contain bits of the field."""
        return (self.offset + self.bits - 1) // 8 - self.first_byte + 1

    @property
    def shift(self) -> int:
        """The number of bits below the field in the big-endian number of those bytes."""
        return 8 * (self.first_byte + self.spanned_bytes) - self.offset - self.bits


@dataclass
class Struct:
    """Fields without gaps, most significant bit first."""

    name: str
    doc: str
    fields: list[Field]

    @property
    def bits(self) -> int:
        """All of it."""
        return sum(f.bits for f in self.fields)


@dataclass
class Enum:
    """Named values of a field."""

    name: str
    bits: int
    doc: str
    values: list[tuple[str, int, str]]


@dataclass
class Frame:
    """spec/kv_frame.toml."""

    title: str
    doc: str
    constants: dict[str, tuple[int, str]]
    polynomial: int
    hash_doc: str
    structs: dict[str, Struct]
    enums: list[Enum]


@dataclass
class RegisterField:
    """Bits of a register."""

    name: str
    low: int
    bits: int
    doc: str
    acts: bool = False  # writing 1 starts an action; reads as 0

    @property
    def mask(self) -> int:
        """Its bits."""
        return ((1 << self.bits) - 1) << self.low


@dataclass
class Register:
    """A register, or an array of `count`."""

    name: str
    offset: int
    access: str
    reset: int
    doc: str
    count: int = 1
    stride: int = 4
    staged: bool = False
    bits: int = 32  # writable bits, if there are no fields
    fields: list[RegisterField] = field(default_factory=list)

    @property
    def mask(self) -> int:
        """The bits that keep a written value."""
        return sum(f.mask for f in self.fields if not f.acts) if self.fields else (1 << self.bits) - 1

    @property
    def offsets(self) -> list[int]:
        """The offsets of all registers of the array."""
        return [self.offset + i * self.stride for i in range(self.count)]


@dataclass
class RegisterMap:
    """spec/kv_registers.toml."""

    title: str
    doc: str
    bytes: int
    registers: list[Register]

    @property
    def address_bits(self) -> int:
        """Of an offset."""
        return (self.bytes - 1).bit_length()

    @property
    def staged(self) -> bool:
        """Some take effect together."""
        return any(r.staged for r in self.registers)


RESERVED = {"sequence", "property", "type", "class", "bit", "byte", "struct", "union", "delete", "new", "return", "in"}
HEADERS = ("ethernet", "ipv4", "udp", "kv")  # in the order of the wire


def _struct(raw: dict[str, Any]) -> Struct:
    struct = Struct(raw["name"], raw["doc"], [Field(**f) for f in raw["fields"]])
    at = 0
    for f in struct.fields:
        f.offset, at = at, at + f.bits
        if f.name in RESERVED:
            raise SpecError(f"{struct.name}.{f.name}: the name is a keyword in one of the languages")
        if f.bits > 64 or f.spanned_bytes > 8:
            raise SpecError(f"{struct.name}.{f.name}: {f.bits} bits over {f.spanned_bytes} bytes; at most 64 over 8")
    if at % 8:
        raise SpecError(f"{struct.name}: {at} bits are not whole bytes")
    return struct


def _enum(raw: dict[str, Any]) -> Enum:
    values = [(v["name"], v["value"], v["doc"]) for v in raw["values"]]
    enum = Enum(raw["name"], raw["bits"], raw["doc"], values)
    if len({v for _, v, _ in values}) != len(values) or len({n for n, _, _ in values}) != len(values):
        raise SpecError(f"{enum.name}: two values share a name or a number")
    if any(v >> enum.bits for _, v, _ in values):
        raise SpecError(f"{enum.name}: a value does not fit {enum.bits} bits")
    return enum


def read_frame(path: Path) -> Frame:
    """Reads the frame. Its headers must fill header_bytes."""
    raw = tomllib.loads(path.read_text())
    frame = Frame(
        raw["title"],
        raw["doc"],
        {name: (c["value"], c["doc"]) for name, c in raw["constants"].items()},
        raw["hash"]["polynomial"],
        raw["hash"]["doc"],
        {s["name"]: _struct(s) for s in raw["struct"]},
        [_enum(e) for e in raw["enum"]],
    )
    total = sum(frame.structs[name].bits for name in HEADERS) // 8
    if total != frame.constants["header_bytes"][0]:
        raise SpecError(f"the headers are {total} bytes, header_bytes says {frame.constants['header_bytes'][0]}")
    for small in ("reply_detail", "node_detail"):
        if frame.structs[small].bits != 8:
            raise SpecError(f"{small}: {frame.structs[small].bits} bits; the field has 8")
    return frame


def read_registers(path: Path) -> RegisterMap:
    """Reads the registers. No two registers may share a word, and no two fields a bit."""
    raw = tomllib.loads(path.read_text())
    registers = []
    for entry in raw["register"]:
        fields = [RegisterField(**f) for f in entry.pop("fields", [])]
        registers.append(Register(**entry, fields=fields))
    taken: dict[int, str] = {}
    for r in registers:
        if r.access not in {"ro", "rw", "wo"}:
            raise SpecError(f"{r.name}: access {r.access!r} is none of ro, rw, wo")
        if r.reset & ~r.mask and r.access == "rw":
            raise SpecError(f"{r.name}: its reset value {r.reset:#x} has bits that are not kept")
        for at in r.offsets:
            if at % 4 or at + 4 > raw["bytes"]:
                raise SpecError(f"{r.name}: {at:#x} is not a word of the {raw['bytes']} bytes")
            if at in taken:
                raise SpecError(f"{r.name} and {taken[at]} share {at:#x}")
            taken[at] = r.name
        used = 0
        for f in r.fields:
            if f.mask & used or f.mask >> 32:
                raise SpecError(f"{r.name}.{f.name}: its bits are taken or above 31")
            used |= f.mask
    return RegisterMap(raw["title"], raw["doc"], raw["bytes"], registers)


def crc_masks(polynomial: int) -> tuple[list[int], int]:
    """The hash as (masks, flip): bit i is the parity of key & masks[i], inverted if bit i of flip is set."""

    def crc(key: int) -> int:
        state = 0xFFFFFFFF
        for byte in key.to_bytes(8, "big"):
            state ^= byte
            for _ in range(8):
                state = (state >> 1) ^ (polynomial if state & 1 else 0)
        return state ^ 0xFFFFFFFF

    flip = crc(0)
    columns = [crc(1 << bit) ^ flip for bit in range(64)]
    return [sum(((columns[bit] >> i) & 1) << bit for bit in range(64)) for i in range(32)], flip


def camel(name: str) -> str:
    """max_value_bytes: MaxValueBytes."""
    return "".join(part.capitalize() for part in name.split("_"))
