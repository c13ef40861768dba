# SPDX-License-Identifier: Apache-2.0
"""A function that forwards, changes and drops frames in place at random, and predicts the result."""

from __future__ import annotations

from bypass_rig import FORWARD, REPLACE, Function, Rig


class Judge:
    """Random verdicts, and for each queue the frames that the NIC must send as a result."""

    def __init__(self, rig: Rig, forward: float = 0.7) -> None:
        self.rig, self.forward = rig, forward
        self.frames: list[list[bytes]] = [[] for _ in range(rig.queues)]  # that come, good ones
        self.seen = [0] * rig.queues
        self.expected: list[list[bytes]] = [[] for _ in range(rig.queues)]
        self.dropped = 0
        Function(rig, self.decide)

    def decide(self, queue: int, size: int, first: bytes) -> tuple[int, bytes]:
        """Decides about the next frame from its head."""
        frame = self.frames[queue][self.seen[queue]]
        self.seen[queue] += 1
        assert size == len(frame)
        assert first == frame[:64]
        draw = self.rig.bench.random
        if draw.random() >= self.forward:
            self.dropped += 1
            return draw.choice([0, REPLACE]), draw.randbytes(64)
        new = draw.randbytes(64)
        replace = draw.random() < 0.5
        self.expected[queue].append(new[: min(64, size)] + frame[64:] if replace else frame)
        return FORWARD | (REPLACE if replace else 0), new

    def arrive(self, frame: bytes, queue: int, *, error: bool = False) -> None:
        """A frame arrives at the wire."""
        if not error:
            self.frames[queue].append(frame)
        self.rig.arrive(frame, queue, error=error)

    def done(self) -> bool:
        """Returns true if all frames have been judged and sent."""
        judged = all(seen == len(frames) for seen, frames in zip(self.seen, self.frames, strict=True))
        return judged and all(
            len(sent) == len(expected) for sent, expected in zip(self.rig.nic.sent, self.expected, strict=True)
        )
