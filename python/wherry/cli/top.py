# SPDX-License-Identifier: Apache-2.0
"""`wherry top`: a live page that shows the agent, its streams and messages, and a kv cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from wherry import services
from wherry.cli.meter import AgentReading, Meter, TopPart, plain_table, rate_text
from wherry.cli.output import out
from wherry.cli.session import AgentOption, locate, read_metrics, sessions
from wherry.errors import Error, NotFound
from wherry.units import bytes_text, span_text
from wherry.version import VERSION


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """One page, in a form for programs and a form for people."""

    document: dict[str, object]
    shown: list[Table | str]
    missing: dict[str, str]
    """The reasons why there is no agent or no cluster."""


class Pages:
    """Makes pages about an agent and a cluster. Each page has the rates since the previous page."""

    def __init__(self, agent: Path | None = None, cluster: Path | None = None) -> None:
        """`agent`, `cluster`: what to show. None: the one that runs when a page is made."""
        self._agent, self._cluster = agent, cluster
        self._meter = Meter()

    def next(self) -> Page:
        """Reads all values again. A process that does not answer is not an error: the page says so."""
        self._meter.next_page()
        document: dict[str, object] = {"wherry": VERSION, "time": time.time()}
        shown: list[Table | str] = []
        missing: dict[str, str] = {}
        try:
            part = self._agent_part()
            document |= {**part.document, "agent_missing": None}
            shown += part.shown
        except Error as error:
            missing["agent"] = str(error)
            document |= {"agent": None, "agent_missing": str(error)}
        for service in services.parts("cli"):
            if not hasattr(service, "cluster_top"):
                continue
            try:
                part = service.cluster_top(self._cluster, self._meter)
                document |= {**part.document, "kv_missing": None}
                shown += part.shown
            except (Error, FileNotFoundError) as error:
                missing["kv"] = str(error)
                document |= {"kv": None, "kv_missing": str(error)}
        return Page(document, shown + list(missing.values()), missing)

    def _agent_part(self) -> TopPart:
        session = locate(self._agent)
        reading = AgentReading(session, read_metrics(session))
        part = _agent_shown(reading, self._meter)
        document, shown = dict(part.document), list(part.shown)
        for service in services.parts("cli"):
            if hasattr(service, "agent_top"):
                more = service.agent_top(reading, self._meter)
                document |= more.document
                shown += more.shown
        return TopPart(document, shown)


def _agent_shown(reading: AgentReading, meter: Meter) -> TopPart:
    session = reading.session
    budget, used = reading.value("wherry_agent_budget_bytes"), reading.value("wherry_agent_used_bytes")
    started = session.written()
    uptime = time.time() - started if started is not None else None
    clients = []
    for one in sessions(dict(reading.metrics)):
        rate = meter.rate(reading.of_this_agent(f"session {one.session}"), one.bytes, reading.at)
        clients.append(dataclasses.asdict(one) | {"bytes_per_second": rate})
    agent = {
        "pid": session.pid,
        "wherry": session.wherry,
        "address": session.address,
        "session_file": str(session.path),
        "metrics_missing": None if reading.metrics else "the agent serves no metrics",
        "uptime_s": uptime,
        "budget_bytes": int(budget),
        "used_bytes": int(used),
        "sessions": clients,
    }
    line = f"agent {session.wherry}, pid {session.pid}, {session.address}"
    line += f", up {span_text(uptime)}" if uptime is not None else ""
    if not reading.metrics:
        return TopPart({"agent": agent}, [line, "no clients and no rates: the agent serves no metrics"])
    line += f", holds {bytes_text(used)} of {bytes_text(budget)}"
    table = plain_table("Clients", ("client", "transports"), ("pid", "bytes moved", "bytes"))
    for client in clients:
        table.add_row(
            Text(client["name"]),
            Text(client["transports"]),
            str(client["pid"]),
            bytes_text(client["bytes"]),
            rate_text(client["bytes_per_second"], of_bytes=True),
        )
    return TopPart({"agent": agent}, [line, table if clients else "no clients"])


def top(
    agent: AgentOption = None,
    cluster: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The kv cluster. Default: $WHERRY_KV_CLUSTER, or that of your newest `wherry kv up`."
        ),
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds from one page to the next.")] = 1.0,
    once: Annotated[
        bool,
        typer.Option("--once", help="Print one page after one interval, as for any output that is not a terminal."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print that page as a JSON object, for programs.")] = False,
) -> None:
    """Show the activity of this machine's agent and kv cluster, updated every second until q or Ctrl-C.

    The page shows the agent's clients, streams, offloads and routed messages, and the cluster's nodes as the keeper
    sees them. Rates refer to the time since the previous page. If the agent or the cluster does not run, the page says
    so, and shows it when it starts.

    With --once the exit status is 1 if neither an agent nor a cluster runs, or if the named one does not run.

    Examples:

      wherry top

      wherry top --interval 5 --cluster ~/lab/cluster.toml

      wherry top --json | jq '.streams[] | {name, frames_per_second}'
    """
    pages = Pages(agent, cluster)
    if not (once or as_json) and sys.stdout.isatty():
        _live(pages, interval)
        return
    pages.next()
    time.sleep(interval)
    page = pages.next()
    named = {"agent": agent, "kv": cluster}
    if len(page.missing) == len(named) or any(named[name] is not None for name in page.missing):
        raise NotFound("; ".join(why for name, why in page.missing.items() if named[name] or not any(named.values())))
    if as_json:
        print(json.dumps(page.document | {"interval_s": interval}, indent=1))
        return
    console = out()
    for one in _spaced(page):
        console.print(one)


def _spaced(page: Page) -> Iterator[Table | Text]:
    """The page's texts unchanged, and its tables, each after an empty line."""
    for one in page.shown:
        if isinstance(one, str):
            yield Text(one)
        else:
            yield Text()
            yield one


def _live(pages: Pages, interval: float) -> None:
    """Shows the page on the alternate screen of the terminal, which is left however the command ends."""
    from rich.live import Live  # imported here, because no other command needs it

    with _ended_by_signals(), _keyboard() as pressed, Live(console=out(), screen=True, auto_refresh=False) as live:
        while True:
            began = time.monotonic()
            page = pages.next()
            head = f"wherry top, {time.strftime('%H:%M:%S')}, every {interval:g} s; q or Ctrl-C ends it"
            live.update(Group(Text(head, style="dim"), Text(), *_spaced(page)), refresh=True)
            if pressed("q", began + interval):
                return


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP restore the terminal, like Ctrl-C."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _keyboard() -> Iterator[Callable[[str, float], bool]]:
    """Yields a function that waits until a key is pressed or a time is reached, and returns whether the key was
    pressed. Keys are not echoed."""

    def only_waits(_: str, until: float) -> bool:
        time.sleep(max(0.0, until - time.monotonic()))
        return False

    if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
        yield only_waits
        return
    terminal = sys.stdin.fileno()

    def pressed(key: str, until: float) -> bool:
        while (left := until - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                typed = _typed(terminal)
                if not typed or key in typed:  # empty: the terminal was closed
                    return True
        return False

    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield pressed
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _typed(terminal: int) -> str:
    """The keys typed since the last call; empty if the terminal was closed."""
    try:
        return os.read(terminal, 64).decode(errors="replace")
    except OSError:
        return ""
