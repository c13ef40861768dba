# SPDX-License-Identifier: Apache-2.0
"""Ranks and agents as processes: the common part of the launcher and `wherry run-part`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from wherry.errors import DeadlineExceeded, Error
from wherry.session import START_TIMEOUT_S, agent_command
from wherry.session import load_session as load_session
from wherry.system import Lines as Lines
from wherry.system import Network as Network
from wherry.system import Process as Process
from wherry.system import Profile as Profile
from wherry.system import Workspace as Workspace
from wherry.system import exit_status as exit_status
from wherry.system import find_profile as find_profile
from wherry.system import how_it_ended as how_it_ended
from wherry.system import scratch_directory as scratch_directory


def start_agent(
    name: str,
    directory: Path,
    core: int,
    *,
    environment: Mapping[str, str],
    listen: str = "",
    enter: Callable[[], None] | None = None,
) -> tuple[Process, Path, Path]:
    """Starts a job's agent on `core`. Returns the process, its session file and its log, both in `directory`. Raises
    Error."""
    file, log = directory / "agent.json", directory / "agent.log"
    arguments = ["--core", str(core), "--flight", "off"]
    # Agents may share a core with each other or with ranks, so an idle agent yields its core at once.
    arguments += ["--spin-us", "0", "--nap-us", "0"]
    arguments += ["--listen", listen] if listen else []
    with log.open("wb") as output:
        agent = Process(
            name,
            agent_command(file, arguments),
            environment=environment,
            cores={core},
            enter=enter,
            stdout=output,
            stderr=output,
        )
    return agent, file, log


async def until_ready(agent: Process, session_file: Path, given_up: Callable[[], bool], began: float) -> None:
    """Waits until the agent is ready, or `given_up` says that the job has failed. `began`: when agents were started, by
    the loop's clock. Raises DeadlineExceeded."""
    while not given_up() and not _ready(session_file, agent.pid):
        if asyncio.get_running_loop().time() - began > START_TIMEOUT_S:
            raise DeadlineExceeded(f"{agent.name} was not ready within {START_TIMEOUT_S:g} s")
        await asyncio.sleep(0.01)


def last_line(log: Path) -> str:
    """The last line of a log. Empty: the log has no line."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _ready(session_file: Path, pid: int) -> bool:
    try:
        return load_session(session_file).pid == pid
    except Error:
        return False  # the file is missing or incomplete
