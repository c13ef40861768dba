# SPDX-License-Identifier: Apache-2.0
"""bypass_function_set by itself: its streams, its registers, and a wire from its generator back to its checker."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from bench import Bench, Sink, Source
from bypass_rig import STREAM, Frames, Registers, beats_of
from functions_rig import FunctionRegisters

INSTANCES = {"all": (8, 1), "lean": (3, 0)}
"""Per instance: the number of rules, and whether it has a generator."""
TOP = """
`include "axi.svh"
module flat_set #(parameter int unsigned Rules = 8, parameter bit Generator = 1) (
    `AXI_LITE_SUBORDINATE(s_axil, 16, 32)
    `AXIS_RECEIVER(s_rx, 512, 48)
    `AXIS_RECEIVER(s_head, 512, 48)
    `AXIS_TRANSMITTER(m_verdict, 512, 48)
    `AXIS_TRANSMITTER(m_tx, 512, 48)
    `AXIS_TRANSMITTER(m_rx, 512, 48)
    `AXIS_RECEIVER(s_tx, 512, 48)
    input wire clk_i, input wire rst_i
);
  import bypass_pkg::*;
  bypass_axil_req_t req;
  bypass_axil_resp_t resp;
  `AXI_LITE_FROM_FLAT(s_axil, req, resp)
  to_function_t given, elsewhere;
  from_function_t taken, answered;
  to_judge_t heads;
  from_judge_t judged;
  assign given = {s_rx_tvalid, s_rx_tuser, s_rx_tlast, s_rx_tkeep, s_rx_tdata, m_tx_tready};
  assign {m_tx_tvalid, m_tx_tuser, m_tx_tlast, m_tx_tkeep, m_tx_tdata, s_rx_tready} = taken;
  assign heads = {s_head_tvalid, s_head_tuser, s_head_tlast, s_head_tkeep, s_head_tdata, m_verdict_tready};
  assign {m_verdict_tvalid, m_verdict_tuser, m_verdict_tlast, m_verdict_tkeep, m_verdict_tdata, s_head_tready} = judged;
  assign {m_rx_tvalid, m_rx_tuser, m_rx_tlast, m_rx_tkeep, m_rx_tdata, s_tx_tready} = elsewhere;
  assign answered = {s_tx_tvalid, s_tx_tuser, s_tx_tlast, s_tx_tkeep, s_tx_tdata, m_rx_tready};
  bypass_function_set #(.Rules(Rules), .Generator(Generator)) dut (
      .clk_i, .rst_i, .s_axil_req(req), .s_axil_resp(resp), .stream_i(given), .stream_o(taken),
      .place_i(heads), .place_o(judged), .elsewhere_o(elsewhere), .elsewhere_i(answered));
endmodule
module top (input wire clk_i, input wire rst_i);
  flat_set #(.Rules(8), .Generator(1)) all (.clk_i, .rst_i);
  flat_set #(.Rules(3), .Generator(0)) lean (.clk_i, .rst_i);
endmodule
"""


@dataclass
class Verdict:
    """A verdict on a frame in place."""

    forward: bool
    replaced: bytes | None


class SetRig:
    """The rig around one of the two instances."""

    def __init__(self, dut: Any, name: str = "all", seed: int = 1, bench: Bench | None = None) -> None:
        self.bench = bench or Bench(dut, seed)
        self.scope = getattr(dut, name)
        self.bus = Registers(self.bench, self.scope)
        self.functions = FunctionRegisters(self.bus, 0)
        self.rx, self.head, self.tx = (self.stream(Source, prefix) for prefix in ("s_rx", "s_head", "s_tx"))
        self.out, self.elsewhere = self.stream(Sink, "m_tx"), self.stream(Sink, "m_rx")
        self.verdict: Sink = self.stream(Sink, "m_verdict")
        self.sent, self.passed = Frames(self.out), Frames(self.elsewhere)

    def stream(self, kind: Any, prefix: str) -> Any:
        """Creates a source or a sink at that prefix."""
        valid, ready, *fields = (self.bench.pin(self.scope, f"{prefix}_{n}") for n in ("tvalid", "tready", *STREAM))
        return kind(self.bench, valid, ready, fields)

    async def begin(self) -> None:
        """Resets the instance."""
        await self.bench.reset()
        self.sent.forget()
        self.passed.forget()

    def pace(self, idle: float, stall: float) -> None:
        """Sets the pace of all agents."""
        for source in (self.rx, self.head, self.tx):
            source.idle = idle
        for sink in (self.out, self.elsewhere, self.verdict):
            sink.stall = stall

    def give(self, frame: bytes, pair: int = 0) -> None:
        """Sends a frame into the stream."""
        stamp = self.bench.random.getrandbits(24) << 24
        self.rx.items.extend(
            (data, keep, last, user | stamp) for data, keep, last, user in beats_of(frame, pair, self._noise)
        )

    def show(self, frame: bytes, pair: int = 0) -> None:
        """Sends the first beat of a frame in place."""
        data, keep, _, user = beats_of(frame, pair, self._noise)[0]
        self.head.items.append((data, keep, 1, user))

    def _noise(self, bits: int) -> int:
        return self.bench.random.getrandbits(bits)

    @property
    def verdicts(self) -> list[Verdict]:
        """Returns the verdicts so far."""
        return [
            Verdict(bool(user & 1), data.to_bytes(64, "little") if user & 2 else None)
            for data, _, last, user in self.verdict.items  # type: ignore[misc]
            if last
        ]


class Wire:
    """Carries frames from the generator back to the checker. `fate` decides how often, how late and with what
    changes."""

    def __init__(self, rig: SetRig) -> None:
        self.rig = rig
        self.taken = 0
        self.flying: deque[tuple[int, bytes]] = deque()
        self.frames: list[bytes] = []
        rig.bench.agents.append(self)

    def fate(self, frame: bytes) -> list[tuple[int, bytes]]:
        """Returns the copies of a frame that arrive: delay in cycles, and bytes."""
        return [(0, frame)]

    def drive(self) -> None:
        """Does nothing."""

    def sample(self) -> None:
        """Collects the sent frames, and delivers those that are due."""
        frames = self.rig.sent.update()
        for _, frame in frames[self.taken :]:
            self.frames.append(frame)
            for delay, found in self.fate(frame):
                self.flying.append((self.rig.bench.cycles + delay, found))
        self.taken = len(frames)
        for item in [item for item in self.flying if item[0] <= self.rig.bench.cycles]:
            self.flying.remove(item)
            self.rig.give(item[1])

    def reset(self) -> None:
        """Forgets the frames."""
        self.taken = 0
        self.flying.clear()
        self.frames.clear()
