# SPDX-License-Identifier: Apache-2.0
"""The command line without an agent. test_agent_cli.py tests it with one."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer.testing

from wherry import cli
from wherry.bench import load
from wherry.errors import AlreadyExists, BenchError, Error, NotFound, Unavailable
from wherry.move.bench.run import run as run_move
from wherry.move.bench.schema import Results
from wherry.session import agent_process
from wherry.session.metrics import parse_metrics, read_metrics
from wherry.system import paths
from wherry.version import VERSION

Write = Callable[..., Path]


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs main(); returns what a shell would see: exit status, standard output, standard error."""
    capfd.readouterr()
    status = cli.main(list(arguments))
    out, err = capfd.readouterr()
    return status, out, err


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def commands() -> list[list[str]]:
    return [
        [], ["agent"], ["agent", "start"], ["agent", "stop"], ["agent", "status"], ["streams"], ["cat"], ["bench"],
        ["bench", "move"], ["report"], ["version"],
    ]  # fmt: skip


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_has_help(command: list[str]) -> None:
    result = typer.testing.CliRunner().invoke(cli.app, [*command, "--help"], prog_name="wherry")
    assert result.exit_code == 0
    assert "Usage: wherry" in result.output
    if command not in ([], ["agent"], ["bench"]):
        assert "Example" in result.output
        assert "wherry " + " ".join(command) in result.output.split("Example", 1)[1]


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd, "version")
    assert status == 0
    assert f"wherry    {VERSION}" in out
    assert f"pyarrow   {pa.__version__}" in out


@pytest.mark.parametrize("option", ["--version", "-h"])
def test_options_that_every_program_has(capfd: pytest.CaptureFixture[str], option: str) -> None:
    status, out, err = run(capfd, option)
    assert (status, err) == (0, "")
    assert (f"wherry    {VERSION}" if option == "--version" else "Usage: wherry") in out


def test_a_directory_is_not_a_configuration_file(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    session = tmp_path / "s" / "agent.json"
    status, _, err = run(capfd, "agent", "start", "--config", str(tmp_path), "--session-file", str(session))
    assert status == 1
    assert f"cannot read the configuration file '{tmp_path}': Is a directory" in err
    assert not session.exists()


def test_a_directory_is_not_a_cluster_file(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = run(capfd, "kv", "get", "k", "--cluster", str(tmp_path))
    assert (status, err) == (1, f"wherry: cannot read the cluster file '{tmp_path}': Is a directory\n")


@pytest.mark.parametrize(
    "arguments",
    [["no-such-command"], ["cat"], ["cat", "x", "--limit", "-1"], ["cat", "x", "--format", "xml"], ["report"],
     ["bench", "move"],
     ["bench", "move", "--json", "x.json", "--only", "everything"], ["streams", "--no-such-option"]],
    ids=" ".join,
)  # fmt: skip
def test_wrong_command_lines_exit_2_with_a_line_that_says_why(
    capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    status, out, err = run(capfd, *arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("wherry: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "command", [["streams"], ["cat", "particles"], ["agent", "status"], ["agent", "stop"]], ids=" ".join
)
def test_no_agent_is_one_line_and_exit_1(capfd: pytest.CaptureFixture[str], command: list[str]) -> None:
    status, out, err = run(capfd, *command)
    assert status == 1
    assert out == ""
    assert err.count("\n") == 1
    assert "start one with `wherry agent start`" in err


def test_agent_option_wins_over_the_environment(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WHERRY_AGENT", str(tmp_path / "environment.json"))
    assert "environment.json does not exist" in run(capfd, "streams")[2]
    assert "option.json does not exist" in run(capfd, "streams", "--agent", str(tmp_path / "option.json"))[2]


def test_an_address_does_not_lead_to_an_agent(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERRY_AGENT", "10.0.0.1:4100")
    status, _, err = run(capfd, "streams")
    assert status == 1
    assert "readers need the path of the agent's session file" in err


def test_wherryd_that_was_not_built(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WHERRY_WHERRYD", str(tmp_path / "nowhere"))
    status, _, err = run(capfd, "agent", "start")
    assert status == 1
    assert "not an executable file" in err


def test_agent_that_ends_at_once_is_reported_with_its_last_words(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = program(tmp_path / "wherryd", "import sys; sys.exit('wherryd: the port is taken')")
    monkeypatch.setenv("WHERRY_WHERRYD", str(broken))
    status, _, err = run(capfd, "agent", "start", "--session-file", str(tmp_path / "a" / "agent.json"))
    assert status == 1
    assert "ended at once (exit status 1): wherryd: the port is taken" in err
    assert not (tmp_path / "a").exists()  # the agent's to make


def test_agent_that_never_becomes_ready_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    sleeper = tmp_path / "wherryd"  # a shell script, which must write its pid within the 1 s limit
    sleeper.write_text(f"#!/bin/sh\necho $$ > '{marker}'\nexec sleep 60\n")
    sleeper.chmod(0o700)
    monkeypatch.setenv("WHERRY_WHERRYD", str(sleeper))
    monkeypatch.setattr(agent_process, "START_TIMEOUT_S", 1.0)
    with pytest.raises(Error, match="was not ready within 1 s"):
        agent_process.start_agent(tmp_path / "agent.json", [])
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)


def test_second_agent_on_a_session_file_is_refused(write_session: Write) -> None:
    with pytest.raises(AlreadyExists, match=rf"an agent runs already: pid {os.getpid()}"):
        agent_process.start_agent(write_session(), [])


def test_stop_does_not_end_a_process_that_is_no_agent(capfd: pytest.CaptureFixture[str], write_session: Write) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        status, _, err = run(capfd, "agent", "stop", "--agent", str(write_session(pid=bystander.pid)))
        assert status == 1
        assert "not an agent: the file is stale" in err
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_parse_metrics() -> None:
    text = """# HELP wherry_frames_total Frames delivered.
# TYPE wherry_frames_total counter
wherry_frames_total 12
wherry_bytes{stream="a b",kind="x}y"} 1.5e9 1700000000
broken line here
wherry_nan NaN
wherry_bad one
"""
    metrics = parse_metrics(text)
    assert list(metrics) == ["wherry_frames_total", 'wherry_bytes{stream="a b",kind="x}y"}', "wherry_nan"]
    assert metrics["wherry_frames_total"] == 12
    assert metrics['wherry_bytes{stream="a b",kind="x}y"}'] == 1.5e9


def test_metrics_of_an_agent_that_does_not_answer(load_session: Callable[..., Any]) -> None:
    with pytest.raises(Unavailable, match=r"no metrics from http://127\.0\.0\.1:9/"):
        read_metrics(load_session(metrics="http://127.0.0.1:9/metrics"))
    with pytest.raises(Error, match="which is not http://"):
        read_metrics(load_session(metrics="file:///etc/passwd"))
    assert read_metrics(load_session(metrics="off")) == {}


@pytest.fixture
def fake_bench(tmp_path: Path, move: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake bench_move that writes a valid document, and saves its own command line."""
    text = f"""
import json, sys
arguments = sys.argv[1:]
print("bench_move: half way", file=sys.stderr)
with open(arguments[arguments.index("--json") + 1], "w") as file:
    file.write({json.dumps(move)!r})
with open({str(tmp_path / "arguments")!r}, "w") as file:
    json.dump(arguments, file)
"""
    path = program(tmp_path / "bench_move", text)
    monkeypatch.setattr("wherry.bench.program.built", lambda folder, name: path)
    return path


def test_bench_move_prints_tables_and_bars_and_passes_options_on(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, fake_bench: Path
) -> None:
    target = tmp_path / "new" / "b.json"
    options = ["--json", str(target), "--quick", "--only", "initiate", "--only", "flight"]
    status, out, err = run(capfd, "bench", "move", *options)
    assert status == 0, "a missed bar is a result"
    assert json.loads((tmp_path / "arguments").read_text()) == [
        "--json",
        str(target),
        "--quick",
        "--only",
        "initiate,flight",
    ]
    assert "bench_move: half way" in err
    for section in dataclasses.fields(Results):
        assert section.metadata["title"] in out
    assert "Bars: 1 of 2 met" in out
    assert "missed" in out
    assert "more than 95 % from 1 MiB" in out
    assert "128 KiB" in out
    load(target)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys; sys.exit(3)", r"failed \(exit status 3\)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"failed \(signal 9\)"),
        ("", "cannot read"),
        ("import sys; open(sys.argv[2], 'w').write('{}')", "schema is None"),
    ],
)
def test_bench_move_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.setattr("wherry.bench.program.built", lambda folder, name: program(tmp_path / "bench_move", text))
    with pytest.raises(BenchError, match=message):
        run_move(tmp_path / "b.json")


def test_bench_move_that_was_not_built(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(folder: str, name: str) -> Path:
        raise NotFound("no bench_move: build it with `make build`")

    monkeypatch.setattr("wherry.bench.program.built", missing)
    status, _, err = run(capfd, "bench", "move", "--json", str(tmp_path / "b.json"))
    assert (status, err) == (1, "wherry: no bench_move: build it with `make build`\n")


def test_report(capfd: pytest.CaptureFixture[str], tmp_path: Path, move: dict[str, Any]) -> None:
    source, target = tmp_path / "b.json", tmp_path / "out" / "report.html"
    move["results"] = {"mapped": move["results"]["mapped"]}
    source.write_text(json.dumps(move))
    status, _, err = run(capfd, "report", str(source), "--out", str(target))
    assert status == 0
    assert str(target) in err
    assert target.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("target", ["", "/proc/x.html"])
def test_a_report_that_cannot_be_there_names_what_was_typed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, move: dict[str, Any], target: str
) -> None:
    source, where = tmp_path / "b.json", target or str(tmp_path)
    move["results"] = {"mapped": move["results"]["mapped"]}
    source.write_text(json.dumps(move))
    status, _, err = run(capfd, "report", str(source), "--out", where)
    assert (status, err.count("\n")) == (1, 1)
    assert err.startswith(f"wherry: {where}: ")
    assert list(tmp_path.iterdir()) == [source]


def test_report_of_a_file_that_is_not_there(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = run(capfd, "report", str(tmp_path / "none.json"))
    assert status == 1
    assert err == f"wherry: cannot read {tmp_path / 'none.json'}: No such file or directory\n"


def test_ctrl_c_is_quiet(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wherry.move.reader.streams", interrupt)
    assert run(capfd, "streams") == (130, "", "")


def test_a_fault_of_wherry_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("wherry.move.reader.streams", fault)
    with pytest.raises(ZeroDivisionError):
        cli.main(["streams"])


def test_closed_pipe_is_no_error(write_session: Write) -> None:
    line = f"{sys.executable} -m wherry.cli --help | true"
    environment = {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
    done = subprocess.run(line, shell=True, capture_output=True, text=True, env=environment, check=False)  # noqa: S602
    assert done.stderr == ""


@pytest.mark.parametrize("package", ["matplotlib", "jinja2", "msgspec"])
def test_a_command_whose_package_is_missing_says_which(tmp_path: Path, package: str) -> None:
    (tmp_path / "b.json").write_text("{}")
    script = f"import sys; sys.modules[{package!r}] = None; from wherry import cli; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "report", str(tmp_path / "b.json"), "--out", str(tmp_path / "b.html")]
    environment = {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    said = (
        f"wherry: this command needs the Python package {package}, which is not installed: `make setup` installs it\n"
    )
    assert (done.returncode, done.stderr) == (1, said)
