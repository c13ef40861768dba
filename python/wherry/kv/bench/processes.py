# SPDX-License-Identifier: Apache-2.0
"""The processes of one measurement. Each writes its output to a file, which helps to explain a failure."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from wherry.errors import BenchError
from wherry.system import Process
from wherry.system import how_it_ended as how_it_ended


class Processes:
    """Processes by role, such as "leader". They run until close()."""

    def __init__(self, name: str, directory: Path) -> None:
        """`name`: the measurement, for messages. `directory`: the folder of the output files, <name>-<role>.log."""
        self._name, self._directory = name, directory
        self._running: dict[str, Process] = {}

    def start(
        self,
        role: str,
        command: Sequence[str],
        cores: frozenset[int] | None = None,
        enter: Callable[[], None] | None = None,
    ) -> None:
        """Starts a process for the role, and ends its previous process. `enter`: runs in the new process first. Raises
        Error."""
        if role in self._running:
            self._running.pop(role).close()
        with self.log(role).open("ab") as output:
            self._running[role] = Process(
                f"{self._name}'s {role}", command, environment=os.environ,
                cores=set(cores or os.sched_getaffinity(0)), enter=enter, stdout=output, stderr=output,
            )  # fmt: skip

    def log(self, role: str) -> Path:
        """The output of the role's process."""
        return self._directory / f"{self._name}-{role}.log"

    def pid(self, role: str) -> int:
        """The process id of the role's process."""
        return self._running[role].pid

    def check(self) -> None:
        """Raises BenchError, with the end of its output, if a process has ended."""
        for role, process in self._running.items():
            if (status := process.poll()) is not None:
                raise BenchError(
                    f"{process.name} {how_it_ended(status)}: {self.log(role).read_text(errors='replace')[-400:]}"
                )

    def place(self, role: str, cores: frozenset[int]) -> None:
        """Moves all threads of the role's process to `cores`."""
        for thread in Path(f"/proc/{self.pid(role)}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)

    def send(self, number: signal.Signals, *roles: str) -> None:
        """Sends a signal to each of the roles' processes."""
        for role in roles:
            self._running[role].signal(number)

    def swap(self, one: str, other: str) -> None:
        """Exchanges the roles of two processes."""
        self._running[one], self._running[other] = self._running[other], self._running[one]

    def close(self) -> None:
        """Ends all processes."""
        for process in self._running.values():
            process.close()
