# SPDX-License-Identifier: Apache-2.0
"""If results cannot be written, or at Ctrl-C, a command prints one line and ends with a known exit status. It never
prints a traceback."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jobs import Jobs, eventually
from kvclusters import KvHome

from wherry.system import paths

OUTPUT_LOST = 74
"""EX_IOERR of sysexits.h, as in docs/reference."""
WHERRY = [sys.executable, "-m", "wherry"]
OUTPUTS = {"full": "exec {0} >/dev/full", "closed": "exec {0} >&-"}


def without_output(
    how: str, *words: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `wherry` from a shell with a standard output that cannot be written."""
    line = OUTPUTS[how].format('"$@"')
    return subprocess.run(
        ["sh", "-c", line, "sh", *WHERRY, *words],
        env=environment or os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("how", OUTPUTS)
@pytest.mark.parametrize("words", [["version"], ["--version"], ["--help"], ["kv", "put", "--help"]], ids=" ".join)
def test_a_result_that_cannot_be_printed_is_one_line_and_exit_74(how: str, words: list[str]) -> None:
    done = without_output(how, *words)
    assert (done.returncode, done.stderr.count("\n")) == (OUTPUT_LOST, 1), done.stderr
    assert done.stderr.startswith("wherry: standard output: ")
    assert ("No space left on device" if how == "full" else "it is closed") in done.stderr


@pytest.mark.parametrize("how", OUTPUTS)
def test_a_write_whose_result_cannot_be_printed_says_that_it_took_effect(home: KvHome, how: str) -> None:
    up = without_output(how, "kv", "up", "--detach", "--bucket-bits", "8", environment=home.environment)
    assert up.returncode == OUTPUT_LOST, up.stderr
    assert "the cluster runs; its description could not be printed: standard output: " in up.stderr
    put = without_output(how, "kv", "put", "2", "kept", environment=home.environment)
    assert (put.returncode, put.stderr.count("\n")) == (OUTPUT_LOST, 1), put.stderr
    assert "wherry: the write took effect; its result could not be printed: standard output: " in put.stderr
    assert home.ok("get", "2") == "kept\n"
    for words in (["get", "2"], ["get", "2", "--out", "-"], ["get", "2", "--json"], ["nodes"], ["nodes", "--json"]):
        done = without_output(how, "kv", *words, environment=home.environment)
        assert done.returncode == OUTPUT_LOST, done.stderr
        assert "Traceback" not in done.stderr
        assert "standard output: " in done.stderr
    # `delete` does not print anything, so no output is lost.
    assert without_output(how, "kv", "delete", "2", environment=home.environment).returncode == 0
    assert home.run("get", "2").returncode == 1
    home.ok("down")


def without_input(*words: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs `wherry` from a shell that closes its standard input."""
    return subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *WHERRY, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("command", ["run", "advise"])
def test_a_job_whose_launcher_has_no_standard_input_runs_with_an_empty_one(jobs: Jobs, command: str) -> None:
    done = without_input(command, "--nodes", "2", "--", "sh", "-c", "cat; echo end", environment=jobs.environment)
    assert "Traceback" not in done.stderr
    if command == "run":
        assert (done.returncode, sorted(done.stdout.splitlines()), done.stderr) == (0, ["[0] end", "[1] end"], "")
    else:  # `cat` is not a rank of Wherry, so no advice is printed
        assert "AttributeError" not in done.stderr
        assert "[0] end" in done.stdout


def test_a_value_from_a_closed_standard_input_is_refused(home: KvHome) -> None:
    home.ok("up", "--detach", "--bucket-bits", "8")
    done = without_input("kv", "put", "2", "-", environment=home.environment)
    assert (done.returncode, done.stderr.count("\n")) == (2, 2), done.stderr  # the second names --help
    assert "standard input is closed" in done.stderr
    assert home.run("get", "2").returncode == 1, "nothing was written"
    home.ok("down")


def test_a_standard_error_that_takes_nothing_changes_no_result(home: KvHome) -> None:
    home.ok("up", "--detach", "--bucket-bits", "8")
    home.ok("put", "2", "kept")
    for end in ("2>/dev/full", "2>&-"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {end}', "sh", *WHERRY, "kv", "get", "2"],
            env=home.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (0, "kept\n")
    home.ok("down")


def test_a_file_that_takes_nothing_is_named(home: KvHome) -> None:
    home.ok("up", "--detach", "--bucket-bits", "8")
    home.ok("put", "2", "kept")
    done = home.run("get", "2", "--out", "/dev/full")
    assert (done.returncode, done.stderr) == (OUTPUT_LOST, "wherry: /dev/full: No space left on device\n")
    home.ok("down")


def test_up_in_a_directory_that_is_none_is_one_line(home: KvHome, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in ("/dev/full", str(tmp_path / "file"), str(tmp_path / "file" / "below")):
        done = home.run("up", "--dir", place)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert done.stderr.startswith(f"wherry: --dir {place}: ")


def test_a_report_that_cannot_be_written_names_the_file(tmp_path: Path, move: dict[str, Any]) -> None:
    page = tmp_path / "page.html"
    (tmp_path / "bench.json").write_text(json.dumps(move))
    done = subprocess.run(
        [*WHERRY, "report", str(tmp_path / "bench.json"), "--out", str(page)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert (done.returncode, done.stderr) == (OUTPUT_LOST, f"wherry: {page}: File too large\n")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bench.json"]


def test_a_job_whose_output_nobody_takes_ends(jobs: Jobs) -> None:
    done = without_output("full", "run", "--nodes", "2", "--", "echo", "x", environment=jobs.environment)
    assert (done.returncode, done.stderr) == (OUTPUT_LOST, "wherry run: standard output: No space left on device\n")
    # If only standard error is full, the command still succeeds.
    done = subprocess.run(
        [
            "sh",
            "-c",
            'exec "$@" 2>/dev/full',
            "sh",
            *jobs.command("--nodes", "2", "--", "sh", "-c", "echo y >&2; echo x"),
        ],
        env=jobs.environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (done.returncode, sorted(done.stdout.split("\n"))) == (0, ["", "[0] x", "[1] x"])


SLOW = """
import sys, importlib.abc, os, time
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.write(1, b"importing\\n")
            time.sleep(60)
sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize("module", ["typer", "wherry.cli", "wherry.route.launcher", "asyncio"])
def test_ctrl_c_while_modules_are_imported_is_exit_130_without_a_traceback(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW.format(module=module))
    search = f"{tmp_path}{os.pathsep}{paths.PACKAGE.parent}"
    with subprocess.Popen(
        [*WHERRY, "run", "--", "true"],
        env=os.environ | {"PYTHONPATH": search},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_job_that_is_ended_early_leaves_no_directory(jobs: Jobs, number: signal.Signals) -> None:
    """Sends the signal at several times during the start. The outcome must always be the same."""
    for step in range(12):
        process = jobs.start("--nodes", "2", "--placement", "host", "--", "sleep", "60")
        if step < 6:
            time.sleep(0.06 * step)
        else:  # as soon as its directory exists
            assert eventually(lambda: any(e.name.startswith("wherry-run-") for e in jobs.temporary.iterdir()))
            time.sleep(0.002 * (step - 6))
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        # A traceback without "wherry" comes from Python's start, before any code of Wherry runs.
        assert "Traceback" not in err or "wherry" not in err, err
    jobs.expect_nothing_left()


def test_the_installed_command_begins_where_ctrl_c_is_expected() -> None:
    """The entry point from which pip and tools/setup.sh make the command."""
    root = paths.repository()
    assert root is not None
    assert 'wherry = "wherry.__main__:main"' in (root / "pyproject.toml").read_text()
    assert "from wherry.__main__ import main" in (root / "tools" / "setup.sh").read_text()
    assert json.dumps(WHERRY[1:]) == '["-m", "wherry"]'
