# SPDX-License-Identifier: Apache-2.0
"""`wherry run-part`: runs the ranks and the agent of one host. `wherry run --hosts` starts it on each host.

Standard input carries the part, then orders, each as one line of JSON (wherry.route.hosts). When standard input ends
for any reason, all processes that this command started end.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from wherry.errors import Error, InvalidArgument, NotFound
from wherry.route.hosts import REPORT, Part
from wherry.route.pinning import Pinning, parse_cores, plan_cores
from wherry.route.processes import Lines, Process, Workspace, last_line, start_agent, until_ready

GRACE_S = 2.0
"""The ranks' time from SIGTERM to SIGKILL, after the launcher has disconnected."""
DRAIN_S = 6.0
"""The agent's time from SIGTERM to SIGKILL."""
LAST_LINES_S = 1.0
"""The longest wait for a rank's last output, because a child process of the rank may keep the pipe open."""


def run_part() -> int:
    """Runs the part and the orders from standard input. Returns 0 at the end, also after a failure, which it
    reports."""
    part = None
    workspace = Workspace("/tmp")
    try:
        with open(0, "rb", buffering=0, closefd=False) as orders:  # unbuffered: must not read beyond the line
            part = Part.parse(orders.readline())
        asyncio.run(_Part(part, workspace).run())
    except Error as error:
        _report({"failed": str(error)})
    finally:
        if part is not None:
            Path(part.environment.get("WHERRY_BOOTSTRAP", "")).unlink(missing_ok=True)  # ssh does not remove it
        workspace.close()
    return 0


def _report(what: dict[str, object]) -> None:
    data = memoryview(REPORT + json.dumps(what).encode() + b"\n")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        pass  # the launcher has disconnected, so standard input ends as well


class _Part:
    def __init__(self, part: Part, workspace: Workspace) -> None:
        self._part, self._workspace = part, workspace
        self._processes: dict[int, Process] = {}
        """The processes by rank; -1: the agent."""
        self._lines: dict[int, list[Lines]] = {}
        self._over = asyncio.Event()
        self._rest = b""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._over.set)
        os.set_blocking(0, False)
        loop.add_reader(0, self._listen)
        pinning = plan_cores(self._part.placement, 1, len(self._part.ranks), parse_cores(self._part.cores))
        try:
            environment = dict(os.environ) | self._part.environment
            if self._part.placement in ("shared", "host"):
                environment["WHERRY_AGENT"] = str(await self._start_agent(pinning.agents[0]))
            if not self._over.is_set():
                self._start_ranks(environment, pinning)
            await self._over.wait()
        finally:
            loop.remove_reader(0)
            await self._end()

    def _listen(self) -> None:
        try:
            data = os.read(0, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(0)
            self._over.set()
            return
        *orders, self._rest = (self._rest + data).split(b"\n")
        for order in orders:
            try:
                said = json.loads(order)
                process, number = self._processes.get(said["to"]), signal.Signals(said["signal"])
            except (ValueError, KeyError, TypeError):
                self._over.set()  # the sender is not the launcher
                return
            if process is not None:
                process.signal(number)

    async def _start_agent(self, core: int) -> Path:
        try:
            address = socket.getaddrinfo(self._part.address, None, type=socket.SOCK_STREAM)[0][4][0]
        except OSError:
            raise InvalidArgument(
                f"the name {self._part.address} has no address here, at which other hosts reach this one: "
                f"say --hosts {self._part.address}=ADDRESS"
            ) from None
        where = f"[{address}]:0" if ":" in str(address) else f"{address}:0"
        agent, file, _ = start_agent("the agent", self._workspace.directory, core, environment=os.environ, listen=where)
        self._watch(-1, agent)
        await until_ready(agent, file, self._over.is_set, asyncio.get_running_loop().time())
        return file

    def _start_ranks(self, environment: dict[str, str], pinning: Pinning) -> None:
        if Path(self._part.directory).is_dir():
            os.chdir(self._part.directory)
        program = shutil.which(self._part.program[0], path=environment.get("PATH"))
        if program is None:
            raise NotFound(f"{self._part.program[0]} is not a program there (in {Path.cwd()})")
        for place, rank in enumerate(self._part.ranks):
            process = Process(
                f"rank {rank}",
                [program, *self._part.program[1:]],
                environment=environment | {"WHERRY_RANK": str(rank)},
                cores=pinning.ranks[place],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            assert process.stdout is not None
            assert process.stderr is not None
            prefix = f"[{rank}] ".encode()
            self._lines[rank] = [
                Lines(process.stdout, 1, prefix, lambda _: self._over.set()),
                Lines(process.stderr, 2, prefix, lambda _: None),
            ]
            self._watch(rank, process)

    def _watch(self, number: int, process: Process) -> None:
        self._processes[number] = process
        self._workspace.sweep_also(process.pid)
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(process.pidfd)
            task = loop.create_task(self._tell(number, process))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        loop.add_reader(process.pidfd, ended)

    async def _tell(self, number: int, process: Process) -> None:
        """Reports the end of a process, after its output."""
        lines = [asyncio.create_task(one.ended.wait()) for one in self._lines.get(number, [])]
        if lines:
            await asyncio.wait(lines, timeout=LAST_LINES_S)
            for task in lines:
                task.cancel()
            for one in self._lines[number]:
                one.stop()
        report: dict[str, object] = {"ended": number, "status": process.poll()}
        if number == -1:
            report["words"] = last_line(self._workspace.directory / "agent.log")
        _report(report)

    async def _end(self) -> None:
        """Ends the ranks, then the agent."""
        ranks = [process for number, process in self._processes.items() if number != -1]
        agent = [process for number, process in self._processes.items() if number == -1]
        for processes, grace in ((ranks, GRACE_S), (agent, DRAIN_S)):
            for process in processes:
                if process.poll() is None:
                    process.signal(signal.SIGTERM)
            deadline = asyncio.get_running_loop().time() + grace
            while any(process.poll() is None for process in processes) and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.01)
            for process in processes:
                asyncio.get_running_loop().remove_reader(process.pidfd)
                process.signal(signal.SIGKILL)
        for lines in self._lines.values():
            for one in lines:
                one.stop()
        for process in self._processes.values():
            process.close()
