# SPDX-License-Identifier: Apache-2.0
"""Starts and stops the agent's process, for the command line and for tests."""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from wherry.errors import AlreadyExists, DeadlineExceeded, Error, NotFound, PermissionDenied, Unavailable
from wherry.session.sessionfile import SessionFile, load_session
from wherry.system import doing, wherryd

START_TIMEOUT_S = 20.0


def agent_command(session_file: Path, arguments: Sequence[str]) -> list[str]:
    """The command line of wherryd. Raises NotFound if it was not built."""
    return [str(wherryd()), "--session-file", str(session_file), *arguments]


def check_free(session_file: Path) -> None:
    """Raises AlreadyExists if a living agent owns the session file. The new agent replaces a stale file."""
    try:
        session = load_session(session_file)
    except (NotFound, Unavailable):
        return
    raise AlreadyExists(
        f"an agent runs already: pid {session.pid}, session file {session.path}; `wherry agent stop` ends it"
    )


def replace_process(session_file: Path, arguments: Sequence[str]) -> NoReturn:
    """Replaces this process with the agent, which then gets the signals and determines the exit status."""
    check_free(session_file)
    line = agent_command(session_file, arguments)
    os.execv(line[0], line)


def start_agent(session_file: Path, arguments: Sequence[str], said: Callable[[str], None] | None = None) -> SessionFile:
    """Starts the agent in the background, as a separate Unix session. Returns when the agent is ready.

    The agent's log is the one in its settings, else <session file>.log. The agent itself makes the directory and opens
    the log, after it has checked that other users could not have put files there. Raises Error with the agent's last
    line if the agent is not ready within START_TIMEOUT_S. `said` is called with each line that the agent wrote to its
    original standard error before it was ready; these are warnings.
    """
    check_free(session_file)
    log = session_file.with_suffix(".log")
    line = agent_command(session_file, ["--default-log-file", str(log), *arguments])
    with doing("cannot start the agent"):
        # The file to which the agent writes why it did not start.
        words = os.memfd_create("wherry-agent-start", os.MFD_CLOEXEC)
    try:
        with doing("cannot start the agent"):
            # The agent must not keep inherited descriptors, such as the lock of `flock`. posix_spawn would not close
            # descriptors above the limit (`ulimit -n`), which may exist.
            process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=words, start_new_session=True
            )
        pid = process.pid
        process.returncode = 0  # the agent outlives this process, so Popen must neither wait for it nor warn
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                raise Unavailable(f"the agent ended at once (exit status {code}): {_last_words(words, log)}")
            try:
                session = load_session(session_file)
                if session.pid == pid:
                    if said is not None:
                        for warning in _words(words):
                            said(warning)
                    return session
            except Error:
                pass  # the file is missing, incomplete, or of an earlier agent
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        why = _last_words(words, log)
        raise DeadlineExceeded(f"the agent was not ready within {START_TIMEOUT_S:g} s: {why}")
    finally:
        os.close(words)


def stop_agent(session: SessionFile, timeout: float) -> None:
    """Sends SIGTERM, and waits until the process has ended. Raises Error if that takes more than `timeout` seconds."""
    if not session.local:
        raise Error(f"the agent of {session.path} runs on {session.host}: stop it there")
    try:
        process = os.pidfd_open(session.pid)  # protects against reuse of the pid
    except ProcessLookupError:
        return
    try:
        # The process that holds the session file's lock wrote the pid in it.
        if not session.alive():
            return
        # But members of `agent.group` can open the file and hold its lock. They cannot listen at the agent's socket.
        if os.stat(session.path).st_mode & stat.S_IRGRP and _listener_of(session.control) != session.pid:
            raise Error(
                f"no agent with pid {session.pid} listens at {session.control}: it drains, or has gone; then end who "
                f"holds {session.path} (`fuser {session.path}` names them) and remove it"
            )
        name = _program_of(session.pid)
        if name is not None and not name.startswith("wherryd"):
            raise Error(f"pid {session.pid} of {session.path} is {name!r}, not an agent: the file is stale, remove it")
        try:
            signal.pidfd_send_signal(process, signal.SIGTERM)
        except ProcessLookupError:
            return
        except PermissionError:
            raise PermissionDenied(f"the agent (pid {session.pid}) belongs to another user") from None
        ended = select.poll()
        ended.register(process, select.POLLIN)
        if not ended.poll(timeout * 1000):
            raise Error(f"the agent (pid {session.pid}) still drains after {timeout:g} s; it will go, or use --timeout")
    finally:
        os.close(process)


def _listener_of(path: Path) -> int | None:
    """The pid of the process that listens at a Unix socket, as the kernel reports it. None if no process listens."""
    directory = os.open(path.parent, os.O_PATH | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX) as there:
            there.settimeout(5)
            there.connect(f"/proc/self/fd/{directory}/{path.name}")  # the path may be too long for a socket address
            return int(struct.unpack("3i", there.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
    except OSError:
        return None
    finally:
        os.close(directory)


def _program_of(pid: int) -> str | None:
    """The name of the program that `pid` runs. None if the process has ended or belongs to another user."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name.removesuffix(" (deleted)")
    except OSError:
        return None


def _words(words: int) -> list[str]:
    """The lines that the agent wrote to its original standard error."""
    return [line for line in os.pread(words, 1 << 20, 0).decode(errors="replace").splitlines() if line.strip()]


def _last_words(words: int, log: Path) -> str:
    lines = _words(words)
    return lines[-1] if lines else f"it did not say why; its log is {log}, unless its settings name another"
