# SPDX-License-Identifier: Apache-2.0
"""Tests lutram, simple_dual_port_ram, shared_port_ram, counter_ram, credit_counter and byte_shift against Python
models."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from simulate import Instances, simulate

INSTANCES: Instances = {
    "lutram_8_5": ("lutram", {"Width": 8, "Depth": 5, "ReadPorts": 1}),
    "lutram_64_32": ("lutram", {"Width": 64, "Depth": 32, "ReadPorts": 3}),
    "counters_3": ("counter_ram", {"Counters": 3, "Width": 4}),
    "counters_128": ("counter_ram", {"Counters": 128, "Width": 32, "AmountWidth": 11}),
    "credits_1": ("credit_counter", {"Credits": 1}),
    "credits_10": ("credit_counter", {"Credits": 10}),
    "shift_plain": ("byte_shift", {"Bytes": 64, "Multipliers": 0}),
    "shift_64": ("byte_shift", {"Bytes": 64, "Multipliers": 1}),
    "shift_5": ("byte_shift", {"Bytes": 5, "Multipliers": 1, "Each": 4}),
}
for _ultra in (0, 1):
    for _forward in (0, 1):
        for _register in (0, 1):
            INSTANCES[f"ram_{_ultra}_{_forward}_{_register}"] = (
                "simple_dual_port_ram",
                {
                    "Width": 72 if _forward else 8,
                    "Depth": 5 if _register else 16,
                    "Ultra": _ultra,
                    "Forward": _forward,
                    "OutputRegister": _register,
                },
            )
    for _forward, _parts in ((0, 9), (1, 8), (1, 24)):
        INSTANCES[f"ram_{_ultra}_{_forward}_parts_{_parts}"] = (
            "simple_dual_port_ram",
            {"Width": 72, "Depth": 8, "WriteWidth": _parts, "Ultra": _ultra, "Forward": _forward, "OutputRegister": 0},
        )
for _register in (0, 1):
    for _width, _depth in ((1, 2), (8, 5), (139, 16)):
        INSTANCES[f"shared_{_width}_{_register}"] = (
            "shared_port_ram",
            {"Width": _width, "Depth": _depth, "OutputRegister": _register},
        )


def names(cell: str) -> list[str]:
    return [name for name, (kind, _) in INSTANCES.items() if kind == cell]


@cocotb.test()
async def lutram_reads_what_was_written(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    draw = bench.random
    for name in names("lutram"):
        scope, parameters = getattr(dut, name), INSTANCES[name][1]
        width, depth, ports = parameters["Width"], parameters["Depth"], parameters["ReadPorts"]
        bits = (depth - 1).bit_length()
        write, address = bench.pin(scope, "write_i"), bench.pin(scope, "write_address_i")
        data = bench.pin(scope, "write_data_i")
        reads = [bench.pin(scope, "read_address_i", i, bits) for i in range(ports)]
        results = [bench.pin(scope, "read_data_o", i, width) for i in range(ports)]
        model = [0] * depth
        for _ in range(500):
            w, a, d = draw.getrandbits(1), draw.randrange(depth), draw.getrandbits(width)
            wanted = [draw.randrange(depth) for _ in reads]
            write.set(w), address.set(a), data.set(d)
            for pin, index in zip(reads, wanted, strict=True):
                pin.set(index)
            await bench.settle()
            assert [pin.get() for pin in results] == [model[index] for index in wanted], name
            await bench.cycle()
            if w:
                model[a] = d


@cocotb.test()
async def bytes_move_down_and_stay_until_they_may_move(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    draw = bench.random
    for name in names("byte_shift"):
        scope, size = getattr(dut, name), INSTANCES[name][1]["Bytes"]
        load, move = bench.pin(scope, "load_i"), bench.pin(scope, "move_i")
        data, down, result = (bench.pin(scope, pin) for pin in ("data_i", "down_i", "data_o"))
        loaded: bytes | None = None  # the data that the next move_i shifts
        shown: bytes | None = None
        for _ in range(400):
            came, lanes = draw.randbytes(size + 3), draw.randrange(4)
            loads, moves = draw.random() < 0.7, draw.random() < 0.7
            load.set(loads), move.set(moves), down.set(lanes), data.set(int.from_bytes(came, "little"))
            await bench.cycle()
            if moves:
                shown = loaded
            if loads:
                loaded = came[lanes : lanes + size]
            await bench.settle()
            assert shown is None or result.get() == int.from_bytes(shown, "little"), name


@cocotb.test()
async def ram_reads_old_or_forwarded_data_and_holds_it(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    draw = bench.random
    for name in names("simple_dual_port_ram"):
        scope, parameters = getattr(dut, name), INSTANCES[name][1]
        width, depth = parameters["Width"], parameters["Depth"]
        part = parameters.get("WriteWidth", width)
        write, address = bench.pin(scope, "write_i"), bench.pin(scope, "write_address_i")
        data = bench.pin(scope, "write_data_i")
        read, read_address = bench.pin(scope, "read_i"), bench.pin(scope, "read_address_i")
        result = bench.pin(scope, "read_data_o")
        model = [0] * depth
        latency = 2 if parameters["OutputRegister"] else 1
        # The output in each of the next cycles. None: unknown.
        pipeline: list[int | None] = [None] * (latency + 1)
        for _ in range(600):
            w, a, d = draw.getrandbits(width // part), draw.randrange(depth), draw.getrandbits(width)
            r, ra = draw.random() < 0.6, draw.randrange(depth)
            write.set(w), address.set(a), data.set(d), read.set(r), read_address.set(ra)
            mask = sum(((1 << part) - 1) << part * i for i in range(width // part) if w >> i & 1)
            after = (model[a] & ~mask) | (d & mask)
            pipeline.append(pipeline[-1] if not r else after if parameters["Forward"] and a == ra else model[ra])
            await bench.cycle()
            del pipeline[0]
            await bench.settle()
            shown = pipeline[1] if latency == 2 else pipeline[-1]
            assert shown is None or result.get() == shown, name
            model[a] = after


@cocotb.test()
async def shared_ports_see_what_comes_before_them(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    draw = bench.random
    for name in names("shared_port_ram"):
        scope, parameters = getattr(dut, name), INSTANCES[name][1]
        width, depth = parameters["Width"], parameters["Depth"]
        write, address, data = (bench.pin(scope, f"write{pin}_i") for pin in ("", "_address", "_data"))
        port = {pin: bench.pin(scope, f"port_{pin}_i") for pin in ("read", "write", "address", "data")}
        result = bench.pin(scope, "read_data_o")
        model = [0] * depth
        latency = 2 if parameters["OutputRegister"] else 1
        pipeline: list[int | None] = [None] * (latency + 1)
        met = [0, 0]  # counts of reads and writes of the entry that the other port writes
        for _ in range(800):
            w, a, d = draw.getrandbits(1), draw.randrange(depth), draw.getrandbits(width)
            does, pa, pd = draw.choice(["read", "read", "write", ""]), draw.randrange(depth), draw.getrandbits(width)
            write.set(w), address.set(a), data.set(d)
            port["read"].set(does == "read"), port["write"].set(does == "write")
            port["address"].set(pa), port["data"].set(pd)
            if w:
                model[a] = d
            if does == "write":
                model[pa] = pd
            if w and a == pa and does:
                met[does == "write"] += 1
            pipeline.append(model[pa] if does == "read" else pipeline[-1])
            await bench.cycle()
            del pipeline[0]
            await bench.settle()
            shown = pipeline[1] if latency == 2 else pipeline[-1]
            assert shown is None or result.get() == shown, name
        assert min(met) > 2, name


class Counters:
    """A counter_ram and its model. Events are visible two cycles later."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope, parameters = getattr(bench.dut, name), INSTANCES[name][1]
        self.bench, self.name, self.count = bench, name, parameters["Counters"]
        self.mask = (1 << parameters["Width"]) - 1
        self.pins = {
            p: bench.pin(scope, p) for p in ("add_i", "index_i", "amount_i", "read_i", "read_index_i", "clear_i")
        }
        self.data, self.clearing = bench.pin(scope, "read_data_o"), bench.pin(scope, "clearing_o")
        self.model = [0] * self.count

    async def event(self, index: int, amount: int, add: int = 1) -> None:
        self.pins["add_i"].set(add), self.pins["index_i"].set(index), self.pins["amount_i"].set(amount)
        await self.bench.cycle()
        if add:
            self.model[index] = (self.model[index] + amount) & self.mask

    async def read_all(self) -> list[int]:
        self.pins["add_i"].set(0)
        await self.bench.cycle()
        values = []
        for i in range(self.count):
            self.pins["read_i"].set(1), self.pins["read_index_i"].set(i)
            await self.bench.cycle()
            self.pins["read_i"].set(0), self.pins["read_index_i"].set(self.bench.random.randrange(self.count))
            await self.bench.cycle(self.bench.random.randint(1, 2))
            values.append(self.data.get())
        return values


@cocotb.test()
async def counters_count_every_event(dut: Any) -> None:
    bench = Bench(dut)
    for name in names("counter_ram"):
        counters = Counters(bench, name)
        await bench.reset()
        await bench.until(lambda c=counters: c.clearing.get() == 0)
        assert await counters.read_all() == counters.model, name
        draw, width = bench.random, counters.pins["amount_i"].width
        for spread in (1, 2, 3, counters.count):  # from one counter repeatedly to all counters
            for _ in range(300):
                index = draw.randrange(min(spread, counters.count))
                await counters.event(index, draw.getrandbits(width), add=draw.random() < 0.8)
            assert await counters.read_all() == counters.model, name
        counters.pins["clear_i"].set(1)
        await bench.cycle()
        counters.pins["clear_i"].set(0)
        await bench.cycle()
        await bench.until(lambda c=counters: c.clearing.get() == 0)
        assert await counters.read_all() == [0] * counters.count, name


@cocotb.test()
async def credits_are_never_made_or_lost(dut: Any) -> None:
    bench = Bench(dut)
    draw = bench.random
    for name in names("credit_counter"):
        scope, total = getattr(dut, name), INSTANCES[name][1]["Credits"]
        take, give = bench.pin(scope, "take_i"), bench.pin(scope, "give_i")
        available, count = bench.pin(scope, "available_o"), bench.pin(scope, "count_o")
        take.set(0), give.set(0)
        await bench.reset()
        await bench.settle()
        here = total
        for cycle in range(1000):
            if cycle == 500:
                take.set(0), give.set(0)
                await bench.reset()
                await bench.settle()
                here = total
            assert (available.get(), count.get()) == (here > 0, here), name
            take_now = here > 0 and draw.random() < (0.8 if cycle % 100 < 50 else 0.2)
            give_now = here < total and draw.random() < 0.5
            take.set(take_now), give.set(give_now)
            await bench.cycle()
            here += give_now - take_now
            await bench.settle()


def test_memories() -> None:
    simulate(__file__, INSTANCES)
