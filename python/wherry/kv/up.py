# SPDX-License-Identifier: Apache-2.0
"""`wherry kv up`: runs a keeper and nodes on this machine. They end with the command, however it ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from wherry.errors import AlreadyExists, InvalidArgument, PermissionDenied
from wherry.kv import cluster_file, network
from wherry.kv.cluster_file import Cluster
from wherry.kv.network import KvNetwork
from wherry.kv.options import Options, cluster_text
from wherry.kv.running import Up
from wherry.kv.supervisor import Supervisor
from wherry.system import ENDING, Workspace, doing, ending_held, inherited, open_own, replace_own, secure_directory
from wherry.units import counted


class _Ended(BaseException):
    """SIGTERM or SIGHUP arrived during the start."""


@contextmanager
def _undone_by_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP undo the start, like Ctrl-C, before the event loop handles them."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        for each in before:  # ignored from now on, because the cleanup is short
            signal.signal(each, signal.SIG_IGN)
        raise _Ended

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(options: Options, ready: Callable[[Cluster, dict[str, Any], Up], None]) -> int:
    """Starts all processes, calls `ready` with the keeper's first status when all nodes serve, and waits for a signal.

    Returns the exit status: 0 after SIGTERM or SIGHUP, 130 after Ctrl-C. Raises Error if the cluster cannot be started.
    """
    os.umask(os.umask(0) & ~0o700)  # The owner keeps all rights to files that this process and its nodes make.
    try:
        with _undone_by_signals():
            return _run(options, ready)
    except _Ended:
        return 0


def run_detached(options: Options, describe: Callable[[Cluster, dict[str, Any], Up], str]) -> tuple[int, str]:
    """Forks a child that runs the cluster. The parent returns 0 and the text of `describe` when all nodes serve. If
    they do not, the child prints the reason, and the parent returns the child's status. The child returns when the
    cluster has ended, with an empty text."""
    read, write = os.pipe()
    pid, said = -1, ""
    try:
        with ending_held():
            pid = os.fork()
        if pid != 0:
            os.close(write)
            with os.fdopen(read) as pipe:
                said = pipe.read()
    except BaseException:
        if pid > 0:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        raise
    if pid == 0:
        os.setsid()
        os.close(read)  # so that the write fails if nobody waits for it
        # The cluster must not keep inherited descriptors, such as the lock of `flock`.
        for number in inherited():
            os.close(number)

        def ready(cluster: Cluster, status: dict[str, Any], up: Up) -> None:
            text = describe(cluster, status, up)
            _talk_to_a_log(cluster)
            with os.fdopen(write, "w") as pipe:
                pipe.write(text)

        return run(options, ready), ""
    if not said:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) or 1, ""
    return 0, said


def _talk_to_a_log(cluster: Cluster) -> None:
    """Redirects standard output and standard error to a log."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    place = cluster.path.absolute().parent
    with secure_directory(place, "name another --dir") as opened:
        log = open_own("up.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, opened, place)
    os.set_blocking(log, True)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _run(options: Options, ready: Callable[[Cluster, dict[str, Any], Up], None]) -> int:
    with ExitStack() as stack:
        workspace = Workspace()
        stack.callback(workspace.close)
        directory = (options.directory or workspace.directory).absolute()
        try:
            opened = stack.enter_context(secure_directory(directory, "name another --dir"))
        except (InvalidArgument, PermissionDenied) as error:
            raise type(error)(f"--dir {directory}: {error}") from None
        lock = open_own("up.lock", os.O_RDWR | os.O_CREAT, opened, directory)
        stack.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyExists(f"another `wherry kv up` runs in {directory}: `wherry kv down` ends it") from None
        _check(options)
        file = directory / "cluster.toml"
        if not os.path.lexists(file):
            # If the cluster never served, its files are removed, because they would block a corrected command line. The
            # logs stay.
            unused = stack.enter_context(ExitStack())
            for name in (
                file,
                file.with_name(f"{file.name}.state.json"),
                file.with_name(f"{file.name}.state.json.lock"),
            ):
                if not os.path.lexists(name):
                    unused.callback(name.unlink, missing_ok=True)
            ready = _then(ready, unused.pop_all)
        cluster = _cluster_of(file, options, opened)
        network = None
        if options.tap:
            network = KvNetwork(cluster, option="--tap", taps=cluster.numbers[: options.rtl])
        elif options.xdp or any(cluster.xdp):
            network = KvNetwork(cluster)
        if network is not None:
            stack.callback(network.close)
        supervisor = Supervisor(cluster, options, workspace, network, opened)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until the event loop handles them
            return asyncio.run(supervisor.run(ready))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _then(ready: Callable[[Cluster, dict[str, Any], Up], None], more: Callable[[], object]) -> Any:
    def both(cluster: Cluster, status: dict[str, Any], up: Up) -> None:
        more()
        ready(cluster, status, up)

    return both


def _check(options: Options) -> None:
    if options.rtl and options.xdp:
        raise InvalidArgument("--rtl: simulated nodes are on UDP sockets or TAP devices, and --xdp has neither")
    if options.tap and not options.rtl:
        raise InvalidArgument("--tap: for simulated nodes: say how many with --rtl")
    if options.xdp or options.tap:
        option = "--tap" if options.tap else "--xdp"
        network.require_root(option)
        if options.etcd:
            raise InvalidArgument(f"{option}: the network that it makes has no way out to an etcd")


def _cluster_of(file: Path, options: Options, directory: int) -> Cluster:
    """The cluster of `file`. `directory`: the open descriptor of the file's directory, which was checked."""
    if not os.path.lexists(file):
        if options.rtl > (options.nodes or 3):
            raise InvalidArgument(f"--rtl {options.rtl}: the cluster has {counted(options.nodes or 3, 'node')}")
        with doing(f"cannot write {file}"):
            replace_own(file.name, cluster_text(options), directory)
        return cluster_file.load(file)
    os.close(open_own(file.name, os.O_RDONLY, directory, file.parent))
    given = ("nodes", "bucket_bits", "etcd", "ping_ms", "misses", "lease_ms", "name")
    for name in given:
        if getattr(options, name) is not None:
            flag = "--" + name.replace("_", "-")
            raise InvalidArgument(
                f"{file} is there already and has a value for {flag}: edit it, remove it, or name another --dir"
            )
    cluster = cluster_file.load(file)
    if options.xdp and not any(cluster.xdp):
        raise InvalidArgument(f"{file} is there already and has no node with xdp: remove it, or name another --dir")
    if cluster.mode == "static":
        raise InvalidArgument(f"{file}: mode static has no keeper: start its nodes with `wherry-kv node`")
    return cluster
