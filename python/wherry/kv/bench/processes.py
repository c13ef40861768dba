# SPDX-License-Identifier: Apache-2.0
"""The processes of one measurement: each with its output in a file, so that what killed it can be told."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from wherry.errors import BenchError
from wherry.system import Process
from wherry.system import how_it_ended as how_it_ended


class Processes:
    """By role, as "leader". They run until close()."""

    def __init__(self, name: str, directory: Path) -> None:
        """`name`: whose they are, for messages. `directory`: for the output, <name>-<role>.log."""
        self._name, self._directory = name, directory
        self._running: dict[str, Process] = {}

    def start(
        self,
        role: str,
        command: Sequence[str],
        cores: frozenset[int] | None = None,
        enter: Callable[[], None] | None = None,
    ) -> None:
        """In the place of the role's process before, which is ended. `enter`: what it does first. Raises Error."""
        if role in self._running:
            self._running.pop(role).close()
        with self.log(role).open("ab") as output:
            self._running[role] = Process(
                f"{self._name}'s {role}", command, environment=os.environ,
                cores=set(cores or os.sched_getaffinity(0)), enter=enter, stdout=output, stderr=output,
            )  # fmt: skip

    def log(self, role: str) -> Path:
        """What it printed."""
        return self._directory / f"{self._name}-{role}.log"

    def pid(self, role: str) -> int:
        """Its number."""
        return self._running[role].pid

    def check(self) -> None:
        """Raises BenchError when one has ended, with its last words."""
        for role, process in self._running.items():
            if (status := process.poll()) is not None:
                raise BenchError(
                    f"{process.name} {how_it_ended(status)}: {self.log(role).read_text(errors='replace')[-400:]}"
                )

    def place(self, role: str, cores: frozenset[int]) -> None:
        """Moves all its threads."""
        for thread in Path(f"/proc/{self.pid(role)}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)

    def send(self, number: signal.Signals, *roles: str) -> None:
        """To each of them."""
        for role in roles:
            self._running[role].signal(number)

    def swap(self, one: str, other: str) -> None:
        """Each has the other's role from now on."""
        self._running[one], self._running[other] = self._running[other], self._running[one]

    def close(self) -> None:
        """Ends all."""
        for process in self._running.values():
            process.close()
