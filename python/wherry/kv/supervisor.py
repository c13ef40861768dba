# SPDX-License-Identifier: Apache-2.0
"""Starts, watches, restarts and ends the processes of a running `wherry kv up`, and keeps their record.

The supervisor reports each process that dies. With `restart` it starts the process again. A restarted node is empty and
fetches all data from the other nodes.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shlex
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wherry.errors import DeadlineExceeded, Error, InvalidArgument, Unavailable
from wherry.kv import keeper, programs, running
from wherry.kv.cluster_file import Cluster
from wherry.kv.network import KvNetwork, inside
from wherry.kv.options import Options
from wherry.kv.running import Up
from wherry.system import (
    ENDING,
    Namespace,
    Process,
    Workspace,
    doing,
    how_it_ended,
    open_own,
    secure_directory,
    system_error,
)
from wherry.units import counted

READY_S = 20.0
GRACE_S = 2.0
"""The time from SIGTERM to SIGKILL."""
FIRST_PAUSE_S = 0.3
LONGEST_PAUSE_S = 5.0
"""The longest pause before a dead process is restarted. The pause doubles with each restart, unless the process ran for
some time."""
UNWRITTEN_PAUSE_S = 1.0
"""The pause before a failed write of a record or a note is repeated."""
MOST_UNWRITTEN = 1 << 16
"""The most bytes of unwritten notes that are kept."""


class _Notes:
    """Writes lines for people to standard error. If the disk is full, keeps the lines and writes them later. Never
    raises."""

    def __init__(self) -> None:
        self._unwritten = b""

    def add(self, text: str) -> bool:
        """Writes a line, and returns whether that succeeded. Keeps the newest MOST_UNWRITTEN bytes of unwritten
        lines."""
        self._unwritten += f"wherry kv up: {text}\n".encode(errors="backslashreplace")
        if self.flush():
            return True
        if len(self._unwritten) > MOST_UNWRITTEN:
            self._unwritten = self._unwritten[-MOST_UNWRITTEN:].partition(b"\n")[2]
        return False

    def flush(self) -> bool:
        """Writes the kept lines, and returns whether none are left."""
        try:
            while self._unwritten:
                self._unwritten = self._unwritten[os.write(2, self._unwritten) :]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN):
                self._unwritten = b""  # standard error is closed, or is a pipe without a reader
        return not self._unwritten


class _Child:
    """A node, the keeper or the switch. It may be restarted several times."""

    def __init__(
        self, name: str, command: list[str], log: Path, number: int | None, where: Namespace | None = None
    ) -> None:
        self.name, self.command, self.log, self.number, self.where = name, command, log, number, where
        self.process: Process | None = None
        self.pause = FIRST_PAUSE_S
        self.since = 0.0

    @property
    def pid(self) -> int:
        return self.process.pid if self.process is not None else 0

    def last_words(self) -> str:
        try:
            lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        except OSError:
            lines = []
        return f"; its last words: {lines[-1]}" if lines else ""


class Supervisor:
    """Supervises the keeper, the nodes and the switch of one cluster. Needs a running event loop."""

    def __init__(
        self, cluster: Cluster, options: Options, workspace: Workspace, network: KvNetwork | None, opened: int
    ) -> None:
        """`opened`: the descriptor of the cluster file's directory, through which all files there are opened."""
        self._opened = opened
        self._cluster, self._options, self._workspace, self._network = cluster, options, workspace, network
        self._directory = cluster.path.parent
        self._up = Up(os.getpid(), running.start_time(os.getpid()), cluster.path)
        self._up.namespace = network.outside_file if network is not None else ""
        self._signal: int | None = None
        self._failure = ""
        self._notes = _Notes()
        self._again: asyncio.TimerHandle | None = None
        self._ready = self._ending = False
        self._changed = asyncio.Event()
        self._up.rtl = cluster.numbers[: options.rtl]
        if len(self._up.rtl) < options.rtl:
            raise InvalidArgument(f"--rtl {options.rtl}: the cluster has {counted(len(cluster.numbers), 'node')}")
        self._keeper = _Child(
            "the keeper",
            programs.keeper(cluster.path),
            self._directory / "keeper.log",
            None,
            network.outside if network is not None else None,
        )
        self._switch: _Child | None = None
        if network is not None and not options.tap:  # without AF_XDP, the bridge forwards all frames
            self._switch = _Child(
                "the switch", programs.switch(network.stations), self._directory / "switch.log", None, network.switch
            )
        self._nodes = {
            number: _Child(
                f"node {number}",
                self._node_command(number),
                self._directory / f"node{number}.log",
                number,
                network.nodes[number] if network is not None else None,
            )
            for number in cluster.numbers
        }

    def _node_command(self, number: int) -> list[str]:
        if number not in self._up.rtl:
            return programs.node(self._cluster.path, number, *(["--spin"] if self._options.spin else []))
        taps = self._network.tap_arguments(number) if self._options.tap and self._network else []
        return programs.rtl_node(self._cluster.path, number, *taps)

    @property
    def _children(self) -> list[_Child]:
        return [*([self._switch] if self._switch is not None else []), self._keeper, *self._nodes.values()]

    async def run(self, ready: Callable[[Cluster, dict[str, Any], Up], None]) -> int:
        """Starts all processes, calls `ready` when all nodes serve, and waits for a signal. Returns the exit status.
        Raises Error. The caller has blocked the signals; from now on, the event loop handles them."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._interrupted, number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        well_known = running.up_file()
        with secure_directory(well_known.parent, "set $XDG_RUNTIME_DIR"):
            pass  # only makes and checks the directory
        self._files = [self._directory / "up.json", well_known]
        try:
            for child in self._children:
                self._start(child)
            status = await self._until_all_serve()
            if status is not None:
                self._ready = True
                self._tell(well_known)
                ready(self._cluster, status, self._up)
            while self._signal is None and not self._failure:
                await self._changed.wait()
                self._changed.clear()
        finally:
            await self._end()
            if self._again is not None:
                self._again.cancel()
            for number in ENDING:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)  # the remaining cleanup is short
            self._forget(well_known)
        if self._failure:
            raise Unavailable(self._failure)
        return 130 if self._signal == signal.SIGINT else 0

    # ---- start

    def _start(self, child: _Child) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with open(open_own(child.log.name, flags, self._opened, self._directory), "ab") as log:
            os.set_blocking(log.fileno(), True)
            child.process = Process(
                child.name,
                child.command,
                environment=os.environ,
                cores=os.sched_getaffinity(0),
                enter=child.where.enter if child.where is not None else None,
                stdout=log,
                stderr=log,
            )
        child.since = asyncio.get_running_loop().time()
        self._workspace.sweep_also(child.pid)
        try:
            asyncio.get_running_loop().add_reader(child.process.pidfd, self._ended, child)
        except OSError:  # the process's end would not be noticed
            child.process.close()
            child.process = None
            raise
        self._record()

    async def _until_all_serve(self) -> dict[str, Any] | None:
        """Waits until all nodes serve. Returns the keeper's status, or None, with a note of the reason, if they do
        not."""
        deadline = asyncio.get_running_loop().time() + READY_S
        why = "the keeper does not answer"
        while self._signal is None and not self._failure:
            try:
                said: dict[str, Any] = json.loads(await self._ask("status"))
                nodes = said["nodes"]
                missing = [str(node["node"]) for node in nodes if node["state"] != "serving"]
                if not missing and said["settled"]:
                    return said
                why = f"nodes that do not serve: {', '.join(missing)}; the keeper says '{said['phase']}'"
                if said.get("waits_for"):
                    why += f": {said['waits_for']}"
                if said["phase"] == "lost" and all(node["connected"] for node in nodes):
                    await self._ask("start_over")
                    self._note(
                        f"the store is empty: what an earlier `wherry kv up` in {self._directory} held was in the "
                        "memory of its nodes, and went with them"
                    )
            except (Error, OSError):
                pass  # the keeper does not answer yet
            if asyncio.get_running_loop().time() > deadline:
                raise DeadlineExceeded(f"not ready within {READY_S:g} s: {why}{self._keeper.last_words()}")
            await asyncio.sleep(0.03)
        return None

    async def _ask(self, op: str) -> str:
        async with asyncio.timeout(1.0):
            with ExitStack() as stack:
                if self._network is not None:
                    stack.enter_context(inside(self._network.outside_file))
                connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            connection.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(connection, keeper.address(self._cluster.keeper))
            except BaseException:
                connection.close()
                raise
            reader, writer = await asyncio.open_connection(sock=connection, limit=keeper.LONGEST_LINE)
            try:
                writer.write(keeper.request(op))
                return keeper.answer(await reader.readline())
            finally:
                writer.close()

    # ---- what happens

    def _interrupted(self, number: signal.Signals) -> None:
        if self._signal is not None:  # a second signal: end at once
            for child in self._children:
                if child.process is not None:
                    child.process.signal(signal.SIGKILL)
        self._signal = self._signal or number
        self._changed.set()

    def _ended(self, child: _Child) -> None:
        process = child.process
        assert process is not None
        status = process.poll()
        if status is None:
            return
        asyncio.get_running_loop().remove_reader(process.pidfd)
        self._changed.set()
        if self._signal is not None or self._failure or self._ending:
            return
        how = f"{child.name} (pid {process.pid}) {how_it_ended(status)}"
        if status > 0:
            how += child.last_words()
        process.close()
        child.process = None
        if not self._ready:
            self._failure = how
            return
        if self._options.restart:  # plan the restart before any step that can fail, such as a record on a full disk
            self._start_later(child)
        self._record()
        self._note(how)
        again = "" if self._options.restart else f"; by hand: {self._by_hand(child)}"
        if child is self._switch:
            self._note(f"the kernel's bridge forwards instead, which is slower{again}")
        elif child.number is None:
            self._note(f"leases run out, and the store stops until it is back{again}")
        elif not any(one.process for one in self._nodes.values()):
            self._note("that was the last one: the data is lost; `wherry kv down`, then `up`, starts an empty store")
        else:
            self._note(f"reads and writes go on with the others{again}")

    def _by_hand(self, child: _Child) -> str:
        where = [] if child.where is None else ["nsenter", f"--net=/proc/{os.getpid()}/fd/{child.where.net}"]
        return shlex.join([*where, *child.command])

    def _start_later(self, child: _Child) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - child.since > 10:
            child.pause = FIRST_PAUSE_S
        loop.call_later(child.pause, self._restart, child)
        child.pause = min(2 * child.pause, LONGEST_PAUSE_S)

    def _restart(self, child: _Child) -> None:
        if self._signal is not None or self._ending or child.process is not None:
            return
        try:
            self._start(child)
        except (Error, OSError) as error:
            child.since = asyncio.get_running_loop().time()
            why = system_error(error) if isinstance(error, OSError) else str(error)
            self._note(f"{child.name} cannot be started again: {why}; the next attempt is in {child.pause:g} s")
            self._start_later(child)
            return
        self._note(f"{child.name} started again, pid {child.pid}")

    # ---- what others read

    def _record(self) -> None:
        """Updates the record of this `up`. Never raises: if the write fails, it is repeated later."""
        self._up.keeper = self._keeper.pid
        self._up.nodes = {number: child.pid for number, child in self._nodes.items()}
        if not self._ready or self._again is not None:
            return
        try:
            self._write_record()
        except (Error, OSError) as error:
            why = system_error(error) if isinstance(error, OSError) else str(error)
            self._note(
                f"cannot write {self._files[0]}: {why}; until it is written, other commands see "
                "processes that have ended"
            )
            self._write_later()

    def _note(self, text: str) -> None:
        if not self._notes.add(text):
            self._write_later()

    def _write_later(self) -> None:
        if self._again is None:
            self._again = asyncio.get_running_loop().call_later(UNWRITTEN_PAUSE_S, self._write_again)

    def _write_again(self) -> None:
        """Repeats the failed writes of the record and of notes."""
        self._again = None
        written = self._notes.flush()
        try:
            if self._ready:
                self._write_record()
        except (Error, OSError):
            written = False
        if not written:
            self._write_later()

    def _write_record(self) -> None:
        with ExitStack() as stack:
            stack.callback(self._write_well_known)  # also if the write of the other file fails
            self._up.write(self._files[0])

    def _write_well_known(self) -> None:
        try:
            if running.read_up(self._files[1]).pid == os.getpid():
                self._up.write(self._files[1])
        except Error:
            pass  # the file is missing, or belongs to another `wherry kv up`

    def _tell(self, well_known: Path) -> None:
        """Records this `up` as the user's newest one."""
        try:
            newest = running.read_up(well_known)
            self._up.before = [*newest.before, str(newest.cluster.absolute())]
            self._note(f"commands find this cluster now; that of {newest.cluster} goes on: name it with --cluster")
        except (Error, OSError):
            pass  # there is no older one
        with doing(f"cannot write {self._files[0]} or {well_known}"):
            self._write_record()
            self._up.write(well_known)

    def _forget(self, well_known: Path) -> None:
        """Removes the records of this `up`. If it was the newest, the previous one becomes the newest again."""
        older = running.older_up(self._up)
        for file in (self._directory / "up.json", well_known):
            try:
                if json.loads(file.read_text()).get("pid") != os.getpid():
                    continue
                if file == well_known and older is not None:
                    older.write(well_known)
                else:
                    file.unlink()
            except (OSError, ValueError):
                continue

    # ---- the end

    async def _end(self) -> None:
        self._ending = True
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            if process.poll() is None:
                process.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(GRACE_S):
                while any(process.poll() is None for process in running):
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            pass
        for process in running:
            asyncio.get_running_loop().remove_reader(process.pidfd)
            process.close()
