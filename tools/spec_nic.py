# SPDX-License-Identifier: Apache-2.0
"""Reads and checks spec/nic_personalities.toml, and generates C++, Python and a page for docs/ from it."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import spec_cpp
import spec_markdown
import spec_python
from spec_model import SpecError

TYPES = {"u8": 8, "u16": 16, "u32": 32, "hex32": 32, "hex64": 64, "flag": 1}
KINDS = ("given", "chosen", "fitted", "guess")
FUNCTIONS = ("physical", "virtual")
HAND_OVERS = ("registers", "admin_queue", "virtchnl")
GROUPS = {
    "ring": "Rings and tail registers",
    "registers": "Ring registers",
    "rx": "Receive descriptor, as the NIC writes it back",
    "tx": "Transmit descriptor",
    "inside": "Inside: what only the models use",
}


@dataclass
class Constant:
    """A constant for which each personality has a value."""

    name: str
    type: str
    group: str
    doc: str

    def text(self, value: int) -> str:
        """The value as written in C++ and Python."""
        if self.type == "flag":
            return "true" if value else "false"
        return f"0x{value:X}" if self.type.startswith("hex") else str(value)


@dataclass
class Value:
    """A value, its source, and how certain it is."""

    value: int
    source: str
    kind: str


@dataclass
class Personality:
    """One family of network cards."""

    name: str
    doc: str
    driver: str
    function: str
    hand_over: str
    mbits: list[int]
    devices: list[tuple[int, str]]
    like: str
    values: dict[str, Value] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)  # not taken over


@dataclass
class Personalities:
    """The whole file."""

    title: str
    doc: str
    constants: list[Constant]
    personalities: list[Personality]


def _value(where: str, constant: Constant, raw: dict[str, Any]) -> Value:
    value = Value(raw["value"], raw["source"], raw.get("kind", "given"))
    if value.kind not in KINDS:
        raise SpecError(f"{where}: kind {value.kind!r} is not one of {', '.join(KINDS)}")
    if not value.source and value.kind != "guess":
        raise SpecError(f"{where}: a value without a source must be marked as a guess")
    if value.value < 0 or value.value >> TYPES[constant.type]:
        raise SpecError(f"{where}: {value.value:#x} does not fit {constant.type}")
    return value


def _check(p: Personality) -> None:
    def v(name: str) -> int:
        return p.values[name].value

    for low, bits in (("rx_length_low", "rx_length_bits"), ("tx_length_low", "tx_length_bits")):
        if v(low) + v(bits) > 128:
            raise SpecError(f"{p.name}.{low}: the field ends beyond the descriptor")
    taken = v("tx_eop_mask") | v("tx_rs_mask") | ((1 << v("tx_length_bits")) - 1) << v("tx_length_low") - 64
    if v("tx_total_bits"):
        taken |= ((1 << v("tx_total_bits")) - 1) << v("tx_total_low") - 64
    if v("tx_data_word") & taken:
        raise SpecError(f"{p.name}.tx_data_word: has bits of EOP, RS or a length")
    if v("tx_data_word") & v("tx_type_mask") != v("tx_type_data"):
        raise SpecError(f"{p.name}.tx_data_word: is not a data descriptor by tx_type_mask")
    for cache, fetch in (("rx_cache", "rx_fetch_max"), ("tx_cache", "tx_fetch_max")):
        if v(fetch) > v(cache):
            raise SpecError(f"{p.name}.{fetch}: more than {cache} holds")
    if (p.hand_over == "registers") != bool(v("rx_ring_offset")):
        raise SpecError(f"{p.name}: hand_over {p.hand_over} and rx_ring_offset contradict each other")


def read_personalities(path: Path) -> Personalities:
    """Reads the personalities. Each must have a value for each constant, its own or an inherited one."""
    raw = tomllib.loads(path.read_text())
    constants = [Constant(**c) for c in raw["constant"]]
    known = {c.name: c for c in constants}
    for c in constants:
        if c.type not in TYPES or c.group not in GROUPS:
            raise SpecError(f"{c.name}: no such type or group")
    personalities: list[Personality] = []
    ids: dict[int, str] = {}
    for entry in raw["personality"]:
        values = entry.pop("values")
        devices = [(d["id"], d["name"]) for d in entry.pop("devices")]
        p = Personality(**{"like": "", **entry}, devices=devices)
        if p.function not in FUNCTIONS or p.hand_over not in HAND_OVERS:
            raise SpecError(f"{p.name}: no such function or hand_over")
        if p.like:
            base = [b for b in personalities if b.name == p.like]
            if not base:
                raise SpecError(f"{p.name}: is like {p.like}, which no earlier personality is called")
            p.values = dict(base[0].values)
        for name, value in values.items():
            if name not in known:
                raise SpecError(f"{p.name}.{name}: there is no such constant")
            p.values[name] = _value(f"{p.name}.{name}", known[name], value)
            p.own.add(name)
        missing = [name for name in known if name not in p.values]
        if missing:
            raise SpecError(f"{p.name}: has no value for {', '.join(missing)}")
        for number, _ in devices:
            if number in ids:
                raise SpecError(f"{p.name}: device {number:#06x} is {ids[number]}'s")
            ids[number] = p.name
        _check(p)
        personalities.append(p)
    return Personalities(raw["title"], raw["doc"], constants, personalities)


def _member(c: Constant) -> str:
    kind = "bool" if c.type == "flag" else f"std::uint{TYPES[c.type]}_t"
    return f"  {kind} {c.name};  ///< {c.doc}"


def header(spec: Personalities, source: str) -> str:
    """src/bypass/generated/personalities.hpp."""
    members = []
    for group, title in GROUPS.items():
        members.append(f"\n  // {title}.")
        members += [_member(c) for c in spec.constants if c.group == group]
    rows = []
    for p in spec.personalities:
        values = [
            f"        .{c.name} = {c.text(p.values[c.name].value)},"
            for group in GROUPS
            for c in spec.constants
            if c.group == group
        ]
        hand_over = "k" + "".join(w.capitalize() for w in p.hand_over.split("_"))
        rows.append(
            f'    Personality{{  // {p.doc}\n        .name = "{p.name}",\n        .driver = "{p.driver}",\n'
            f"        .hand_over = HandOver::{hand_over},\n"
            f"        .virtual_function = {'true' if p.function == 'virtual' else 'false'},\n"
            f"        .mbits_max = {max(p.mbits)},\n" + "\n".join(values) + "\n    },"
        )
    devices = [
        f'    DeviceName{{0x{number:04X}, {index}, "{name}"}},'
        for index, p in enumerate(spec.personalities)
        for number, name in p.devices
    ]
    body, table, ids = "\n".join(members), "\n".join(rows), "\n".join(devices)
    return f"""{spec_cpp.NOTICE.format(source=source)}//
// {spec.doc}
// Sources of each value: docs/reference/nic-personalities.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wherry::bypass {{

/// How a ring's address gets into the NIC.
enum class HandOver : std::uint8_t {{
  kRegisters,   ///< ring registers in BAR 0
  kAdminQueue,  ///< queue contexts, by admin queue commands
  kVirtchnl,    ///< messages to the driver of the physical function
}};

/// One family of network cards. Bits are bits of the 16-byte descriptor; tx_* masks and words are of its second quad
/// word.
struct Personality {{
  std::string_view name;
  std::string_view driver;  ///< of Linux
  HandOver hand_over;
  bool virtual_function;
  std::uint32_t mbits_max;  ///< fastest link, Mbit/s
{body}
}};

inline constexpr std::array kPersonalities{{
{table}
}};

/// PCI device IDs of Intel (vendor 0x8086).
inline constexpr std::uint16_t kVendor = 0x8086;
struct DeviceName {{
  std::uint16_t id;
  std::uint8_t personality;  ///< index in kPersonalities
  std::string_view name;
}};
inline constexpr std::array kDevices{{
{ids}
}};

/// By its name; null if there is none.
[[nodiscard]] constexpr const Personality* find_personality(std::string_view name) noexcept {{
  for (const Personality& personality : kPersonalities) {{
    if (personality.name == name) return &personality;
  }}
  return nullptr;
}}
/// Of a PCI function; null if it is not a NIC that is known here.
[[nodiscard]] constexpr const Personality* personality_of(std::uint16_t vendor, std::uint16_t device) noexcept {{
  if (vendor != kVendor) return nullptr;
  for (const DeviceName& known : kDevices) {{
    if (known.id == device) return &kPersonalities[known.personality];
  }}
  return nullptr;
}}

}}  // namespace wherry::bypass
"""


def _python(c: Constant, value: int) -> str:
    return str(bool(value)) if c.type == "flag" else c.text(value)


def module(spec: Personalities, source: str) -> str:
    """python/wherry/bypass/generated/personalities.py."""
    members = "\n".join(f"    {c.name}: {'bool' if c.type == 'flag' else 'int'}" for c in spec.constants)
    rows = []
    for p in spec.personalities:
        values = ", ".join(f"{c.name}={_python(c, p.values[c.name].value)}" for c in spec.constants)
        rows.append(
            f'    "{p.name}": Personality(name="{p.name}", driver="{p.driver}", hand_over="{p.hand_over}", '
            f"virtual_function={p.function == 'virtual'}, mbits={tuple(p.mbits)!r}, {values}),"
        )
    devices = "\n".join(
        f'    0x{number:04X}: ("{p.name}", "{name}"),' for p in spec.personalities for number, name in p.devices
    )
    table = "\n".join(rows)
    return f'''{spec_python.NOTICE.format(source=source)}"""{spec.title}: docs/reference/nic-personalities.md."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Personality:
    """One family of network cards; bits and masks as docs/reference/nic-personalities.md says."""

    name: str
    driver: str
    hand_over: str
    virtual_function: bool
    mbits: tuple[int, ...]
{members}


VENDOR = 0x8086
PERSONALITIES = {{
{table}
}}
# PCI device ID: personality, name.
DEVICES = {{
{devices}
}}
'''


def page(spec: Personalities, source: str) -> str:
    """docs/reference/nic-personalities.md."""
    text = [
        f"{spec_markdown.NOTICE.format(source=source)}# {spec.title}\n\n{spec.doc}\n",
        "Bits are bits of the 16-byte descriptor, little endian; masks and words `tx_*` are of its second quad word.",
        "A value is *given* by a datasheet or driver, *chosen* by this project, *fitted* to a published measurement",
        "(f), or a *guess* (g): no source was found. Sources: DPDK 26.11-rc0 under drivers/net/intel, Linux under",
        "drivers/net/ethernet/intel, and datasheets by section.\n",
        f"A personality is one family of cards. There are {len(spec.personalities)} families.\n",
        "| personality | cards | driver | hand-over | link, Gbit/s |\n|---|---|---|---|---|",
    ]
    for p in spec.personalities:
        ids = ", ".join(f"{name} ({number:04x})" for number, name in p.devices) or "as iavf"
        rates = ", ".join(f"{m / 1000:g}" for m in p.mbits)
        text.append(f"| `{p.name}` | {p.doc}: {ids} | {p.driver} | {p.hand_over.replace('_', ' ')} | {rates} |")
    names = " | ".join(f"`{p.name}`" for p in spec.personalities)
    for group, title in GROUPS.items():
        text.append(f"\n## {title}\n\n| | {names} |\n|---|{'---|' * len(spec.personalities)}")
        for c in (c for c in spec.constants if c.group == group):
            cells = []
            for p in spec.personalities:
                value = p.values[c.name]
                mark = {"fitted": " f", "guess": " g"}.get(value.kind, "")
                cells.append(
                    ("yes" if value.value else "no") + mark if c.type == "flag" else c.text(value.value) + mark
                )
            text.append(f"| `{c.name}` | {' | '.join(cells)} |")
        text.append("")
        text += [f"- `{c.name}`: {c.doc}." for c in spec.constants if c.group == group]
    text.append("\n## Sources\n")
    for p in spec.personalities:
        text.append(f"### {p.name}\n")
        if p.like:
            text.append(f"What is not listed is as `{p.like}`.\n")
        text.append("| value | kind | source |\n|---|---|---|")
        for c in (c for c in spec.constants if c.name in p.own):
            value = p.values[c.name]
            text.append(f"| `{c.name}` = {c.text(value.value)} | {value.kind} | {value.source} |")
        text.append("")
    return "\n".join(text)
