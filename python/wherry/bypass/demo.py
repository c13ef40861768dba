# SPDX-License-Identifier: Apache-2.0
"""The live demonstration: the simulated card drives QEMU's NIC, which is at a TAP device in a separate network
namespace.

The program `bypass_demo` (sim/demo) does the work and reports. This module sets up the network namespace and the
cluster file, runs a command beside the program, and ends both. Everything is removed at the end, however the
demonstration ends: the TAP device with the program, the namespace with its last process.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from wherry.errors import PermissionDenied, Unavailable, Unsupported
from wherry.system import Process, Workspace, built, exit_status

HOST = "10.90.0.1"
"""This machine's address at the TAP device."""
NIC = "10.90.0.2"
"""The address of the simulated NIC."""
PREFIX = 24
PORT = 19286
MAC = "02:57:4b:56:01:01"
TAP = "nic0"
TAP_HERE = "wherry0"
"""The name of the TAP device if it is in this machine's own network namespace."""
GRACE_S = 150.0
"""The time from SIGTERM to SIGKILL. The program first gives the NIC back, which takes longer on a busy machine."""

Report = dict[str, Any]
"""A line of bypass_demo."""


@dataclass(frozen=True)
class DemoOptions:
    """What the demonstration shows."""

    nic: str = "e1000e"
    core: str = "rtl"
    qemu: str = ""
    """The QEMU program. Empty: the one on $PATH."""
    here: bool = False
    """Whether the TAP device is in this network namespace instead of a separate one."""
    host_runs: bool = False
    """Whether the host process continues to run after the set-up."""
    every_s: float = 0.5
    """Seconds between two reports."""


def cluster_text() -> str:
    """The cluster file of the kv node behind the NIC: one node, without a keeper."""
    network = f"{HOST.rpartition('.')[0]}.0/{PREFIX}"
    return (
        "# Written by `wherry bypass demo`.\n"
        f'[cluster]\nname = "demo"\nmode = "static"\nbucket_bits = 12\nlanes = 256\nclients = ["{network}"]\n'
        f'[[node]]\nnumber = 0\nudp = "{NIC}:{PORT}"\nmac = "{MAC}"\n'
    )


def _ways() -> list[list[str]]:
    """Command prefixes that enter a separate network namespace: for root, and for any user if user namespaces are
    allowed."""
    anybody = ["unshare", "--user", "--map-root-user", "--net"]
    return [["unshare", "--net"], anybody] if os.geteuid() == 0 else [anybody]


def own_network() -> list[str]:
    """The command that starts a program in a separate network namespace. Raises PermissionDenied, Unsupported."""
    said = ""
    for way in _ways():
        try:
            done = subprocess.run([*way, "--", "true"], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise Unsupported("the demonstration needs the program unshare: install util-linux") from None
        if done.returncode == 0:
            return way
        said = done.stderr.strip()
    raise PermissionDenied(
        f"the demonstration makes a network of its own, which takes root where user namespaces are not allowed: be "
        f"root ({said})"
    )


class Demo:
    """A running demonstration. The constructor raises Error if it cannot start; reports() raises Unavailable if it
    fails."""

    def __init__(self, options: DemoOptions) -> None:
        program = str(built("sim/demo", "bypass_demo"))
        self._inside = [] if options.here else own_network()
        with ExitStack() as stack:
            workspace = Workspace()
            stack.callback(workspace.close)
            self.cluster = workspace.directory / "cluster.toml"
            self.cluster.write_text(cluster_text())
            self._errors = workspace.directory / "errors"
            words = ["--tap", TAP_HERE if options.here else TAP, "--address", f"{HOST}/{PREFIX}"]
            words += ["--cluster", str(self.cluster), "--nic", options.nic, "--core", options.core]
            words += ["--every", str(round(options.every_s * 1000))]
            words += ["--qemu", options.qemu] if options.qemu else []
            words += ["--host-runs"] if options.host_runs else []
            words += [] if options.here else ["--loopback"]
            with self._errors.open("wb") as errors:
                self._process = self._start("bypass_demo", [*self._inside, program, *words], errors, subprocess.PIPE)
            workspace.sweep_also(self._process.pid)
            stack.callback(self._process.close)
            self._open = stack.pop_all()
        self._command: Process | None = None

    @staticmethod
    def _start(name: str, command: Sequence[str], errors: Any, output: int | None, stdin: int | None = None) -> Process:
        return Process(
            name,
            command,
            environment=os.environ,
            cores=os.sched_getaffinity(0),
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=output,
            stderr=errors,
        )

    @property
    def enter(self) -> list[str]:
        """The command prefix that starts a program where it can reach the NIC. Empty: this process can reach the
        NIC."""
        if not self._inside:
            return []
        user = ["--user", "--preserve-credentials"] if "--user" in self._inside else []
        return ["nsenter", f"--target={self._process.pid}", "--net", *user]

    def run(self, command: Sequence[str], output: int | None = None) -> None:
        """Starts a command where it can reach the NIC, with this cluster as the default of `wherry kv`. Call it once.

        `output`: a descriptor for its standard output; None: this process's own.
        """
        words = [*self.enter, "env", f"WHERRY_KV_CLUSTER={self.cluster}", *command]
        self._command = self._start(command[0], words, None, output)
        self._open.callback(self._command.close)

    @property
    def status(self) -> int | None:
        """The command's exit status in a shell's form. None: the command still runs, or was not started."""
        ended = None if self._command is None else self._command.poll()
        return None if ended is None else exit_status(ended)

    def reports(self, seconds: float | None = None) -> Iterator[Report]:
        """Yields the reports of bypass_demo as they arrive. They start after the set-up, and end with the command or
        after `seconds`."""
        output = self._process.stdout
        assert output is not None
        os.set_blocking(output.fileno(), False)
        end: float | None = None
        text = b""
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while True:
                if self._command is not None and self._command.pidfd not in selector.get_map():
                    selector.register(self._command.pidfd, selectors.EVENT_READ)
                selector.select(None if end is None else max(0.0, end - time.monotonic()))
                if self.status is not None or (end and time.monotonic() >= end):
                    return
                part = output.read()
                if part == b"":
                    raise Unavailable(self._why())
                *lines, text = (text + (part or b"")).split(b"\n")
                for line in lines:
                    if seconds is not None and end is None:
                        end = time.monotonic() + seconds
                    yield json.loads(line)

    def _why(self) -> str:
        """The reason why bypass_demo ended by itself."""
        status = self._wait(GRACE_S)
        said = self._errors.read_text(errors="replace").strip().removeprefix("bypass_demo: ")
        return said or f"bypass_demo ended with status {status}"

    def _wait(self, seconds: float) -> int | None:
        deadline = time.monotonic() + seconds
        while (status := self._process.poll()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return status

    def end(self) -> Report | None:
        """Gives the NIC back. Returns the last report, if there is one. Raises Unavailable when that fails."""
        output = self._process.stdout
        assert output is not None
        for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process handles SIGTERM only after SIGCONT
            os.kill(self._process.pid, number)
        os.set_blocking(output.fileno(), False)
        text = b""
        deadline = time.monotonic() + GRACE_S
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while selector.select(max(0.0, deadline - time.monotonic())):
                part = output.read()
                if part == b"":
                    break
                text += part or b""
        lines = [line for line in text.split(b"\n") if line.startswith(b"{") and line.endswith(b"}")]
        status = self._wait(max(0.0, deadline - time.monotonic()))
        if status != 0:
            why = self._why() if status is not None else "it does not end"
            raise Unavailable(f"the NIC could not be given back: {why}")
        return json.loads(lines[-1]) if lines else None

    def __enter__(self) -> Self:
        """Returns the demonstration."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the command and the demonstration."""
        self._open.close()
