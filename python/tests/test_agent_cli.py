# SPDX-License-Identifier: Apache-2.0
"""The command line, run with a real agent."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import grp
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from agents import Agent, process_exists

from wherry import cli
from wherry.errors import Error, NotFound
from wherry.session import agent_process, sessionfile
from wherry.session.metrics import read_metrics
from wherry.system import paths

pytestmark = pytest.mark.agent


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capfd.readouterr()
    status = cli.main(list(arguments))
    out, err = capfd.readouterr()
    return status, out, err


def particles(rows: int = 50, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    return {"id": np.arange(rows, dtype=np.int64) + seed, "x": np.random.default_rng(seed).random((rows, 3))}


@pytest.fixture
def at(agent: Agent) -> list[str]:
    return ["--agent", str(agent.session_file)]


@pytest.fixture
def stream(agent: Agent) -> Iterator[Any]:
    """The open stream "particles" with three frames of 50 rows and tags 0, 10, 20."""
    import wherry

    with wherry.Session(agent=str(agent.session_file)) as session:
        opened = session.stream("particles", particles())
        for i in range(3):
            opened.offload(particles(seed=i), tag=10 * i).wait(timeout=300)
        yield opened


def test_start_status_stop(
    capfd: pytest.CaptureFixture[str], wherryd: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    where = tmp_path / "private" / "agent.json"
    monkeypatch.setenv("WHERRY_SESSION", str(where))
    status, out, err = run(capfd, "agent", "start", "--budget", "64MiB", "--metrics", "127.0.0.1:0")
    assert (status, out) == (0, "")
    session = sessionfile.load_session()
    try:
        assert f"agent started: pid {session.pid}" in err
        assert where.stat().st_mode & 0o777 == 0o600
        assert where.parent.stat().st_mode & 0o777 == 0o700
        assert session.token not in err

        status, _, err = run(capfd, "agent", "start")
        assert status == 1
        assert f"an agent runs already: pid {session.pid}" in err

        status, out, _ = run(capfd, "agent", "status")
        assert status == 0
        assert f"pid {session.pid}" in out
        assert "no streams yet" in out
        assert session.token not in out
        status, _, err = run(capfd, "agent", "stop")
        assert status == 0
        assert "agent stopped" in err
        assert not where.exists()
        assert not process_exists(session.pid)
        with pytest.raises(NotFound):
            sessionfile.load_session()
    finally:
        if process_exists(session.pid):
            os.kill(session.pid, signal.SIGKILL)
        os.waitpid(session.pid, 0)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away, and play the other user")
def test_default_directory_that_somebody_else_made_first_is_refused_and_no_file_of_the_caller_is_touched(
    capfd: pytest.CaptureFixture[str], wherryd: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    monkeypatch.delenv("WHERRY_SESSION", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # as in /tmp, where any user may create wherry-UID
    theirs = tmp_path / "wherry"
    theirs.mkdir()
    (theirs / "agent.log").symlink_to(thesis)
    os.chown(theirs, 12345, 12345)
    for words in (["agent", "start"], ["agent", "start", "--foreground"]):
        if "--foreground" in words:
            line = [sys.executable, "-m", "wherry.cli", *words]
            environment = {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
            done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300)
            status, err = done.returncode, done.stderr
        else:
            status, _, err = run(capfd, *words)
        assert status != 0
        assert "belongs to user 12345" in err
        assert "$WHERRY_SESSION" in err
        assert thesis.read_text() == "years of work"
    # The same if the directory is our own, but a link has the name of the log.
    os.chown(theirs, 0, 0)
    status, _, err = run(capfd, "agent", "start")
    assert status == 1
    assert "symbolic link" in err
    assert thesis.read_text() == "years of work"


def test_standard_error_of_the_agent_is_its_log(wherryd: Path, tmp_path: Path) -> None:
    session = agent_process.start_agent(tmp_path / "agent.json", ["--budget", "64MiB"])
    try:
        log = tmp_path / "agent.log"
        assert os.path.samestat(os.stat(f"/proc/{session.pid}/fd/2"), log.stat())
        assert log.stat().st_mode & 0o777 == 0o600
        assert f"session file {session.path}" in log.read_text()
    finally:
        agent_process.stop_agent(session, 20)
        os.waitpid(session.pid, 0)


@contextlib.contextmanager
def session_file_that_names(where: Path, command: list[str], **fields: str) -> Iterator[subprocess.Popen[bytes]]:
    """Writes the session file of a dead agent, whose pid now belongs to `command`. The test must not end `command`."""
    innocent = subprocess.Popen(command)
    try:
        said = {"version": 2, "pid": innocent.pid, "control": "x", "host": "", "port": 0, "token": "t"}
        said |= {"local_socket": "", "flight": "", "metrics": "", "wherry": "0.1.0"}
        where.write_text(json.dumps(said | fields))
        where.chmod(0o640 if "group" in fields else 0o600)
        yield innocent
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_stop_leaves_a_process_alone_that_got_the_pid_of_a_dead_agent(tmp_path: Path) -> None:
    where = tmp_path / "agent.json"
    with session_file_that_names(where, ["sleep", "600"]):
        agent_process.stop_agent(sessionfile.load_session(where, require_alive=False), 1)


def test_stop_leaves_another_agent_alone_when_a_member_of_the_group_holds_the_file_of_a_dead_one(
    tmp_path: Path,
) -> None:
    other, where = tmp_path / "wherryd", tmp_path / "agent.json"
    shutil.copy("/bin/sleep", other)  # its name looks like that of another agent of this user
    with (
        session_file_that_names(where, [str(other), "600"], group=grp.getgrgid(os.getgid()).gr_name),
        where.open() as f,
    ):
        fcntl.flock(f, fcntl.LOCK_EX)
        with pytest.raises(Error, match="no agent with pid"):
            agent_process.stop_agent(sessionfile.load_session(where, require_alive=False), 1)


def test_stop_ends_an_agent_of_a_group(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, wherryd: Path, tmp_path: Path
) -> None:
    where = str(tmp_path / "agent.json")
    monkeypatch.setenv("WHERRY_GROUP", grp.getgrgid(os.getgid()).gr_name)
    monkeypatch.setenv("WHERRY_SESSION", where)
    started = run(capfd, "agent", "start", "--budget", "64MiB")
    assert started[0] == 0, started
    pid = sessionfile.load_session(where).pid
    stopped = run(capfd, "agent", "stop")
    assert stopped[0] == 0, stopped
    assert not process_exists(pid)


def test_wrong_setting_is_reported_in_the_agents_own_words(
    capfd: pytest.CaptureFixture[str], wherryd: Path, tmp_path: Path
) -> None:
    status, _, err = run(capfd, "agent", "start", "--budget", "plenty", "--session-file", str(tmp_path / "a.json"))
    assert status == 1
    assert "plenty" in err
    assert "Traceback" not in err


def test_a_budget_beyond_the_memory_that_is_left_is_a_warning(
    capfd: pytest.CaptureFixture[str], wherryd: Path, tmp_path: Path
) -> None:
    where = str(tmp_path / "a.json")
    status, out, err = run(capfd, "agent", "start", "--budget", "60TiB", "--session-file", where)
    assert (status, out) == (0, "")
    try:
        assert "wherryd: warning: agent.budget is 61440.0 GiB, and " in err
        assert "agent started" in err
        assert "agent.budget is 61440.0 GiB" in (tmp_path / "a.log").read_text()
    finally:
        assert run(capfd, "agent", "stop", "--agent", where)[0] == 0


@pytest.mark.parametrize("budget", ["0", "1KiB", "65TiB"])
def test_a_budget_that_cannot_be_is_refused_with_the_limits(
    capfd: pytest.CaptureFixture[str], wherryd: Path, tmp_path: Path, budget: str
) -> None:
    status, _, err = run(capfd, "agent", "start", "--budget", budget, "--session-file", str(tmp_path / "a.json"))
    assert status == 1
    assert "want 1MiB to 64TiB" in err


def test_an_agent_in_the_background_keeps_no_file_of_its_caller_open(wherryd: Path, tmp_path: Path) -> None:
    """`flock` and scripts with `exec 3>file` pass open files to their children."""
    where, lock = tmp_path / "agent.json", tmp_path / "lock"
    line = [sys.executable, "-m", "wherry", "agent", "start", "--budget", "64MiB", "--session-file", str(where)]
    environment = {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
    started = subprocess.run(["flock", "-n", str(lock), *line], env=environment, capture_output=True, timeout=120)
    assert started.returncode == 0, started.stderr
    session = sessionfile.load_session(where)
    try:
        assert subprocess.run(["flock", "-n", str(lock), "true"], timeout=300).returncode == 0
    finally:
        agent_process.stop_agent(session, 30)


def test_foreground_becomes_the_agent(wherryd: Path, tmp_path: Path) -> None:
    where = tmp_path / "agent.json"
    line = [sys.executable, "-m", "wherry.cli", "agent", "start", "--foreground", "--session-file", str(where)]
    environment = {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
    process = subprocess.Popen(
        [*line, "--budget", "64MiB"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        deadline = time.monotonic() + 300
        while not where.exists() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.02)
        assert sessionfile.load_session(where).pid == process.pid
        process.terminate()
        assert process.wait(timeout=300) == 0
        assert not where.exists()
    finally:
        process.kill()
        process.communicate()


def test_status_as_json(capfd: pytest.CaptureFixture[str], agent: Agent, at: list[str], stream: Any) -> None:
    status, out, _ = run(capfd, "agent", "status", "--json", *at)
    assert status == 0
    document = json.loads(out)
    assert document["pid"] == agent.process.pid
    (only,) = document["streams"]
    assert (only["name"], only["total_frames"], only["open"]) == ("particles", 3, True)
    assert document["flight"].startswith("grpc://127.0.0.1:")
    assert "token" not in out


def test_status_tells_of_each_client(
    capfd: pytest.CaptureFixture[str], agent: Agent, at: list[str], stream: Any
) -> None:
    import wherry

    with wherry.Session(agent=str(agent.session_file), name='a "second" [one]\\', transport="tcp"):
        status, out, _ = run(capfd, "agent", "status", "--json", *at)
        assert status == 0
        first, second = json.loads(out)["sessions"]
        assert (first["session"], first["pid"]) == (1, os.getpid())
        assert (first["heap"], first["allocated"], first["mapped"]) == ("one_sided", "one_sided", True)
        assert "cma/" in first["transports"]
        assert first["bytes"] == 3 * 50 * (8 + 24)
        assert (second["name"], second["heap"], second["bytes"]) == ('a "second" [one]\\', "emulated", 0)
        assert second["transports"].startswith("stream/")

        status, out, _ = run(capfd, "agent", "status", *at)
        assert status == 0
        for part in ('a "second" [one]\\', "one_sided, mapped", "emulated", "cma/", "4.7 KiB"):
            assert part in out
    assert [one["session"] for one in json.loads(run(capfd, "agent", "status", "--json", *at)[1])["sessions"]] == [1]


def test_status_has_units_and_says_how_long_the_agent_has_run(
    capfd: pytest.CaptureFixture[str], at: list[str], stream: Any
) -> None:
    status, out, _ = run(capfd, "agent", "status", *at)
    assert status == 0
    words = " ".join(out.split())
    assert re.search(r", up (\d+ min )?\d+ s ", words)
    assert "wherry_agent_budget_bytes 256.0 MiB" in words
    assert "wherry_move_offloads_total 3 " in words
    assert "wherry_move_bytes_total 4.7 KiB" in words
    assert re.search(r"wherry_move_transfer_nanoseconds_total [\d.,]+ [um]?s ", words)
    assert "e+" not in out


def test_status_without_metrics(capfd: pytest.CaptureFixture[str], make_agent: Any) -> None:
    agent = make_agent("--metrics", "off")
    status, out, _ = run(capfd, "agent", "status", "--agent", str(agent.session_file))
    assert status == 0
    assert "clients: unknown: the agent serves no metrics" in out


def test_status_when_the_metrics_do_not_answer(capfd: pytest.CaptureFixture[str], agent: Agent, stream: Any) -> None:
    """The output still has the addresses and streams."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fields = json.loads(agent.session_file.read_text())
        fields["metrics"] = f"http://127.0.0.1:{silent.getsockname()[1]}/metrics"
        agent.session_file.write_text(json.dumps(fields))  # the same file: the agent holds its lock
        at = ["--agent", str(agent.session_file)]
        status, out, _ = run(capfd, "agent", "status", *at)
        assert status == 0
        assert f"clients: unknown: no metrics from {fields['metrics']}: timed out" in " ".join(out.split())
        assert "particles" in out
        status, out, _ = run(capfd, "agent", "status", "--json", *at)
        assert status == 0
        document = json.loads(out)
        assert [one["name"] for one in document["streams"]] == ["particles"]
        assert document["metrics_missing"].startswith("no metrics from http://127.0.0.1")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", b"220 smtp\r\n", b""])
def test_status_when_the_metrics_break_off(capfd: pytest.CaptureFixture[str], agent: Agent, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while not connection.recv(65536).endswith(b"\r\n\r\n"):
                    pass
                connection.sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        fields = json.loads(agent.session_file.read_text())
        fields["metrics"] = f"http://127.0.0.1:{server.getsockname()[1]}/metrics"
        agent.session_file.write_text(json.dumps(fields))  # the same file: the agent holds its lock
        status, out, err = run(capfd, "agent", "status", "--agent", str(agent.session_file))
        serving.join()
    assert (status, err) == (0, "")
    assert f"clients: unknown: no metrics from {fields['metrics']}: " in " ".join(out.split())


@pytest.mark.parametrize("flag", ["--max-sessions", "--nap-us", "--max-tickets", "--drain-ms"])
def test_number_out_of_range(wherryd: Path, flag: str) -> None:
    done = subprocess.run(
        [str(wherryd), flag, "18446744073709551615", "--dump-config"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert "want a whole number from" in done.stderr
    assert done.stdout == ""


def test_rdma_by_name_where_there_is_none_is_an_error(
    capfd: pytest.CaptureFixture[str], wherryd: Path, tmp_path: Path
) -> None:
    if any(Path("/sys/class").glob("infiniband/*")):
        pytest.skip("this machine has RDMA")
    where = ["--transport", "rdma", "--session-file", str(tmp_path / "agent.json")]
    done = subprocess.run([str(wherryd), *where], capture_output=True, text=True, timeout=300)
    started = run(capfd, "agent", "start", *where)
    for status, said in ((done.returncode, done.stderr), (started[0], started[2])):
        assert status == 1
        assert "transport 'rdma' cannot be had here" in said
        assert "/sys/class/infiniband lists the RDMA devices" in said
    assert not Path(where[-1]).exists()


def test_metrics_are_read(make_agent: Any, capfd: pytest.CaptureFixture[str]) -> None:
    agent = make_agent("--metrics", "127.0.0.1:0")
    metrics = read_metrics(agent.session)
    assert metrics
    assert all(name.startswith("wherry") for name in metrics)
    status, out, _ = run(capfd, "agent", "status", "--agent", str(agent.session_file))
    assert status == 0
    assert next(iter(metrics)).split("{")[0] in out


def test_streams(capfd: pytest.CaptureFixture[str], at: list[str], stream: Any) -> None:
    status, out, _ = run(capfd, "streams", *at)
    assert status == 0
    assert "particles" in out
    assert "open" in out
    status, out, _ = run(capfd, "streams", "--json", *at)
    assert [entry["name"] for entry in json.loads(out)] == ["particles"]


def test_cat_csv(capfd: pytest.CaptureFixture[str], at: list[str], stream: Any) -> None:
    status, out, _ = run(capfd, "cat", "particles", "--format", "csv", *at)
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 150
    assert [row["tag"] for row in rows[::50]] == ["0", "10", "20"]
    want = particles(seed=2)
    assert [int(row["id"]) for row in rows[100:]] == want["id"].tolist()
    assert [json.loads(row["x"]) for row in rows[100:]] == want["x"].tolist()


def test_cat_limit_counts_rows_over_frames(capfd: pytest.CaptureFixture[str], at: list[str], stream: Any) -> None:
    _, out, _ = run(capfd, "cat", "particles", "--format", "csv", "--limit", "60", *at)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["frame"] for row in rows] == ["0"] * 50 + ["1"] * 10


def test_cat_arrow_file(capfd: pytest.CaptureFixture[str], tmp_path: Path, at: list[str], stream: Any) -> None:
    target = tmp_path / "p.arrow"
    status, out, _ = run(capfd, "cat", "particles", "--format", "arrow", "--out", str(target), *at)
    assert (status, out) == (0, "")
    with pa.ipc.open_stream(target) as source:
        batches = list(source)
    assert len(batches) == 3
    for i, batch in enumerate(batches):
        want = particles(seed=i)
        np.testing.assert_array_equal(batch.column("id").to_numpy(), want["id"])
        np.testing.assert_array_equal(batch.column("x").flatten().to_numpy().reshape(-1, 3), want["x"])


def test_cat_table(capfd: pytest.CaptureFixture[str], at: list[str], stream: Any) -> None:
    status, out, _ = run(capfd, "cat", "particles", *at)
    assert status == 0
    assert "frame 0, tag 0: 50 rows" in out
    assert "frame 1" not in out, "twenty rows, unless asked for more"


def test_cat_of_a_narrow_table_keeps_its_title_and_shows_nulls(
    capfd: pytest.CaptureFixture[str], agent: Agent, at: list[str]
) -> None:
    import wherry

    with wherry.Session(agent=str(agent.session_file)) as session:
        column = pa.array([None, 1, 2], pa.int8())
        session.stream("narrow", {"x": column}).offload({"x": column}, tag=10**18).wait(timeout=300)
        session.stream("one", {"x": column[:1]}).offload({"x": column[:1]}).wait(timeout=300)
        status, out, _ = run(capfd, "cat", "narrow", *at)
        assert status == 0
        assert "frame 0, tag 1000000000000000000: 3 rows\n" in out
        assert out.split()[-3:] == ["null", "1", "2"]
        assert "frame 0, tag 0: 1 row\n" in run(capfd, "cat", "one", *at)[1]


def test_cat_makes_the_directory_of_its_file(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, at: list[str], stream: Any
) -> None:
    target = tmp_path / "new" / "folder" / "p.csv"
    assert run(capfd, "cat", "particles", "--format", "csv", "--out", str(target), *at)[0] == 0
    assert len(target.read_text().splitlines()) == 1 + 150
    status, _, err = run(capfd, "cat", "particles", "--out", str(target / "below" / "a-file"), *at)
    assert (status, err.count("\n")) == (1, 1)
    assert "Not a directory" in err


def test_cat_follow_ends_with_the_stream(at: list[str], stream: Any) -> None:
    line = [sys.executable, "-m", "wherry.cli", "cat", "particles", "--follow", "--format", "csv", *at]
    environment = {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
    process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(0.5)
        stream.offload(particles(seed=3), tag=30).wait(timeout=300)
        stream.close()
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (0, "")
    assert len(list(csv.DictReader(io.StringIO(out)))) == 200


def test_cat_of_a_stream_that_is_not_there(capfd: pytest.CaptureFixture[str], at: list[str], stream: Any) -> None:
    status, out, err = run(capfd, "cat", "waves", *at)
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert f"no stream 'waves' at the agent of {at[1]}; " in err
    assert "streams: particles" in err


def test_agent_that_was_killed(capfd: pytest.CaptureFixture[str], agent: Agent, at: list[str]) -> None:
    agent.process.kill()
    agent.process.wait()
    for command in (["streams"], ["agent", "status"], ["agent", "stop"]):
        status, _, err = run(capfd, *command, *at)
        assert status == 1
        assert "has gone; start one with" in err
