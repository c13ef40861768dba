# SPDX-License-Identifier: Apache-2.0
"""Starts, ends and kills clients and readers of one agent, and checks that the agent frees their resources.

`make soak` runs it for an hour. After a warm-up of 1 minute, the agent's descriptors, threads and anonymous memory must
not grow by more than 10 %. python/tests/test_soak.py runs a few rounds in every test run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

import wherry
from wherry.session import sessionfile
from wherry.session.metrics import read_metrics
from wherry.session.sessionfile import SessionFile
from wherry.system import paths

SETTLE_S = 120.0
"""Time limit for the agent to clean up after clients, far longer than it needs."""
TOLERANCE = 0.10


@dataclass(frozen=True)
class Usage:
    """What a process holds."""

    descriptors: int
    threads: int
    anonymous_kib: int

    @staticmethod
    def of(pid: int) -> Usage:
        """The resources that process `pid` holds now."""
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        return Usage(
            descriptors=len(os.listdir(f"/proc/{pid}/fd")),
            threads=int(fields["Threads"]),
            anonymous_kib=int(fields["RssAnon"].split()[0]),
        )

    def within(self, base: Usage) -> bool:
        """Whether every value is at most TOLERANCE above `base`."""
        return all(
            now <= before * (1 + TOLERANCE)
            for now, before in (
                (self.descriptors, base.descriptors),
                (self.threads, base.threads),
                (self.anonymous_kib, base.anonymous_kib),
            )
        )


class Soak:
    """One agent and its clients. `transports`: transports of the clients that are killed."""

    def __init__(self, session: SessionFile, transports: tuple[str, ...] = ("auto",), seed: int = 1) -> None:
        self._session = session
        self._transports = transports
        self._random = random.Random(seed)
        self._batch = pa.record_batch({"x": np.arange(2000), "s": pa.array(["abc"] * 2000)})
        self._own = wherry.Session(str(session.path))
        self._stream = self._own.stream("kept", self._batch, keep_frames=8)
        for _ in range(8):
            self._stream.offload(self._batch).wait(60)
        self._client, self._options = wherry.flight_client(session.path)
        self.counts = {"rounds": 0, "kills": 0, "cancelled": 0, "gets": 0, "readers": 0, "sessions": 0}

    def close(self) -> None:
        """Leaves the agent."""
        self._client.close()
        self._stream.close()
        self._own.close()

    def round(self) -> None:
        """Runs each kind of client once, in random order."""
        steps = [self._kill, self._cancel, self._get, self._connect, self._read_here, self._use]
        self._random.shuffle(steps)
        for step in steps:
            step()
        self.counts["rounds"] += 1

    def usage(self) -> Usage:
        """The resources that the agent holds now."""
        return Usage.of(self._session.pid)

    def quiet(self) -> None:
        """Waits until this client is the agent's only one."""
        deadline = time.monotonic() + SETTLE_S
        while read_metrics(self._session).get("wherry_agent_sessions") != 1:
            if time.monotonic() > deadline:
                raise AssertionError("the agent still has sessions of clients that are gone")
            time.sleep(0.05)

    def settled(self, base: Usage | None = None, look_s: float = 3.0) -> Usage:
        """The agent's resources when no other client uses it. With `base`, waits until they are within it, or the time
        limit.

        Without `base`, returns the largest values in `look_s` seconds, because threads of the Flight server start and
        end.
        """
        self.quiet()
        seen = self.usage()
        deadline = time.monotonic() + (look_s if base is None else SETTLE_S)
        while time.monotonic() < deadline and not (base is not None and seen.within(base)):
            time.sleep(0.1)
            now = self.usage()
            if base is not None:
                seen = now
                continue
            seen = Usage(
                max(seen.descriptors, now.descriptors),
                max(seen.threads, now.threads),
                max(seen.anonymous_kib, now.anonymous_kib),
            )
        return seen

    def _kill(self) -> None:
        """Kills a client while it starts, or while offloads are in flight."""
        for transport in self._transports:
            program = paths.built("src", "fault_client")
            line = [str(program), str(self._session.path), "die", *([] if transport == "auto" else [transport])]
            before = read_metrics(self._session).get("wherry_move_offloads_total", 0.0)
            with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
                try:
                    if self._random.random() < 0.5:
                        time.sleep(self._random.uniform(0, 0.3))
                    else:
                        deadline = time.monotonic() + SETTLE_S
                        while read_metrics(self._session).get("wherry_move_offloads_total", 0.0) < before + 2:
                            if client.poll() is not None or time.monotonic() > deadline:
                                raise AssertionError(f"a client over {transport} delivers nothing ({client.poll()})")
                            time.sleep(0.005)
                finally:
                    client.send_signal(signal.SIGKILL)
            self.counts["kills"] += 1
            self.quiet()  # the next client's stream has the same name

    def _cancel(self) -> None:
        for _ in range(20):
            follow = b'{"stream":"kept","follow":true}'
            reader = self._client.do_get(flight.Ticket(follow), self._options)
            reader.read_chunk()
            reader.cancel()
            self.counts["cancelled"] += 1

    def _get(self) -> None:
        for _ in range(5):
            self._client.do_get(flight.Ticket(b"kept"), self._options).read_all()
            list(self._client.list_flights(b"", self._options))
            self.counts["gets"] += 1

    def _connect(self) -> None:
        client, options = wherry.flight_client(self._session.path)
        with client:
            client.do_get(flight.Ticket(b"kept"), options).read_all()
            # A reader that leaves in the middle.
            client.do_get(flight.Ticket(b'{"stream":"kept","follow":true}'), options).read_chunk()

    def _read_here(self) -> None:
        with wherry.open("kept", self._session.path, follow=False) as reader:
            for _ in reader:
                pass
        with wherry.open("kept", self._session.path, follow=True) as reader:
            next(iter(reader))
        self.counts["readers"] += 2

    def _use(self) -> None:
        # Uses few names, because the agent keeps frames of closed streams, up to its budget, until a name is used
        # again.
        with wherry.Session(str(self._session.path)) as session:
            stream = session.stream(f"short-{self._random.randrange(4)}", self._batch)
            for _ in range(4):
                stream.offload(self._batch).wait(60)
            stream.close()
        self.counts["sessions"] += 1


def main() -> int:
    """Runs the soak test. The exit status shows whether the agent stayed within its limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="default: an hour")
    parser.add_argument("--warm-up", type=float, default=60.0, help="seconds before the first look")
    parser.add_argument("--transports", default="auto,tcp", help="of the clients that are killed")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wherry-soak-")))
        program = [str(paths.wherryd()), "--session-file", str(directory / "agent.json"), "--budget", "256MiB"]
        agent = subprocess.Popen([*program, "--log-file", str(directory / "agent.log"), "--log-level", "error"])
        stack.callback(agent.wait)
        stack.callback(agent.terminate)
        deadline = time.monotonic() + SETTLE_S
        while True:
            try:
                session = sessionfile.load_session(directory / "agent.json")
                break
            except wherry.Error:
                if agent.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        soak = Soak(session, tuple(options.transports.split(",")))
        stack.callback(soak.close)
        begin = time.monotonic()
        while time.monotonic() - begin < options.warm_up:
            soak.round()
        base = soak.settled()
        print(f"after {options.warm_up:g} s: {base}", flush=True)
        told = time.monotonic()
        while time.monotonic() - begin < options.seconds:
            soak.round()
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{told - begin:6.0f} s {soak.usage()} {soak.counts}", flush=True)
        last = soak.settled(base)
        print(f"at the end: {last} {soak.counts}")
        if agent.poll() is not None:
            print(f"the agent ended with {agent.returncode}")
            return 1
        return 0 if last.within(base) else 1


if __name__ == "__main__":
    sys.exit(main())
