# SPDX-License-Identifier: Apache-2.0
"""`wherry run`: starts, watches and ends the ranks and agents of a job, on this machine or on other hosts.

A job fails as a whole. When a rank or an agent dies, the launcher sends the reason to the others over the bootstrap
connection, then asks them to end (SIGTERM), then kills them.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from wherry.errors import DeadlineExceeded, InvalidArgument, NotFound
from wherry.route import bootstrap
from wherry.route.hosts import PASSED_ON, Connection, Host, Part, RemoteProcess, rsh_command
from wherry.route.pinning import Pinning, parse_cores, plan_cores
from wherry.route.processes import (
    Lines,
    Network,
    Process,
    Profile,
    Workspace,
    exit_status,
    find_profile,
    how_it_ended,
    last_line,
    load_session,
    start_agent,
    until_ready,
)
from wherry.route.processes import scratch_directory as scratch_directory

KNOWN_ROUTE_VARIABLES = (
    "WHERRY_ROUTE_BETWEEN",
    "WHERRY_ROUTE_BUFFERS",
    "WHERRY_ROUTE_BUFFER_BYTES",
    "WHERRY_ROUTE_LISTEN",
)
JOB_VARIABLES = ("WHERRY_BOOTSTRAP", "WHERRY_JOB_KEY", "WHERRY_RANK", "WHERRY_RANKS", "WHERRY_NODE", "WHERRY_PLACEMENT")

MOST_BUFFERS, MOST_BUFFER_BYTES = 1024, 64 << 20
"""The limits of RingShape (src/route/ring.hpp)."""

JUDGE_S = 0.1
"""The wait before a failed rank is named as the cause: another rank or an agent that is dying may be the real cause."""
CAUSE_S = 2.0
"""The longest wait before a failed rank is named, if it blames another rank that still runs."""
TOLD_S = 1.0
"""The time from the report of the job's failure to the ranks until SIGTERM."""
GRACE_S = 2.0
"""The time from SIGTERM to SIGKILL."""
DRAIN_S = 6.0
"""The time from SIGTERM to SIGKILL for agents after a successful job."""
HANG_UP_S = 12.0
"""The time until the launcher disconnects from hosts that were told to end. It exceeds the worst case of what they
need."""
TIMED_OUT = 124
INTERRUPTED = 130


@dataclass(frozen=True)
class Job:
    """The settings of a job: its program, ranks, placement and hosts."""

    program: list[str]
    nodes: int = 1
    ranks_per_node: int = 1
    placement: str = "inline"
    netns: bool = False
    timeout: float | None = None
    cores: str = "auto"
    agents: list[Path] = field(default_factory=list)
    """For placement dpu, the session files of the running agents, one per node."""
    statistics: Path | None = None
    """The directory for each rank's statistics file. Existing statistics files are removed."""
    hosts: list[Host] = field(default_factory=list)
    """The host of each node. Empty: this machine runs all nodes."""
    rsh: str = "ssh"
    """The command that connects to the hosts."""

    @property
    def ranks(self) -> int:
        """The number of all ranks."""
        return self.nodes * self.ranks_per_node


def run(job: Job) -> int:
    """Runs the job. Returns the exit status: 0, the first failed process's status, 124 (timeout), or 128 plus a
    signal's number.

    After a failure it prints one line to standard error. Raises Error if the job cannot be started.
    """
    if job.hosts:
        _check_hosts(job)
    elif shutil.which(job.program[0]) is None:
        raise NotFound(_not_a_program(job.program[0]))
    if job.nodes < 1 or job.ranks_per_node < 1:
        raise InvalidArgument("a job has at least one node, and each node one rank")
    if job.placement == "dpu" and len(job.agents) != job.nodes:
        raise InvalidArgument(
            f"placement dpu: name the session file of the agent on each node's SmartNIC, {job.nodes} in all, "
            f"with --agent; there are {len(job.agents)}"
        )
    if job.placement != "dpu" and job.agents:
        raise InvalidArgument(f"placement {job.placement} does not use the agents of --agent: only dpu does")
    for file in job.agents:
        load_session(file)
    # Each of the other hosts plans its own cores.
    pinning = (
        Pinning([], [])
        if job.hosts
        else plan_cores(job.placement, job.nodes, job.ranks_per_node, parse_cores(job.cores))
    )
    _warn_of_unknown(os.environ)
    if job.statistics is not None:
        _clear(job.statistics)
    with ExitStack() as stack:
        workspace = Workspace()
        stack.callback(workspace.close)
        network = stack.enter_context(Network(job.nodes)) if job.netns else None
        return asyncio.run(_Launcher(job, pinning, workspace, network, advised_buffers(find_profile(_note))).run())


def _check_hosts(job: Job) -> None:
    if job.nodes != len(job.hosts):
        raise InvalidArgument(f"--hosts names {len(job.hosts)}, and each is a node: leave --nodes {job.nodes} out")
    if job.netns:
        raise InvalidArgument("--netns makes nodes of this machine: it does not go with --hosts")
    if job.placement == "dpu":
        raise InvalidArgument(
            "--hosts starts the agents itself: placement dpu is for `wherry run` on one machine, or MPI"
        )
    rsh_command(job.rsh)


def _not_a_program(name: str) -> str:
    if "/" in name:
        why = "there is no such file" if not Path(name).exists() else "it is not an executable file"
        return f"{name} is not a program: {why}"
    here = f"; the one in this directory is ./{name}" if shutil.which(f"./{name}") else ""
    return f"{name} is not a program: it is not in a directory of $PATH{here}"


def advised_buffers(profile: Profile | None) -> dict[str, str]:
    """The profile's settings for ranks' buffers, as environment variables. Empty if the user set one of these
    variables.

    The launcher reads the profile for all ranks, because all ranks of a job must have the same buffers.
    """
    if profile is None or "WHERRY_ROUTE_BUFFERS" in os.environ or "WHERRY_ROUTE_BUFFER_BYTES" in os.environ:
        return {}
    try:
        bytes_ = profile.number("route.buffer_bytes", 256, MOST_BUFFER_BYTES, multiple_of=64)
        buffers = profile.number("route.buffers", 2, MOST_BUFFERS)
        if buffers is not None and buffers.bit_count() != 1:
            raise InvalidArgument(f"{profile.file}: route.buffers = {buffers}: want a power of two")
    except InvalidArgument as error:
        _note(f"the profile's buffers cannot be used: {error}")
        return {}
    numbers = {"WHERRY_ROUTE_BUFFER_BYTES": bytes_, "WHERRY_ROUTE_BUFFERS": buffers}
    advised = {name: str(number) for name, number in numbers.items() if number is not None}
    if advised:
        _note(f"{' '.join(f'{name}={value}' for name, value in advised.items())}, from profile {profile.file}")
    return advised


def _warn_of_unknown(environment: Mapping[str, str]) -> None:
    for name in sorted(environment):
        if name.startswith("WHERRY_ROUTE_") and name not in KNOWN_ROUTE_VARIABLES:
            known = ", ".join(KNOWN_ROUTE_VARIABLES)
            _note(f"warning: ${name} is set, but there is no such variable; known are {known}")


def _clear(directory: Path) -> None:
    """Makes the statistics directory, and removes the files of an earlier job."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for stale in directory.glob("rank-*.json"):
            stale.unlink()
    except OSError as error:
        raise InvalidArgument(f"--statistics {directory}: {error.strerror}") from None


def _note(text: str) -> None:
    print(f"wherry run: {text}", file=sys.stderr, flush=True)


class _Launcher:
    def __init__(
        self, job: Job, pinning: Pinning, workspace: Workspace, network: Network | None, advised: Mapping[str, str]
    ) -> None:
        self._job, self._pinning, self._workspace, self._network = job, pinning, workspace, network
        self._advised = advised
        self._key = secrets.token_hex(32)
        self._ranks: list[Process | RemoteProcess] = []
        self._agents: list[Process | RemoteProcess] = []
        self._connections: list[Connection] = []
        self._session_files = list(job.agents)
        self._lines: list[Lines] = []
        self._failure: tuple[str, int] | None = None
        self._ending = False
        self._judging: asyncio.Task[None] | None = None
        self._dead: list[Process | RemoteProcess] = []
        self._told: set[int] = set()
        """Ranks that were running when the launcher reported the job's failure. Their later failures are
        consequences."""
        self._changed = asyncio.Event()

    async def run(self) -> int:
        self._server = bootstrap.Server(self._key, self._job.ranks, lambda why: self._fail(why, 1))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupted, number)
        if self._job.timeout is not None:
            why = f"the job took longer than its --timeout of {self._job.timeout:g} s"
            loop.call_later(self._job.timeout, self._fail, why, TIMED_OUT)
        try:
            await self._server.start(self._workspace.directory / "bootstrap")
            if self._job.hosts:
                self._connect()
            elif self._job.placement in ("shared", "host"):
                await self._start_agents()
            if self._failure is None and not self._job.hosts:
                self._start_ranks()
            while self._failure is None and any(rank.status != 0 for rank in self._ranks):  # until all succeed
                await self._change()
        finally:
            await self._end()
            # A signal must not interrupt the rest of the cleanup.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)
        if self._failure is None:
            return 0
        why, status = self._failure
        if why:
            _note(why)
        return status

    # ---- start

    def _environment(self, node: int, rank: int) -> dict[str, str]:
        job = self._job
        environment = dict(os.environ) | dict(self._advised)
        environment |= {
            "WHERRY_BOOTSTRAP": str(self._workspace.directory / "bootstrap"),
            "WHERRY_JOB_KEY": self._key,
            "WHERRY_RANK": str(rank),
            "WHERRY_RANKS": str(job.ranks),
            "WHERRY_NODE": str(node),
            "WHERRY_PLACEMENT": job.placement,
        }
        if job.netns or job.hosts:
            environment["WHERRY_ROUTE_BETWEEN"] = "tcp"  # otherwise the library treats the namespaces as one machine
        else:
            environment.setdefault("WHERRY_ROUTE_BETWEEN", "shm")
        if job.statistics is not None:
            environment["WHERRY_STATISTICS"] = str(job.statistics.absolute())
        if self._session_files:
            environment["WHERRY_AGENT"] = str(self._session_files[node])
        return environment

    def _spawn(self, process: Process, all_of_them: list[Process | RemoteProcess]) -> None:
        all_of_them.append(process)
        self._workspace.sweep_also(process.pid)
        asyncio.get_running_loop().add_reader(process.pidfd, self._ended, process)

    def _connect(self) -> None:
        """Connects to all hosts. Each host starts its ranks and its agent."""
        job = self._job
        for node, host in enumerate(job.hosts):
            ranks = list(range(node * job.ranks_per_node, (node + 1) * job.ranks_per_node))
            environment = {
                name: value for name, value in self._environment(node, ranks[0]).items() if name.startswith(PASSED_ON)
            }
            del environment["WHERRY_RANK"]
            part = Part(
                node, ranks, job.program, job.placement, job.cores, os.getcwd(),
                host.address or host.name.rpartition("@")[2].strip("[]"), environment,
            )  # fmt: skip
            connection = Connection(
                host,
                part,
                rsh_command(job.rsh),
                self._workspace.directory / "bootstrap",
                self._ended,
                lambda why: self._fail(why, 1),
                self._output_lost,
            )
            self._connections.append(connection)
            self._workspace.sweep_also(connection.process.pid)
            self._ranks += connection.ranks
            self._agents += [connection.agent] if connection.agent is not None else []

    async def _start_agents(self) -> None:
        # If this launcher is itself a rank of a job, its agents must not inherit that job's variables.
        environment = {name: value for name, value in os.environ.items() if name not in JOB_VARIABLES}
        began = asyncio.get_running_loop().time()
        started = []
        for node, core in enumerate(self._pinning.agents):
            directory = self._workspace.directory / f"node{node}"
            directory.mkdir(mode=0o700)
            agent, file, log = start_agent(
                f"the agent of node {node}",
                directory,
                core,
                environment=environment,
                listen=f"{self._network.addresses[node]}:0" if self._network is not None else "",
                enter=self._network.namespaces[node].enter if self._network is not None else None,
            )
            self._spawn(agent, self._agents)
            self._session_files.append(file)
            started.append((agent, file, log))
        for agent, file, log in started:
            try:
                await until_ready(agent, file, lambda: self._failure is not None, began)
            except DeadlineExceeded as error:
                said = last_line(log)
                raise DeadlineExceeded(f"{error}{f'; its last words: {said}' if said else ''}") from None

    def _start_ranks(self) -> None:
        job = self._job
        for rank in range(job.ranks):
            node = rank // job.ranks_per_node
            output = subprocess.PIPE if job.ranks > 1 else None
            process = Process(
                f"rank {rank}",
                job.program,
                environment=self._environment(node, rank),
                cores=self._pinning.ranks[rank],
                enter=self._network.namespaces[node].enter if self._network else None,
                # A terminal belongs to the launcher's process group, so a rank that reads from it would be stopped.
                stdin=None if rank == 0 and _has_input() else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            self._spawn(process, self._ranks)
            prefix = f"[{rank}] ".encode()
            for pipe, to in ((process.stdout, 1), (process.stderr, 2)):
                if pipe is not None:
                    self._lines.append(Lines(pipe, to, prefix, self._output_lost if to == 1 else _ignore))

    # ---- what happens

    def _ended(self, process: Process | RemoteProcess) -> None:
        process.unwatch()
        status = process.poll()
        self._changed.set()
        if self._ending:
            return
        if status == 0 and process not in self._agents:
            self._server.ended(self._ranks.index(process))
            return
        self._dead.append(process)
        if process in self._agents:
            self._judge()
        elif self._judging is None:
            self._judging = asyncio.get_running_loop().create_task(self._judge_when_clear())

    async def _judge_when_clear(self) -> None:
        """Waits until the failed ranks have reported the cause, and until the ranks that they blame have ended.

        Meanwhile it notifies the other ranks.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        while not self._ending and clock() - began < CAUSE_S:
            dead = [self._ranks.index(p) for p in self._dead if p in self._ranks]
            if not any(self._server.connected(rank) for rank in dead):
                causes = [rank for rank in dead if not self._consequence(rank)]
                if any((self._ranks[rank].status or 0) < 0 for rank in causes):
                    break  # a killed rank is the cause, whatever the others' exit status
                if clock() - began >= JUDGE_S:
                    if causes or not any(self._blames_one_that_runs(rank) for rank in dead):
                        break
                    self._tell(dead)
            await asyncio.sleep(0.01)
        self._judge()

    def _consequence(self, rank: int) -> bool:
        """Whether this rank failed because of another rank, known or unknown, or after the job's failure was
        reported."""
        return rank in self._told or self._server.blamed_by(rank) not in (None, rank)

    def _blames_one_that_runs(self, rank: int) -> bool:
        """Whether the rank that `rank` blames still runs, so that its end may explain the failure."""
        cause = self._server.blamed_by(rank)
        return cause is not None and cause < len(self._ranks) and self._ranks[cause].poll() is None

    def _tell(self, dead: list[int]) -> None:
        """Tells all ranks that the job has failed. Failures of other ranks after that are consequences."""
        if self._told:
            return
        blamed = {self._server.blamed_by(rank) for rank in dead}
        self._told = {n for n, rank in enumerate(self._ranks) if rank.poll() is None and n not in blamed}
        first = self._ranks[dead[0]]
        assert first.status is not None
        self._server.abort(f"{first.name} {how_it_ended(first.status)}")

    def _judge(self) -> None:
        """Ends the job and names the cause. An agent's end comes first, then a killed rank, then a rank's exit, then
        consequences."""
        if self._ending:
            return

        def order(process: Process | RemoteProcess) -> int:
            if process in self._agents:
                return 0
            if self._consequence(self._ranks.index(process)):
                return 3
            return 1 if (process.status or 0) < 0 else 2

        for process in (*self._agents, *self._ranks):  # append processes whose end has not been noticed yet
            failed = process.poll() is not None and (process in self._agents or process.status != 0)
            if failed and process not in self._dead:
                self._dead.append(process)
        first = min(self._dead, key=order)
        assert first.status is not None
        why = f"{first.name} {how_it_ended(first.status)}"
        if first in self._agents and first.status > 0:  # a killed agent could not report a reason
            why += self._last_words(first)
        self._fail(why, exit_status(first.status) or 1)

    def _last_words(self, agent: Process | RemoteProcess) -> str:
        if self._connections:
            words = next(one.agent_words for one in self._connections if one.agent is agent)
            return f"; its last words: {words}" if words else ""
        words = last_line(self._workspace.directory / f"node{self._agents.index(agent)}" / "agent.log")
        return f"; its last words: {words}" if words else ""

    def _interrupted(self, number: signal.Signals) -> None:
        if self._ending:  # a second signal: kill at once
            for process in (*self._ranks, *self._agents):
                process.signal(signal.SIGKILL)
        why = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
        self._fail(why, 128 + number)

    def _output_lost(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            self._fail("", 128 + signal.SIGPIPE)  # no message is needed, as in `yes | head`
        else:
            self._fail(f"standard output: {error.strerror}", os.EX_IOERR)

    def _fail(self, why: str, status: int) -> None:
        if self._failure is None and not self._ending:
            self._failure = (why, status)
            self._server.abort(why or "the reader of the job's output has gone")
        self._changed.set()

    async def _change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    # ---- the end

    async def _end(self) -> None:
        """Ends the processes that still run, first the ranks, then the agents."""
        self._ending = True
        if self._judging is not None:
            self._judging.cancel()
        failed = self._failure is not None or any(rank.status is None for rank in self._ranks)
        if failed:
            self._server.abort("the launcher could not start the job")  # has no effect after an earlier reason
            await self._wait_for(self._ranks, TOLD_S)
            await self._terminate(self._ranks, GRACE_S)
        # Remaining child processes of ranks would keep the pipes open.
        for rank in self._ranks:
            rank.signal(signal.SIGKILL)
        if self._lines:
            await asyncio.wait([asyncio.create_task(one.ended.wait()) for one in self._lines], timeout=1.0)
        for one in self._lines:
            one.stop()
        await self._server.close()
        await self._terminate(self._agents, GRACE_S if failed else DRAIN_S)
        await self._hang_up()
        for process in (*self._ranks, *self._agents):
            process.unwatch()
            process.close()

    async def _hang_up(self) -> None:
        """Ends the connections after the hosts have removed their files."""
        for connection in self._connections:
            connection.hang_up()
        deadline = asyncio.get_running_loop().time() + HANG_UP_S
        while any(one.process.poll() is None for one in self._connections):
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.01)
        for connection in self._connections:
            connection.process.unwatch()
            for line in connection.lines:
                line.stop()
            connection.process.close()

    async def _terminate(self, processes: Sequence[Process | RemoteProcess], grace: float) -> None:
        for process in processes:
            if process.poll() is None:
                process.signal(signal.SIGTERM)
        await self._wait_for(processes, grace)
        for process in processes:
            if process.poll() is None:
                process.signal(signal.SIGKILL)

    async def _wait_for(self, processes: Iterable[Process | RemoteProcess], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while any(process.poll() is None for process in processes):
                    await self._change()
        except TimeoutError:
            pass


def _has_input() -> bool:
    """Whether rank 0 gets standard input, which must be neither closed nor a terminal."""
    return sys.stdin is not None and not sys.stdin.closed and not sys.stdin.isatty()


def _ignore(error: OSError) -> None:
    """Ignores a failure of standard error, because it is not a reason to end a job."""
