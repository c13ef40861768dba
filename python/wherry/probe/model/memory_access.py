# SPDX-License-Identifier: Apache-2.0
"""Models the 13 bandwidths of paper 000's four designs: XDMA to BRAM, to DDR4, beside a MicroBlaze, and beside
PetaLinux."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wherry.probe.model.driver import Driver
from wherry.probe.model.parameters import BRAM_TRANSFER, LINK, MANY, MPS, Parameters
from wherry.probe.model.published import Range, range_of
from wherry.probe.model.queueing import channels


@dataclass(frozen=True, slots=True)
class Quantity:
    """One bandwidth of the paper."""

    name: str
    ids: tuple[str, ...]
    """The ids of the published values of this bandwidth. Together they form its range."""
    fitted: bool
    """Whether a number of the model was fitted to it."""

    @property
    def published(self) -> Range:
        """The published range in GB/s."""
        return range_of(self.ids)


def _of(name: str, *more: str, fitted: bool = False) -> Quantity:
    return Quantity(name, (name, *more), fitted)


QUANTITIES = (
    _of("ma_bram_h2c_1ch", fitted=True),
    _of("ma_bram_c2h_1ch", fitted=True),
    _of("ma_ddr_h2c_1ch", "ma_ddr_h2c_1ch_restated", fitted=True),
    _of("ma_ddr_c2h_1ch", "ma_ddr_c2h_1ch_restated", fitted=True),
    _of("ma_ddr_h2c_multi", "ma_ddr_h2c_saturation", fitted=True),
    _of("ma_ddr_c2h_multi"),
    _of("ma_mb_h2c_1ch", "ma_mb_h2c_1ch_restated"),
    _of("ma_mb_c2h_1ch", "ma_mb_c2h_1ch_restated", fitted=True),
    _of("ma_mb_c2h_multi"),
    _of("ma_pl_h2c_1ch", fitted=True),
    _of("ma_pl_h2c_multi"),
    _of("ma_pl_c2h_3_4ch"),
    _of("ma_pl_c2h_2ch"),
)
FITTED = tuple(one.name for one in QUANTITIES if one.fitted)


def fitted_to() -> dict[str, Range]:
    """The published values that the fit uses. It uses no others."""
    return {one.name: one.published for one in QUANTITIES if one.fitted}


@dataclass(frozen=True, slots=True)
class Design:
    """The model of one design: XDMA to one of the memories. Rates are in GB/s."""

    parameters: Parameters
    channel: Mapping[str, float]
    """The rate of one channel during the transfer of data, by direction."""
    link: float
    """The link's rate from card to host, reduced by the memory time that others use."""
    share: float = 1.0
    """The share of memory time that is left for XDMA."""

    @property
    def driver(self) -> Driver:
        """AMD's XDMA driver."""
        return Driver(self.parameters.call_ns)

    def one(self, flow: str, size: int) -> float:
        """The rate of one channel with blocking transfers of `size` bytes."""
        return self.driver.bandwidth(size, self.channel[flow])

    def one_peak(self, flow: str) -> float:
        """The rate of one channel with transfers of whole runs."""
        return self.driver.peak(self.channel[flow])

    def c2h(self, count: int, size: int | None = None) -> float:
        """The rate of several channels from card to host, each with a thread. They share the link. `size` None: whole
        runs."""
        alone = self.one_peak("c2h") if size is None else self.one("c2h", size)
        return channels(count, alone, self.link)

    def h2c(self, count: int, size: int | None = None) -> float:
        """The rate of several channels from host to card: at most that of one channel on an idle interconnect, times a
        fitted factor.

        Small transfers of several channels overlap, so several channels together are faster than one, up to that limit.
        """
        alone = self.one_peak("h2c") if size is None else self.one("h2c", size)
        if count == 1:
            return alone
        most = self.driver.peak(self.parameters.h2c) * self.parameters.several_h2c * self.share
        return min(most, count * alone)


def designs(parameters: Parameters, mps: int = MPS) -> dict[str, Design]:
    """The designs by name: bram, ddr, microblaze, petalinux."""
    p, link = parameters, LINK.writes(mps)
    plain = Design(p, {"h2c": p.h2c, "c2h": p.c2h}, link)
    soft = Design(p, {"h2c": min(p.h2c, p.soft_core), "c2h": p.soft_core}, link)
    left = 1 - p.kernel_share
    linux = Design(p, {flow: rate * left for flow, rate in soft.channel.items()}, link * left, left)
    return {"bram": plain, "ddr": plain, "microblaze": soft, "petalinux": linux}


def predict(parameters: Parameters, mps: int = MPS) -> dict[str, float]:
    """The model's value of each of QUANTITIES, in GB/s."""
    of = designs(parameters, mps)
    bram, ddr, soft, linux = of["bram"], of["ddr"], of["microblaze"], of["petalinux"]
    values: dict[str, Callable[[], float]] = {
        "ma_bram_h2c_1ch": lambda: bram.one("h2c", BRAM_TRANSFER),
        "ma_bram_c2h_1ch": lambda: bram.one("c2h", BRAM_TRANSFER),
        "ma_ddr_h2c_1ch": lambda: ddr.one_peak("h2c"),
        "ma_ddr_c2h_1ch": lambda: ddr.one_peak("c2h"),
        "ma_ddr_h2c_multi": lambda: ddr.h2c(MANY),
        "ma_ddr_c2h_multi": lambda: ddr.c2h(MANY),
        "ma_mb_h2c_1ch": lambda: soft.one_peak("h2c"),
        "ma_mb_c2h_1ch": lambda: soft.one_peak("c2h"),
        "ma_mb_c2h_multi": lambda: soft.c2h(MANY),
        "ma_pl_h2c_1ch": lambda: linux.one_peak("h2c"),
        "ma_pl_h2c_multi": lambda: linux.h2c(MANY),
        "ma_pl_c2h_3_4ch": lambda: linux.c2h(MANY),
        "ma_pl_c2h_2ch": lambda: linux.c2h(2),
    }
    return {name: value() for name, value in values.items()}
