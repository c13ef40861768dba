# SPDX-License-Identifier: Apache-2.0
"""Tests cells with several streams at one side: stream_arbiter and stream_demux."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench, Item, Sink, Source
from simulate import Instances, simulate

PACES = [(0, 0), (0.5, 0), (0, 0.5), (0.3, 0.3), (0.1, 0.9)]

INSTANCES: Instances = {
    "demux_2": ("stream_demux", {"Outputs": 2, "Width": 512}),
    "demux_5": ("stream_demux", {"Outputs": 5, "Width": 8}),
}
for _inputs in (2, 3, 8):
    for _fixed in (0, 1):
        for _packets in (0, 1):
            INSTANCES[f"arbiter_{_inputs}_{_fixed}_{_packets}"] = (
                "stream_arbiter",
                {"Inputs": _inputs, "Width": 512 if _inputs == 2 else 16, "Fixed": _fixed, "Packets": _packets},
            )


def names(cell: str) -> list[str]:
    return [name for name, (kind, _) in INSTANCES.items() if kind == cell]


def sources(bench: Bench, name: str, count: int, fields: dict[str, int]) -> list[Source]:
    """Creates one source for each input of an instance whose inputs are vectors."""
    scope: Any = getattr(bench.dut, name)
    return [
        Source(
            bench,
            bench.pin(scope, "s_valid", i),
            bench.pin(scope, "s_ready", i),
            [bench.pin(scope, f"s_{field}", i, width) for field, width in fields.items()],
        )
        for i in range(count)
    ]


def sinks(bench: Bench, name: str, count: int) -> list[Sink]:
    """Creates one sink for each output. All sinks share the payload."""
    scope: Any = getattr(bench.dut, name)
    payload = bench.pin(scope, "m_payload")
    return [
        Sink(bench, bench.pin(scope, "m_valid", i), bench.pin(scope, "m_ready", i), [payload]) for i in range(count)
    ]


@cocotb.test()
async def demux_sends_each_beat_where_it_belongs(dut: Any) -> None:
    bench = Bench(dut)
    lanes = []
    for name in names("stream_demux"):
        scope = getattr(dut, name)
        source = bench.source(scope)
        source.fields.append(bench.pin(scope, "select_i"))
        lanes.append((source, sinks(bench, name, INSTANCES[name][1]["Outputs"])))
    await bench.reset()
    for idle, stall in PACES:
        expected: list[list[list[Item]]] = []
        for source, outputs in lanes:
            source.idle = idle
            expected.append([[] for _ in outputs])
            for sink in outputs:
                sink.stall = stall
                sink.items.clear()
            for _ in range(300):
                value = bench.random.getrandbits(source.fields[0].width)
                chosen = bench.random.randrange(len(outputs))
                source.items.append((value, chosen))
                expected[-1][chosen].append(value)
        await bench.until(lambda: all(not source.items for source, _ in lanes))
        for lists, (_, outputs) in zip(expected, lanes, strict=True):
            assert [sink.items for sink in outputs] == lists


class Arbiter:
    """An arbiter with packets of 1 to 4 beats at its inputs. The payload consists of the input and the number of the
    beat."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.name, self.parameters = name, INSTANCES[name][1]
        self.width = self.parameters["Width"]
        self.inputs = sources(bench, name, self.parameters["Inputs"], {"payload": self.width, "last": 1})
        self.sink = bench.sink(getattr(bench.dut, name), fields=("payload", "last", "index"))
        self.random = bench.random

    def queue(self, packets: int, beats: int = 4) -> None:
        for i, source in enumerate(self.inputs):
            number = 0
            for _ in range(packets):
                length = self.random.randint(1, beats)
                for j in range(length):
                    source.items.append(((i << 12) | number, j == length - 1))
                    number += 1

    @property
    def done(self) -> bool:
        return all(not source.items for source in self.inputs)

    def check(self, queued: list[list[Item]]) -> None:
        """Checks that the beats of each input came in order, with its index, and that packets are whole where
        required."""
        got: list[list[Item]] = [[] for _ in self.inputs]
        holder: int | None = None
        for item in self.sink.items:
            assert isinstance(item, tuple)
            payload, last, index = item
            assert payload >> 12 == index, self.name
            got[index].append((payload, bool(last)))
            if self.parameters["Packets"]:
                assert holder in (None, index), self.name
                holder = None if last else index
        assert got == queued, self.name


@cocotb.test()
async def arbiter_loses_and_mixes_nothing(dut: Any) -> None:
    bench = Bench(dut)
    arbiters = [Arbiter(bench, name) for name in names("stream_arbiter")]
    await bench.reset()
    for idle, stall in PACES:
        for arbiter in arbiters:
            arbiter.sink.stall = stall
            for source in arbiter.inputs:
                source.idle = idle
            arbiter.queue(20)
        await bench.cycle(17)
        await bench.reset(1)  # in the middle of packets
        queued = []
        for arbiter in arbiters:
            arbiter.queue(20)
            queued.append([list(source.items) for source in arbiter.inputs])
        await bench.until(lambda: all(arbiter.done for arbiter in arbiters))
        for arbiter, items in zip(arbiters, queued, strict=True):
            arbiter.check(items)


@cocotb.test()
async def round_robin_takes_turns_and_fixed_prefers_the_lowest(dut: Any) -> None:
    bench = Bench(dut)
    arbiters = [Arbiter(bench, name) for name in names("stream_arbiter")]
    await bench.reset()
    for arbiter in arbiters:
        arbiter.queue(40, beats=1)
    await bench.cycle(40)
    for arbiter in arbiters:
        order = [item[2] for item in arbiter.sink.items if isinstance(item, tuple)]
        assert len(order) == 40, f"{arbiter.name} was idle"
        inputs = len(arbiter.inputs)
        expected = [0] * 40 if arbiter.parameters["Fixed"] else [i % inputs for i in range(40)]
        assert order == expected, arbiter.name


def test_stream_network() -> None:
    simulate(__file__, INSTANCES)
