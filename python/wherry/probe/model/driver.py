# SPDX-License-Identifier: Apache-2.0
"""Models the cost of a driver's call: a fixed time for each run of descriptors, independent of its bytes.

The fixed time depends on the driver and the host, not on the link (docs/design/probe-model.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MIB = 1 << 20
XDMA_RUN = 2048 * 4096
"""The most bytes that AMD's XDMA driver submits to the engine at once: 2,048 descriptors (XDMA_TRANSFER_MAX_DESC) of
one page each (github.com/Xilinx/dma_ip_drivers, XDMA/linux-kernel, libxdma.h). The driver sleeps until they are
complete, then submits the next.
"""


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver. `call_ns`: the fixed time of each run of descriptors. `run`: the most bytes of a run."""

    call_ns: float
    run: int = XDMA_RUN

    def time_ns(self, size: int, rate: float) -> float:
        """The time of one blocking transfer over a path of `rate` GB/s. Each started run adds `call_ns`."""
        return max(1, math.ceil(size / self.run)) * self.call_ns + size / rate

    def bandwidth(self, size: int, rate: float) -> float:
        """The rate in GB/s of consecutive blocking transfers of `size` bytes."""
        return size / self.time_ns(size, rate)

    def peak(self, rate: float) -> float:
        """The rate in GB/s of transfers that fill whole runs, which is the driver's highest rate."""
        return self.bandwidth(self.run, rate)

    def half_rate_size(self, rate: float) -> float:
        """The size in bytes at which the driver's fixed time equals the time on the path."""
        return self.call_ns * rate
