# SPDX-License-Identifier: Apache-2.0
"""`wherry run`: the ranks and agents of a job on this machine, from their start to their end.

A job fails as a whole: when a rank or an agent dies, the others are told why over the bootstrap connection, then
asked to end (SIGTERM), then made to.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from wherry.errors import DeadlineExceeded, Error, InvalidArgument, NotFound
from wherry.route import bootstrap
from wherry.route.pinning import Pinning, parse_cores, plan_cores
from wherry.session import START_TIMEOUT_S, agent_command, load_session
from wherry.system import Lines, Network, Process, Profile, Workspace, exit_status, find_profile, how_it_ended
from wherry.system import scratch_directory as scratch_directory

KNOWN_ROUTE_VARIABLES = (
    "WHERRY_ROUTE_BETWEEN",
    "WHERRY_ROUTE_BUFFERS",
    "WHERRY_ROUTE_BUFFER_BYTES",
    "WHERRY_ROUTE_LISTEN",
)
JOB_VARIABLES = ("WHERRY_BOOTSTRAP", "WHERRY_JOB_KEY", "WHERRY_RANK", "WHERRY_RANKS", "WHERRY_NODE", "WHERRY_PLACEMENT")

MOST_BUFFERS, MOST_BUFFER_BYTES = 1024, 64 << 20
"""RingShape's (src/route/ring.hpp)."""

JUDGE_S = 0.1
"""A rank that fails may do so because another one, or an agent, is just dying: that is the one to name."""
CAUSE_S = 2.0
"""How long a rank that has failed because of another one is not named, while that one still runs."""
TOLD_S = 1.0
"""How long ranks have, once told that the job has failed, before SIGTERM."""
GRACE_S = 2.0
"""From SIGTERM to SIGKILL."""
DRAIN_S = 6.0
"""The same for agents after a job that went well."""
TIMED_OUT = 124
INTERRUPTED = 130


@dataclass(frozen=True)
class Job:
    """What to run, and where."""

    program: list[str]
    nodes: int = 1
    ranks_per_node: int = 1
    placement: str = "inline"
    netns: bool = False
    timeout: float | None = None
    cores: str = "auto"
    agents: list[Path] = field(default_factory=list)
    """Session files of agents that run already, one a node: of placement dpu."""
    statistics: Path | None = None
    """Directory for a file of statistics of each rank; those that are there already are removed."""

    @property
    def ranks(self) -> int:
        """How many there are in all."""
        return self.nodes * self.ranks_per_node


def run(job: Job) -> int:
    """Runs the job; returns the exit status: 0, that of the first rank or agent that failed, 124, or 130.

    What went wrong is one line on standard error. Raises Error when the job cannot be started.
    """
    program = shutil.which(job.program[0])
    if program is None:
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
    pinning = plan_cores(job.placement, job.nodes, job.ranks_per_node, parse_cores(job.cores))
    _warn_of_unknown(os.environ)
    if job.statistics is not None:
        _clear(job.statistics)
    with ExitStack() as stack:
        workspace = Workspace()
        stack.callback(workspace.close)
        network = stack.enter_context(Network(job.nodes)) if job.netns else None
        return asyncio.run(_Launcher(job, pinning, workspace, network, advised_buffers(find_profile(_note))).run())


def _not_a_program(name: str) -> str:
    if "/" in name:
        why = "there is no such file" if not Path(name).exists() else "it is not an executable file"
        return f"{name} is not a program: {why}"
    here = f"; the one in this directory is ./{name}" if shutil.which(f"./{name}") else ""
    return f"{name} is not a program: it is not in a directory of $PATH{here}"


def advised_buffers(profile: Profile | None) -> dict[str, str]:
    """What the profile says of the buffers of ranks, as the variables that a person would set; those win.

    All ranks of a job must have the same, so the launcher reads the profile, and not each rank.
    """
    if profile is None or "WHERRY_ROUTE_BUFFERS" in os.environ or "WHERRY_ROUTE_BUFFER_BYTES" in os.environ:
        return {}
    try:
        bytes_ = profile.number("route.buffer_bytes", 256, MOST_BUFFER_BYTES, multiple_of=64)
        buffers = profile.number("route.buffers", 2, MOST_BUFFERS)
        if buffers is not None and buffers.bit_count() != 1:
            raise InvalidArgument(f"{profile.file}: route.buffers = {buffers}: want a power of two")
    except InvalidArgument as error:
        _note(f"the profile's buffers have no use: {error}")
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
    """Makes the directory, and removes what the ranks of an earlier job left there."""
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
        self._ranks: list[Process] = []
        self._agents: list[Process] = []
        self._session_files = list(job.agents)
        self._lines: list[Lines] = []
        self._failure: tuple[str, int] | None = None
        self._ending = False
        self._judging: asyncio.Task[None] | None = None
        self._dead: list[Process] = []
        self._told: set[int] = set()
        """Ranks that ran when the launcher told them of others' failures, which are not theirs."""
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
            if self._job.placement in ("shared", "host"):
                await self._start_agents()
            if self._failure is None:
                self._start_ranks()
            while self._failure is None and any(rank.status != 0 for rank in self._ranks):  # until each has ended well
                await self._change()
        finally:
            await self._end()
            # Signals that come now must not keep what is left from being removed.
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
        if job.netns:
            environment["WHERRY_ROUTE_BETWEEN"] = "tcp"  # to the rest of the library it is one machine
        else:
            environment.setdefault("WHERRY_ROUTE_BETWEEN", "shm")
        if job.statistics is not None:
            environment["WHERRY_STATISTICS"] = str(job.statistics.absolute())
        if self._session_files:
            environment["WHERRY_AGENT"] = str(self._session_files[node])
        return environment

    def _spawn(self, process: Process, all_of_them: list[Process]) -> None:
        all_of_them.append(process)
        self._workspace.sweep_also(process.pid)
        asyncio.get_running_loop().add_reader(process.pidfd, self._ended, process)

    async def _start_agents(self) -> None:
        # Those of a job that this launcher may be a rank of are not the agents'.
        environment = {name: value for name, value in os.environ.items() if name not in JOB_VARIABLES}
        for node, core in enumerate(self._pinning.agents):
            directory = self._workspace.directory / f"node{node}"
            directory.mkdir(mode=0o700)
            self._session_files.append(directory / "agent.json")
            arguments = ["--core", str(core), "--flight", "off"]
            # Agents may share a core with each other, or with ranks: whoever has nothing to do gives it away at once.
            arguments += ["--spin-us", "0", "--nap-us", "0"]
            if self._network is not None:
                arguments += ["--listen", f"{self._network.addresses[node]}:0"]
            with (directory / "agent.log").open("wb") as log:
                agent = Process(
                    f"the agent of node {node}",
                    agent_command(self._session_files[node], arguments),
                    environment=environment,
                    cores={core},
                    enter=self._network.namespaces[node].enter if self._network else None,
                    stdout=log,
                    stderr=log,
                )
            self._spawn(agent, self._agents)
        deadline = asyncio.get_running_loop().time() + START_TIMEOUT_S
        for node, agent in enumerate(self._agents):
            while self._failure is None and not _ready(self._session_files[node], agent.pid):
                if asyncio.get_running_loop().time() > deadline:
                    said = self._last_words(agent)
                    raise DeadlineExceeded(f"{agent.name} was not ready within {START_TIMEOUT_S:g} s{said}")
                await asyncio.sleep(0.01)

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
                # A terminal belongs to the launcher's process group: a rank that read from it would be stopped.
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

    def _ended(self, process: Process) -> None:
        asyncio.get_running_loop().remove_reader(process.pidfd)
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
        """Waits until the ranks that have failed have said why, and for the end of those that they name.

        The other ranks are told meanwhile.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        while not self._ending and clock() - began < CAUSE_S:
            dead = [self._ranks.index(p) for p in self._dead if p in self._ranks]
            if not any(self._server.connected(rank) for rank in dead):
                causes = [rank for rank in dead if not self._consequence(rank)]
                if any((self._ranks[rank].status or 0) < 0 for rank in causes):
                    break  # a rank that was killed is the cause, whatever others exit with
                if clock() - began >= JUDGE_S:
                    if causes or not any(self._blames_one_that_runs(rank) for rank in dead):
                        break
                    self._tell(dead)
            await asyncio.sleep(0.01)
        self._judge()

    def _consequence(self, rank: int) -> bool:
        """Whether this rank says that it has failed because of another rank, or of none that it knows."""
        return rank in self._told or self._server.blamed_by(rank) not in (None, rank)

    def _blames_one_that_runs(self, rank: int) -> bool:
        """Whether the rank that `rank` has failed because of may still end in a way that explains it."""
        cause = self._server.blamed_by(rank)
        return cause is not None and cause < len(self._ranks) and self._ranks[cause].poll() is None

    def _tell(self, dead: list[int]) -> None:
        """Tells all ranks that the job is over. If those that nobody has blamed fail from now on, that is why."""
        if self._told:
            return
        blamed = {self._server.blamed_by(rank) for rank in dead}
        self._told = {n for n, rank in enumerate(self._ranks) if rank.poll() is None and n not in blamed}
        first = self._ranks[dead[0]]
        assert first.status is not None
        self._server.abort(f"{first.name} {how_it_ended(first.status)}")

    def _judge(self) -> None:
        """Names the first cause: an agent's end, a rank's death, a rank's exit; then what came of them."""
        if self._ending:
            return

        def order(process: Process) -> int:
            if process in self._agents:
                return 0
            if self._consequence(self._ranks.index(process)):
                return 3
            return 1 if (process.status or 0) < 0 else 2

        for process in (*self._agents, *self._ranks):  # those whose end has not been noticed yet come last
            failed = process.poll() is not None and (process in self._agents or process.status != 0)
            if failed and process not in self._dead:
                self._dead.append(process)
        first = min(self._dead, key=order)
        assert first.status is not None
        why = f"{first.name} {how_it_ended(first.status)}"
        if first in self._agents and first.status > 0:  # whoever is killed has said nothing about it
            why += self._last_words(first)
        self._fail(why, exit_status(first.status) or 1)

    def _last_words(self, agent: Process) -> str:
        log = self._workspace.directory / f"node{self._agents.index(agent)}" / "agent.log"
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        return f"; its last words: {lines[-1]}" if lines else ""

    def _interrupted(self, number: signal.Signals) -> None:
        if self._ending:  # the second time: at once
            for process in (*self._ranks, *self._agents):
                process.signal(signal.SIGKILL)
        why = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
        self._fail(why, 128 + number)

    def _output_lost(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            self._fail("", 128 + signal.SIGPIPE)  # as `yes | head`: nothing to say, and nobody to say it to
        else:
            self._fail(f"standard output: {error.strerror}", os.EX_IOERR)

    def _fail(self, why: str, status: int) -> None:
        if self._failure is None and not self._ending:
            self._failure = (why, status)
            self._server.abort(why or "nobody reads the output of the job")
        self._changed.set()

    async def _change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    # ---- the end

    async def _end(self) -> None:
        """Ends what still runs: ranks, then agents."""
        self._ending = True
        if self._judging is not None:
            self._judging.cancel()
        failed = self._failure is not None or any(rank.status is None for rank in self._ranks)
        if failed:
            self._server.abort("the launcher could not start the job")  # unless it has said something better
            await self._wait_for(self._ranks, TOLD_S)
            await self._terminate(self._ranks, GRACE_S)
        # What the ranks have left behind in their groups would keep the pipes open.
        for rank in self._ranks:
            rank.signal(signal.SIGKILL)
        if self._lines:
            await asyncio.wait([asyncio.create_task(one.ended.wait()) for one in self._lines], timeout=1.0)
        for one in self._lines:
            one.stop()
        await self._server.close()
        await self._terminate(self._agents, GRACE_S if failed else DRAIN_S)
        for process in (*self._ranks, *self._agents):
            asyncio.get_running_loop().remove_reader(process.pidfd)
            process.close()

    async def _terminate(self, processes: list[Process], grace: float) -> None:
        for process in processes:
            if process.poll() is None:
                process.signal(signal.SIGTERM)
        await self._wait_for(processes, grace)
        for process in processes:
            if process.poll() is None:
                process.signal(signal.SIGKILL)

    async def _wait_for(self, processes: Iterable[Process], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while any(process.poll() is None for process in processes):
                    await self._change()
        except TimeoutError:
            pass


def _has_input() -> bool:
    """Whether standard input is there for rank 0: it is neither closed nor a terminal."""
    return sys.stdin is not None and not sys.stdin.closed and not sys.stdin.isatty()


def _ignore(error: OSError) -> None:
    """Standard error takes nothing: no reason to end a job."""


def _ready(session_file: Path, pid: int) -> bool:
    try:
        return load_session(session_file).pid == pid
    except Error:
        return False  # not there yet, or half way
