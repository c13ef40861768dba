# SPDX-License-Identifier: Apache-2.0
"""The constants of the model of paper 000, each with its source and mark, and its six fitted numbers.

Marks of a constant:

given   a specification, a driver's source or the paper's set-up states it
chosen  no source states it; the entry says which values were known at the choice
fitted  set to reproduce published values, which are therefore not predictions
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from wherry.probe.model.driver import MIB, XDMA_RUN
from wherry.probe.model.link import Link

Mark = Literal["given", "chosen", "fitted"]
STORED = Path(__file__).with_name("fitted.json")
"""The file that `wherry probe model --fit --write` writes. Only this command sets the fitted numbers."""

LINK = Link(3, 16)
MPS = 128
MANY = 4
BRAM_TRANSFER = MIB
AXI_BITS, AXI_MHZ = 512, 250
DDR_MEGATRANSFERS, DDR_BITS = 2400, 64


@dataclass(frozen=True, slots=True)
class Parameters:
    """The six fitted numbers of the model."""

    call_ns: float
    """The fixed time of a run of descriptors: system call, pinning, descriptors, doorbell, interrupt, wake-up."""
    c2h: float
    """The rate in GB/s of one channel from card to host during the transfer of data."""
    h2c: float
    """The same rate from host to card."""
    soft_core: float
    """The rate in GB/s of one channel through the interconnect of the designs with a soft core, in either direction."""
    kernel_share: float
    """The share of the memory's time that Linux on the soft core uses."""
    several_h2c: float
    """The rate of several H2C channels together as a factor of the rate of one."""

    def __post_init__(self) -> None:
        if min(asdict(self).values()) <= 0:
            raise ValueError(f"{self}: each parameter is above zero")


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the model, with its source and mark."""

    name: str
    value: str
    mark: Mark
    source: str


@functools.cache
def stored() -> Parameters:
    """The fitted numbers that the model uses."""
    return Parameters(**json.loads(STORED.read_text(encoding="utf-8"))["parameters"])


def document(parameters: Parameters, fitted_to: Mapping[str, object]) -> str:
    """The text of fitted.json."""
    note = "written by `wherry probe model --fit --write`"
    return json.dumps({"note": note, "fitted_to": fitted_to, "parameters": asdict(parameters)}, indent=2) + "\n"


_SOURCES = {
    "call_ns": ("ns", "published values of BRAM at 1 MiB, one number for both directions"),
    "c2h": ("GB/s", "the DDR4 design's C2H peak of one channel"),
    "h2c": ("GB/s", "the DDR4 design's H2C peak of one channel"),
    "soft_core": ("GB/s", "the MicroBlaze design's C2H peak of one channel"),
    "kernel_share": ("", "the PetaLinux design's H2C peak of one channel"),
    "several_h2c": (
        "",
        "the DDR4 design's H2C of several channels. Not so on other shells: docs/design/probe-model.md",
    ),
}


def constants(parameters: Parameters) -> list[Constant]:
    """All constants, the given ones first."""
    given = [
        Constant("link", str(LINK), "given", "paper 000, section 5.1: Alveo U250, PCIe Gen3 x16"),
        Constant("framing, headers, DLLPs, SKP", "see wherry/probe/model/link.py", "given", "PCIe 5.0 specification"),
        Constant("run of descriptors", f"{XDMA_RUN} bytes", "given", "libxdma.h: 2,048 descriptors of a page"),
        Constant("transfer into BRAM", f"{BRAM_TRANSFER} bytes", "given", "paper 000, section 6.1: at most 1 MB"),
        Constant("AXI interconnect", f"{AXI_BITS} bit, {AXI_MHZ} MHz", "given", "PG195: XDMA at Gen3 x16"),
        Constant("DDR4", f"{DDR_MEGATRANSFERS} MT/s, {DDR_BITS} bit", "given", "Alveo U250 data sheet (DS962)"),
        Constant("several channels", str(MANY), "chosen", "the paper says 'multiple'; its comparison has four"),
        Constant("MPS", f"{MPS} bytes", "chosen", "the paper does not say; predicts best of 128, 256 and 512; AMD's "
                 "answer record 68049 calls it typical"),
    ]  # fmt: skip
    return given + [
        Constant(field.name, f"{getattr(parameters, field.name):.6g} {unit}".strip(), "fitted", source)
        for field in fields(parameters)
        for unit, source in [_SOURCES[field.name]]
    ]
