# SPDX-License-Identifier: Apache-2.0
"""The rate of a PCIe link one way, by counting bytes. No number here is fitted.

Rates are in GB/s, which is bytes a nanosecond. Spec: PCI Express Base Specification, revision 5.0.

A trap: pcie-bench's model (Neugebauer et al., SIGCOMM 2018) takes ACKs and flow-control updates off both directions, at
the highest rate that the specification allows (about 10 %). While data go one way, those DLLPs go the other way. So
they count here only if they share a direction with the data: behind the read requests of a card that reads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

GIGATRANSFERS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0}
"""The rate of a lane, by generation (Spec 4.2)."""
FRAMING = 8
"""Bytes of a TLP. Gen1/2: STP 1, sequence 2, LCRC 4, END 1. Gen3+: STP token 4, LCRC 4 (Spec 3.6.2, 4.2.1, 4.2.2)."""
REQUEST_HEADER = 16
"""Bytes: four doublewords, for addresses beyond 4 GiB (Spec 2.2.1)."""
SHORT_REQUEST_HEADER = 12
"""Bytes: for addresses below 4 GiB."""
COMPLETION_HEADER = 12
"""Bytes (Spec 2.2.9)."""
DLLP = 8
"""Bytes of an ACK or an UpdateFC with its framing (Spec 3.5.1, 4.2)."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link: `generation` 1 to 5, `lanes` 1 to 32. As text: "gen3 x16"."""

    generation: int = 3
    lanes: int = 16

    def __post_init__(self) -> None:
        if self.generation not in GIGATRANSFERS or self.lanes not in (1, 2, 4, 8, 12, 16, 32):
            raise ValueError(f"gen{self.generation} x{self.lanes} is not a PCIe link: gen1 to gen5, x1 to x32")

    def __str__(self) -> str:
        return f"gen{self.generation} x{self.lanes}"

    def raw(self) -> float:
        """The rate of all lanes after the encoding: 8b/10b up to Gen2, then 128b/130b (Spec 4.2)."""
        encoding = 8 / 10 if self.generation < 3 else 128 / 130
        return GIGATRANSFERS[self.generation] * encoding * self.lanes / 8

    def usable(self) -> float:
        """The rate less SKP ordered sets: 4 of 1538 symbols up to Gen2, one of 375 blocks from Gen3 on (Spec 4.2.7)."""
        return self.raw() * (1 - (4 / 1538 if self.generation < 3 else 1 / 375))

    def writes(self, payload: int, header: int = REQUEST_HEADER) -> float:
        """C2H: posted writes of `payload` bytes (MPS, or less) each."""
        return self.usable() * payload / (payload + FRAMING + header)

    def reads(self, completion: int, request: int = 512) -> float:
        """H2C: completions of at most `completion` bytes for reads of `request` bytes (MRRS).

        The root sends an ACK and an UpdateFC for each read request in the direction of the data.
        """
        packets = math.ceil(request / completion)
        return self.usable() * request / (request + packets * (FRAMING + COMPLETION_HEADER) + 2 * DLLP)


def parse(text: str) -> Link:
    """ "gen3 x16", "gen4x8". Raises ValueError."""
    words = text.lower().replace(" ", "").removeprefix("gen").partition("x")
    try:
        return Link(int(words[0]), int(words[2]))
    except ValueError as error:
        raise ValueError(f"{text!r} is not a link: {error}" if "PCIe" in str(error) else
                         f"{text!r} is not a link: want for example 'gen3 x16'") from None  # fmt: skip
