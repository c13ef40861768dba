# SPDX-License-Identifier: Apache-2.0
"""The cost of a driver's call: a fixed time for each run of descriptors, for any number of bytes.

The fixed time belongs to a driver and its host, not to a link: docs/design/probe-model.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MIB = 1 << 20
XDMA_RUN = 2048 * 4096
"""Bytes that AMD's XDMA driver hands to the engine at once: XDMA_TRANSFER_MAX_DESC, 2,048 descriptors, of a page each
(github.com/Xilinx/dma_ip_drivers, XDMA/linux-kernel, libxdma.h). It sleeps until they are done, then submits the next.
"""


@dataclass(frozen=True, slots=True)
class Driver:
    """`call_ns`: of each run. `run`: the most bytes of a run."""

    call_ns: float
    run: int = XDMA_RUN

    def time_ns(self, size: int, rate: float) -> float:
        """The time of one blocking transfer over a path of `rate` GB/s: a saw-tooth above one run."""
        return max(1, math.ceil(size / self.run)) * self.call_ns + size / rate

    def bandwidth(self, size: int, rate: float) -> float:
        """GB/s of blocking transfers of `size` bytes, one after another."""
        return size / self.time_ns(size, rate)

    def peak(self, rate: float) -> float:
        """GB/s of transfers that fill whole runs: the most that the driver reaches."""
        return self.bandwidth(self.run, rate)

    def half_rate_size(self, rate: float) -> float:
        """Bytes at which a transfer takes twice its time on the path."""
        return self.call_ns * rate
