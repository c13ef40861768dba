# SPDX-License-Identifier: Apache-2.0
"""bypass_functions between a NIC and its set-up program."""

from __future__ import annotations

from typing import Any

from bypass_formats import FORMATS
from bypass_rig import Frames, Registers, Rig
from echo_model import Host

from wherry.bypass.generated.functions_registers import REGISTERS

FUNCTIONS = 0x8000
"""The offset of the functions' registers."""
NOBODY, ECHO, CHECKER, OUTSIDE = range(4)
IN_PLACE = 1 << 4


class FunctionRegisters:
    """Access by name to the registers of the functions, behind an AXI4-Lite port."""

    def __init__(self, bus: Registers, base: int = FUNCTIONS) -> None:
        self.bus, self.base = bus, base

    async def write(self, name: str, value: int, index: int = 0) -> None:
        """Writes a register."""
        assert await self.bus.write_at(self.base + REGISTERS[name].at(index), value) == 0

    async def read(self, name: str, index: int = 0) -> int:
        """Reads a register."""
        return await self.bus.read_at(self.base + REGISTERS[name].at(index))

    async def clear(self) -> None:
        """Clears all counters. Registers do not answer until that is done."""
        await self.write("control", 1)
        await self.read("id")

    async def set_up(self, host: Host, receive: int) -> None:
        """Sets up the echo function and the receiver of frames."""
        for name, value in host.registers.items():
            await self.write(name, value)
        await self.write("receive", receive)

    async def counters(self) -> dict[str, int]:
        """Returns all frame counters that are not 0, after nothing is in flight."""
        await self.bus.bench.cycle(8)
        found = {}
        for name, register in REGISTERS.items():
            if not 0x100 <= register.offset < 0x1A0:
                continue
            for index in range(register.count):
                if value := await self.read(name, index):
                    found[name if register.count == 1 else f"{name}[{index}]"] = value
        return found


class FunctionsRig(Rig):
    """The rig around bypass_functions."""

    def __init__(self, dut: Any, name: str, **options: int) -> None:
        super().__init__(dut, name, **options)
        self.functions = FunctionRegisters(self.registers)

    def _streams(self) -> None:
        self.rx, self.tx = self.sink("m_rx"), self.source("s_tx")
        self.received = Frames(self.rx)

    async def begin(self, kind: str, host: Host, receive: int, *, in_place: bool = False) -> None:
        """Resets the core, starts the NIC, and sets up the functions."""
        await self.bench.reset()
        self.received.forget()
        self.nic.format = FORMATS[kind]
        self.nic.restart()
        await self.functions.set_up(host, receive)
        await self.set_up(in_place=in_place)
