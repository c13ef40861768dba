# SPDX-License-Identifier: Apache-2.0
"""`wherry top`: its figures compared with the posted data, and its page in a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agents import Agent
from jobs import Jobs, eventually
from kvclusters import KvHome

from wherry import cli
from wherry.cli.meter import Meter, bound_of_share
from wherry.cli.top import Pages
from wherry.kv import keeper
from wherry.system import paths

RUN = tuple[int, str, str]


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> RUN:
    capfd.readouterr()
    status = cli.main(list(arguments))
    out, err = capfd.readouterr()
    return status, out, err


# ---- rates


def test_a_rate_is_the_growth_over_the_time_between_two_pages() -> None:
    meter = Meter()
    assert meter.rate("x", 100, at=1.0) is None
    meter.next_page()
    assert meter.rate("x", 150, at=3.0) == 25.0
    assert meter.rate("y", 1, at=3.0) is None, "it was not on the page before"
    meter.next_page()
    assert meter.rate("x", 20, at=4.0) is None, "it began again"
    meter.next_page()
    assert meter.rate("x", 20, at=5.0) == 0.0
    meter.next_page()
    meter.next_page()
    assert meter.rate("x", 30, at=6.0) is None, "a page without it"


# ---- histograms


@pytest.mark.parametrize("seed", range(20))
def test_a_share_lies_within_the_bound_that_numpy_finds(seed: int) -> None:
    generator = np.random.default_rng(seed)
    bounds = np.array([1.0, 2.0, 5.0, 10.0, np.inf])
    old, new = (generator.uniform(0, 12, size=int(generator.integers(1, 300))) for _ in range(2))
    before = {float(bound): float(np.sum(old <= bound)) for bound in bounds}
    buckets = {float(bound): before[float(bound)] + float(np.sum(new <= bound)) for bound in bounds}
    for share in (0.5, 0.99):
        least = np.quantile(new, share, method="inverted_cdf")
        assert bound_of_share(buckets, before, share) == bounds[np.searchsorted(bounds, least)]


def test_a_share_of_nothing_has_no_bound() -> None:
    assert bound_of_share({}, {}, 0.5) is None
    assert bound_of_share({1.0: 3.0, np.inf: 3.0}, {1.0: 3.0, np.inf: 3.0}, 0.5) is None
    assert bound_of_share({1.0: 0.0, np.inf: 3.0}, {}, 0.5) == np.inf


# ---- an agent


def particles(rows: int, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    return {"id": np.arange(rows, dtype=np.int64) + seed, "x": np.random.default_rng(seed).random((rows, 3))}


ROW = 8 + 24
"""Bytes of one."""


@pytest.fixture
def pages(agent: Agent) -> Pages:
    return Pages(agent.session_file)


def test_figures_are_those_of_what_was_posted(agent: Agent, pages: Pages) -> None:
    import wherry

    assert pages.next().document["streams"] == []
    with wherry.Session(agent=str(agent.session_file), name="a [writer]") as session:
        stream = session.stream("particles", particles(50), keep_frames=4)
        opened = stream.offload(particles(50))
        opened.wait(timeout=300)
        before = time.monotonic()
        first: Any = pages.next().document
        tickets = [stream.offload(particles(100, seed), tag=seed) for seed in range(7)]
        for ticket in tickets:
            ticket.wait(timeout=300)
        page = pages.next()
        longest = time.monotonic() - before
    document: dict[str, Any] = page.document
    (one,) = document["streams"]
    assert (one["name"], one["total_frames"], one["held_frames"], one["evicted_unread"]) == ("particles", 8, 4, 4)
    # Seven frames arrived between the two pages, in a time that has a known upper limit.
    seconds = 7 / one["frames_per_second"]
    assert 0 < seconds < longest
    in_frames = one["total_bytes"] - first["streams"][0]["total_bytes"]  # with Arrow's metadata
    assert 7 * 100 * ROW < in_frames < 7 * (100 * ROW + 1024)
    assert one["bytes_per_second"] == pytest.approx(in_frames / seconds)

    moved = document["move"]
    assert (moved["offloads_total"], moved["bytes_total"], moved["failed_total"]) == (8, 750 * ROW, 0)
    assert moved["bytes_per_second"] / moved["offloads_per_second"] == pytest.approx(100 * ROW)
    # The tickets report the duration of each transfer.
    means, told = moved["transfer_mean_us"], [ticket.transfer_ns / 1000 for ticket in tickets]
    assert means["interval"] == pytest.approx(sum(told) / 7, rel=1e-6)
    assert means["all"] == pytest.approx((sum(told) + opened.transfer_ns / 1000) / 8, rel=1e-6)

    # The quantiles are bounds of histogram buckets: 1, 2, 5, 10, ... us.
    for when, some in (("interval", told), ("all", [*told, opened.transfer_ns / 1000])):
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            least = np.quantile(some, share, method="inverted_cdf")
            steps = [factor * 10.0**power for power in range(8) for factor in (1, 2, 5)]
            expected = next(bound for bound in steps if bound >= least)
            assert moved["transfer_within_us"][when][name] == pytest.approx(expected), (when, name)

    (client,) = document["agent"]["sessions"]
    assert (client["name"], client["pid"], client["bytes"]) == ("a [writer]", os.getpid(), 750 * ROW)
    assert client["bytes_per_second"] > 0
    assert document["agent"]["pid"] == agent.process.pid
    assert 0 <= document["agent"]["uptime_s"] < 3600
    assert document["agent_missing"] is None
    # The first page has no interval, so no rates. An idle interval has no transfer times.
    assert first["streams"][0]["frames_per_second"] is None
    idle = pages.next().document
    assert isinstance(idle["move"], dict)
    assert idle["move"]["transfer_mean_us"]["interval"] is None
    assert idle["move"]["transfer_within_us"]["interval"] == {"p50": None, "p99": None}
    assert idle["move"]["offloads_per_second"] == 0


def test_once_prints_one_page(capfd: pytest.CaptureFixture[str], agent: Agent) -> None:
    import wherry

    with wherry.Session(agent=str(agent.session_file), name="a [writer]") as session:
        session.stream("particles", particles(50)).offload(particles(50)).wait(timeout=300)
        words = ["--once", "--interval", "0.1", "--agent", str(agent.session_file)]
        status, out, err = run(capfd, "top", *words)
        assert (status, err) == (0, "")
        for part in (f"pid {agent.process.pid}", "a [writer]", "particles", "Offloads", "in all", "no kv cluster"):
            assert part in out, out
        assert agent.session.token not in out
        assert "\x1b" not in out
        assert "operators" not in out, "no stream has any"
        status, out, err = run(capfd, "top", "--json", *words)
        assert (status, err) == (0, "")
        document = json.loads(out)
        assert [one["name"] for one in document["streams"]] == ["particles"]
        assert document["interval_s"] == 0.1
        assert document["kv"] is None
        assert document["kv_missing"].startswith("no kv cluster")
        assert document["route"]["jobs"] == 0
        assert agent.session.token not in out


def test_a_stream_with_operators_shows_their_state(capfd: pytest.CaptureFixture[str], agent: Agent) -> None:
    import wherry

    declared = [{"name": "few", "steps": [{"filter": ["<", "id", 3]}]}]
    words = ["--once", "--interval", "0.1", "--agent", str(agent.session_file)]
    with wherry.Session(agent=str(agent.session_file)) as session:
        stream = session.stream("particles", particles(50), operators=declared)
        stream.offload(particles(50)).wait(timeout=300)

        def worked_off() -> bool:
            source, derived = wherry.streams(agent.session_file)
            return source.operator_lag == 0 and derived.total_frames == 1

        assert eventually(worked_off)
        status, out, _ = run(capfd, "top", *words)
    assert status == 0
    rows = {line.split()[0]: line for line in out.splitlines() if line.startswith(" particles")}
    assert "up to date" in rows["particles"]
    assert "result of particles" in rows["particles.few"]


def test_nothing_to_show_is_exit_1(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, err = run(capfd, "top", "--once", "--interval", "0.1")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "start one with `wherry agent start`" in err
    assert "no kv cluster" in err
    status, out, err = run(capfd, "top", "--once", "--interval", "0.1", "--agent", str(tmp_path / "none.json"))
    assert (status, out) == (1, "")
    assert "none.json does not exist" in err
    assert "kv" not in err


def test_an_agent_without_metrics_shows_its_streams(
    capfd: pytest.CaptureFixture[str], make_agent: Callable[..., Agent]
) -> None:
    import wherry

    agent = make_agent("--metrics", "off")
    with wherry.Session(agent=str(agent.session_file)) as session:
        session.stream("particles", particles(5)).offload(particles(5)).wait(timeout=300)
        status, out, _ = run(capfd, "top", "--once", "--interval", "0.1", "--agent", str(agent.session_file))
    assert status == 0
    assert "the agent serves no metrics" in out
    assert "particles" in out


def test_an_agent_that_goes_and_comes_back(make_agent: Callable[..., Agent], tmp_path: Path) -> None:
    import wherry

    first = make_agent()
    pages = Pages(first.session_file)

    def post(count: int) -> None:
        with wherry.Session(agent=str(first.session_file)) as session:
            stream = session.stream("particles", particles(5))
            for _ in range(count):
                stream.offload(particles(5)).wait(timeout=300)

    post(5)
    assert pages.next().missing.keys() == {"kv"}
    first.stop(signal.SIGKILL)
    page = pages.next()
    assert page.document["agent"] is None
    assert "has gone" in page.missing["agent"]
    again = Agent(first.session_file.parent, paths.wherryd())
    try:
        post(7)  # more than before, so only the agent's identity shows that its counters restarted
        document: dict[str, Any] = pages.next().document
        assert document["agent"]["pid"] == again.process.pid
        assert (document["move"]["offloads_total"], document["move"]["offloads_per_second"]) == (7, None)
    finally:
        again.stop()


# ---- messages, and a cluster


def test_messages_that_an_agent_routes_are_counted(jobs: Jobs, agent: Agent) -> None:
    pages = Pages(agent.session_file)
    pages.next()
    program = str(paths.built("apps", "histogram"))
    updates = 40_000
    words = ["--placement", "dpu", "--agent", str(agent.session_file), "--ranks-per-node", "2", "--", program]
    done = jobs.run(*words, "--updates", str(updates), "--counters", "1024")
    assert done.returncode == 0, done.stderr
    figures: Any = pages.next().document["route"]
    # The library itself sends a few messages, for reductions and at the end.
    assert updates <= figures["messages_total"] < updates + 1000
    assert figures["messages_per_second"] > 0
    assert figures["bytes_total"] >= 16 * updates
    assert sum(cause["total"] for cause in figures["flushes"].values()) > 0
    assert (figures["jobs"], figures["ranks"]) == (0, 0)


def frames(status: dict[str, Any]) -> dict[int, int]:
    return {node["node"]: node["frames"] for node in status["nodes"]}


def test_nodes_of_a_cluster_with_the_rates_of_what_was_asked_of_them(home: KvHome) -> None:
    home.ok("up", "--detach", "--bucket-bits", "8", "--ping-ms", "50", "--misses", "40")
    pages = Pages(cluster=home.up.cluster)
    writes = 300
    least = frames(keeper.status(home.cluster, 60))
    began = time.monotonic()
    first: Any = pages.next().document["kv"]
    client = home.client(lanes=1)
    for key in range(writes):
        client.put(key, b"value")
    client.close()

    def told() -> bool:  # the keeper has the values from its last ping
        now = frames(keeper.status(home.cluster, 60))
        return sum(now.values()) - sum(least.values()) >= writes

    assert eventually(told)
    second: Any = pages.next().document["kv"]
    seconds = time.monotonic() - began
    most = frames(keeper.status(home.cluster, 60))
    assert {node["state"] for node in second["nodes"]} == {"serving"}
    for old, new in zip(first["nodes"], second["nodes"], strict=True):
        number = new["node"]
        assert least[number] <= old["frames"] <= new["frames"] <= most[number]
        assert new["frames_per_second"] >= (new["frames"] - old["frames"]) / seconds
        assert new["pid"] == home.up.nodes[number]
        assert new["address"] == home.cluster.nodes[number]
    assert (
        sum(new["frames"] - old["frames"] for old, new in zip(first["nodes"], second["nodes"], strict=True)) >= writes
    )
    assert sum(node["leads"] for node in second["nodes"]) == 256
    shown = subprocess.run(
        [sys.executable, "-m", "wherry", "top", "--once", "--interval", "0.1"],
        env=home.environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    for part in ("kv cluster 'local'", "serving", "no agent", *home.cluster.nodes[:3]):
        assert part in shown.stdout, shown.stdout

    os.kill(home.up.keeper, signal.SIGKILL)
    gone: Any = pages.next().document["kv"]
    assert "is not there" in gone["keeper_missing"]
    assert [node["node"] for node in gone["nodes"]] == [0, 1, 2]
    home.ok("down")
    assert pages.next().document["kv"] is None


# ---- in a terminal


class Terminal:
    """Runs `wherry top` on a separate terminal."""

    def __init__(self, *words: str, environment: dict[str, str]) -> None:
        self.ours, self.theirs = os.openpty()
        termios.tcsetwinsize(self.theirs, (50, 150))
        self.before = termios.tcgetattr(self.theirs)
        self.raw = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "wherry", "top", "--interval", "0.1", *words],
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            env=environment | {"TERM": "xterm"},
            preexec_fn=self._own,
            start_new_session=True,
        )

    def _own(self) -> None:
        import fcntl

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that a typed Ctrl-C becomes a signal

    def shows(self, text: str) -> bool:
        """Whether `text` appears in the output after this call."""
        return self.ends_with(lambda new: text in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", new))

    def ends_with(self, good: Callable[[str], bool], seconds: float = 120) -> bool:
        new, end = "", time.monotonic() + seconds
        while not good(new):
            if not select.select([self.ours], [], [], max(0.0, end - time.monotonic()))[0]:
                return False
            try:
                data = os.read(self.ours, 1 << 16).decode(errors="replace")
            except OSError:  # the program has closed the last open end
                return False
            new += data
            self.raw += data
        return True

    def type(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def ended(self) -> int:
        """Waits for the end; returns the exit status. Checks that the terminal has its former settings."""
        over: Callable[[str], bool] = lambda _: self.process.poll() is not None  # noqa: E731
        assert eventually(lambda: self.ends_with(over, 0.05) or over(""))
        status = self.process.wait(timeout=300)
        self.ends_with(lambda _: False, 0.1)
        assert self.raw.count("\x1b[?1049h") == self.raw.count("\x1b[?1049l") == 1, "its own screen, and back"
        assert self.raw.rfind("\x1b[?25h") > self.raw.rfind("\x1b[?25l"), "the cursor is shown again"
        assert termios.tcgetattr(self.theirs) == self.before
        return status

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@contextlib.contextmanager
def terminal(*words: str, environment: dict[str, str]) -> Iterator[Terminal]:
    one = Terminal(*words, environment=environment)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent), "XDG_RUNTIME_DIR": str(tmp_path / "nobody")}


def test_a_live_page_lives_through_the_agents_end_and_return(
    make_agent: Callable[..., Agent], surroundings: dict[str, str]
) -> None:
    import wherry

    agent = make_agent()
    with terminal("--agent", str(agent.session_file), environment=surroundings) as page:
        assert page.shows("no streams yet")
        assert page.shows("q or Ctrl-C ends it")
        with wherry.Session(agent=str(agent.session_file)) as session:
            session.stream("particles", particles(5)).offload(particles(5)).wait(timeout=300)
            assert page.shows("particles")
        agent.stop()
        assert page.shows("no agent")
        again = Agent(agent.session_file.parent, paths.wherryd())
        try:
            assert page.shows(f"pid {again.process.pid}")
            page.type(b"x")  # other keys have no effect
            assert page.shows("no streams yet")
            page.type(b"\x03")
            assert page.ended() == 130
        finally:
            again.stop()
    assert "Traceback" not in page.raw


@pytest.mark.parametrize(("how", "status"), [("q", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_live_page_leaves_the_terminal_as_it_was(
    surroundings: dict[str, str], how: str | signal.Signals, status: int
) -> None:
    with terminal(environment=surroundings) as page:
        assert page.shows("no agent")
        if isinstance(how, str):
            page.type(how.encode())
        else:
            page.process.send_signal(how)
        assert page.ended() == status
    assert "Traceback" not in page.raw


def test_a_cluster_file_that_is_none_does_not_end_the_page(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text("nonsense")
    page = Pages(cluster=file).next()
    assert page.document["kv"] is None
    assert str(file) in page.missing["kv"]
