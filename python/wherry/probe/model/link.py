# SPDX-License-Identifier: Apache-2.0
"""Computes the rate of a PCIe link in one direction by counting bytes. No number in this module is fitted.

Rates are in GB/s, which is bytes per nanosecond. "Spec" is the PCI Express Base Specification, revision 5.0.

The model of pcie-bench (Neugebauer et al., SIGCOMM 2018) subtracts ACKs and flow-control updates from both directions,
at the highest rate that the specification allows (about 10 %). But these DLLPs travel against the direction of the
data. So this module subtracts them only if they share the data's direction: when a card reads, the root acknowledges
its read requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

GIGATRANSFERS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0}
"""The rate of a lane, by generation (Spec 4.2)."""
FRAMING = 8
"""Bytes of framing per TLP. Gen1/2: STP 1, sequence 2, LCRC 4, END 1. Gen3+: STP token 4, LCRC 4 (Spec 3.6.2, 4.2.1,
4.2.2)."""
REQUEST_HEADER = 16
"""Header bytes for addresses beyond 4 GiB: four doublewords (Spec 2.2.1)."""
SHORT_REQUEST_HEADER = 12
"""Header bytes for addresses below 4 GiB."""
COMPLETION_HEADER = 12
"""Header bytes of a completion (Spec 2.2.9)."""
DLLP = 8
"""Bytes of an ACK or an UpdateFC with its framing (Spec 3.5.1, 4.2)."""


@dataclass(frozen=True, slots=True)
class Link:
    """A PCIe link with `generation` 1 to 5 and `lanes` 1 to 32. Its text form is "gen3 x16"."""

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
        """The rate minus SKP ordered sets: 4 of 1538 symbols up to Gen2, 1 of 375 blocks from Gen3 (Spec 4.2.7)."""
        return self.raw() * (1 - (4 / 1538 if self.generation < 3 else 1 / 375))

    def writes(self, payload: int, header: int = REQUEST_HEADER) -> float:
        """The C2H rate of posted writes of `payload` bytes each (at most MPS)."""
        return self.usable() * payload / (payload + FRAMING + header)

    def reads(self, completion: int, request: int = 512) -> float:
        """The H2C rate of reads of `request` bytes (MRRS), with completions of at most `completion` bytes.

        For each read request, the root sends an ACK and an UpdateFC in the direction of the data.
        """
        packets = math.ceil(request / completion)
        return self.usable() * request / (request + packets * (FRAMING + COMPLETION_HEADER) + 2 * DLLP)


def parse(text: str) -> Link:
    """Parses a link such as "gen3 x16" or "gen4x8". Raises ValueError."""
    words = text.lower().replace(" ", "").removeprefix("gen").partition("x")
    try:
        return Link(int(words[0]), int(words[2]))
    except ValueError as error:
        raise ValueError(f"{text!r} is not a link: {error}" if "PCIe" in str(error) else
                         f"{text!r} is not a link: want for example 'gen3 x16'") from None  # fmt: skip
