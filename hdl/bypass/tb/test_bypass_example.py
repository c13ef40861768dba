# SPDX-License-Identifier: Apache-2.0
"""The function of docs/guide/bypass-own-function.md: alone at every speed, and behind the bypass core with a NIC."""

from __future__ import annotations

import re
from typing import Any

import cocotb
from bench import Bench
from bypass_cores import PACKAGES
from bypass_formats import FORMATS
from bypass_rig import Rig, beats_of
from simulate import ROOT, simulate

TOP = """
`include "axi.svh"
module top (input wire clk_i, input wire rst_i);
  import bypass_pkg::*;
  bypass_example alone (.clk_i, .rst_i);
  bypass_axis_t rx, tx;
  logic rx_valid, rx_ready, tx_valid, tx_ready;
  bypass_core #(.QueueBits(1), .RxRingBits(5), .TxRingBits(5)) core (.clk_i, .rst_i,
      `AXIS_PORTS(m_rx, rx_valid, rx_ready, rx), `AXIS_PORTS(s_tx, tx_valid, tx_ready, tx));
  bypass_example behind (.clk_i, .rst_i, .s_valid(rx_valid), .s_ready(rx_ready), .s_payload(rx),
      .m_valid(tx_valid), .m_ready(tx_ready), .m_payload(tx));
endmodule
"""


def answer(frame: bytes) -> bytes | None:
    """The expected answer; none for a group, which the lowest bit of the first byte marks (IEEE 802.3)."""
    return None if frame[0] & 1 else frame[6:12] + frame[:6] + frame[12:]


class JoinedRig(Rig):
    """The core with its streams connected to the example."""

    def _streams(self) -> None:
        pass


@cocotb.test()
async def frames_go_back_at_every_pace(dut: Any) -> None:
    """Frames return whole and in order, a beat a cycle, except those to groups. A reset in flight starts afresh."""
    bench = Bench(dut)
    source, sink = bench.source(dut.alone), bench.sink(dut.alone)

    def packed(frame: bytes, queue: int) -> list[int]:
        beats = beats_of(frame, queue, bench.random.getrandbits)
        return [user << 577 | last << 576 | keep << 512 | data for data, keep, last, user in beats]

    def received() -> list[tuple[int, bytes]]:
        found, data = [], b""
        for beat in sink.items:
            count = (beat >> 512 & (1 << 64) - 1).bit_count()  # type: ignore[operator]
            data += (beat & (1 << 512) - 1).to_bytes(64, "little")[:count]  # type: ignore[operator]
            if beat >> 576 & 1:  # type: ignore[operator]
                found.append((beat >> 577, data))  # type: ignore[operator]
                data = b""
        return found

    for idle, stall in ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.3, 0.3), (0.0, 0.0)):
        await bench.reset()
        source.idle, sink.stall = idle, stall
        frames = [bench.random.randbytes(bench.random.choice([17, 60, 64, 65, 128, 1514])) for _ in range(60)]
        for i, frame in enumerate(frames):
            source.items.extend(packed(frame, i % 16))
        expected = [(len(f) | i % 16 << 16, back) for i, f in enumerate(frames) if (back := answer(f)) is not None]
        await bench.until(lambda: not source.items)
        await bench.cycle(20)
        assert received() == expected
        if idle == stall == 0.0:
            assert source.cycles_of[-1] - source.cycles_of[-50] == 49, "not a beat a cycle"
        source.items.extend(packed(bytes(200), 0))
        await bench.cycle(2)


@cocotb.test()
async def behind_the_core_a_nic_gets_its_frames_back(dut: Any) -> None:
    """For several families, each received frame is returned, or is addressed to a group."""
    rig = JoinedRig(dut, "core", queue_bits=1, rx_bits=5, tx_bits=5)
    for kind in ("e1000e", "i40e"):
        await rig.bench.reset()
        rig.nic.format = FORMATS[kind]
        rig.nic.restart()
        await rig.set_up()
        frames = [[rig.random_frame(size) for size in rig.lengths(40, 1514)] for _ in range(2)]
        for queue, some in enumerate(frames):
            for frame in some:
                rig.arrive(frame, queue)
        expected = [[back for frame in some if (back := answer(frame)) is not None] for some in frames]
        await rig.bench.until(lambda: list(map(len, rig.nic.sent)) == list(map(len, expected)))  # noqa: B023
        assert rig.nic.sent == expected
        found = await rig.counters()
        assert found["rx_frames"] == 80
        assert found["tx_done"] == found["tx_in"] == sum(map(len, expected))
        assert not rig.nic.errors


def test_bypass_example() -> None:
    simulate(__file__, text=TOP, sources=PACKAGES)


def test_docs_show_the_example() -> None:
    page = (ROOT / "docs" / "guide" / "bypass-own-function.md").read_text()
    shown = re.findall(r"```text\n  logic (.*?)```", page, re.DOTALL)
    assert len(shown) == 1
    assert shown[0] in (ROOT / "hdl" / "bypass" / "functions" / "bypass_example.sv").read_text()
