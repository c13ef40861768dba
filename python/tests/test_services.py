# SPDX-License-Identifier: Apache-2.0
"""A new service needs only a folder and a line: a dummy service is added to a copy of the package. Also tests the
import rules."""

from __future__ import annotations

import difflib
import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import check_python
import pytest

from wherry.system import paths

HELLO = '''"""The commands of the dummy."""
from wherry.cli import App, AgentPart, out
def hello() -> None: "Greet."; out().print("hello from the dummy")
def add_to(app: App, benches: App) -> None: app.command("dummy")(hello); benches.command("dummy")(hello)
def agent_status(session: object) -> AgentPart: return AgentPart({"dummies": 3}, "3 dummies")
'''
BENCH = '''"""The benchmark of the dummy."""
from dataclasses import dataclass
from typing import Literal
from wherry.bench import Basis, Benchmark, Run, rows
@dataclass(frozen=True, slots=True)
class Row:
    pace: float
@dataclass(frozen=True, slots=True)
class Results:
    walks: list[Row] = rows("Walks of the dummy")
@dataclass(frozen=True, slots=True)
class DummyBench(Run):
    name: Literal["dummy"]
    results: Results
BENCHMARK = Benchmark("dummy", DummyBench, lambda bar, results: Basis("walks pace"), "000 (dummies, on paper)")
'''
REPORT = '''"""The dummy's chapter of the report."""
from wherry.dummy.bench import DummyBench
from wherry.report import bench_chapter
CHAPTERS = {"dummy": lambda document, file: bench_chapter(DummyBench, document, file, lambda bench: [])}
'''
DOCUMENT: dict[str, Any] = {
    "schema": 1, "name": "dummy", "when": "2026-01-01T00:00:00", "wherry": "0", "versions": {}, "pinning": {"legs": 0},
    "machine": {"cpu": "c", "cores": 1, "kernel": "k", "memory_bytes": 1}, "repetitions": 1,
    "bars": {"pace": {"value": 2.0, "min": 1.0, "max": 3.0, "target": ">= 1", "pass": True}},
    "results": {"walks": [{"pace": 2.0}]},
}  # fmt: skip


class Copy:
    """A copy of the package to which tests add files."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "wherry"
        shutil.copytree(paths.PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))

    def write(self, file: str, text: str) -> None:
        """Writes a file of the copy, and creates its folder."""
        path = self.package / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def replace(self, file: str, old: str, new: str) -> None:
        """Replaces the only occurrence of `old` in a file of the copy."""
        text = (self.package / file).read_text()
        assert text.count(old) == 1, f"{old!r} in {file}"
        (self.package / file).write_text(text.replace(old, new))

    def run(self, *words: str) -> str:
        """Runs `wherry` from this copy; returns its standard output."""
        environment = os.environ | {"PYTHONPATH": str(self.package.parent), "COLUMNS": "160"}
        command = [sys.executable, "-m", "wherry", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def violations(self) -> list[str]:
        """The violations of the import rules."""
        return check_python.House(self.package).violations()

    def changed(self, below: str = "") -> list[str]:
        """Files that differ from the package's, or that the package lacks."""
        compared = filecmp.dircmp(paths.PACKAGE / below, self.package / below, ignore=["__pycache__"])
        found = [f"{below}{name}" for name in (*compared.diff_files, *compared.right_only)]
        for folder in compared.common_dirs:
            found += self.changed(f"{below}{folder}/")
        return sorted(found)


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


@pytest.fixture
def with_dummy(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> Copy:
    # A new service adds an arrow to each of cli, bench and report. The limit counts only the existing services.
    monkeypatch.setattr(check_python, "MOST_ARROWS", check_python.MOST_ARROWS + 3)
    copy.write("dummy/__init__.py", '"""A service that greets."""\n')
    copy.write("dummy/cli.py", HELLO)
    copy.replace(
        "services.py",
        'SERVICES = ("move", "route", "kv", "bypass", "probe", "dma")',
        'SERVICES = ("move", "route", "kv", "bypass", "probe", "dma", "dummy")',
    )
    return copy


def test_a_service_of_five_lines_is_a_folder_and_a_line(with_dummy: Copy) -> None:
    assert len(HELLO.splitlines()) == 5
    assert with_dummy.changed() == ["dummy", "services.py"]
    old, new = ((root / "services.py").read_text().splitlines() for root in (paths.PACKAGE, with_dummy.package))
    assert [line[:2] for line in difflib.ndiff(old, new) if line[0] in "+-"] == ["- ", "+ "]
    assert with_dummy.violations() == []
    assert "Greet." in with_dummy.run("--help")
    assert with_dummy.run("dummy") == "hello from the dummy\n"
    assert "Greet." in with_dummy.run("bench", "--help")


def test_its_benchmark_and_its_chapter_are_found(with_dummy: Copy, tmp_path: Path) -> None:
    with_dummy.write("dummy/bench.py", BENCH)
    with_dummy.write("dummy/report.py", REPORT)
    assert with_dummy.changed() == ["dummy", "services.py"]
    assert with_dummy.violations() == []
    (tmp_path / "d.json").write_text(json.dumps(DOCUMENT))
    with_dummy.run("report", str(tmp_path / "d.json"), "--out", str(tmp_path / "d.html"))
    page = (tmp_path / "d.html").read_text()
    for part in ("Benchmark <code>dummy</code>", "1 of 1 bars met", "uses walks pace", "and 000 (dummies, on paper)"):
        assert part in page
    (tmp_path / "d.json").write_text(json.dumps(DOCUMENT | {"results": {"walks": [{"pace": "slow"}]}}))
    with pytest.raises(AssertionError, match=r"d.json.results.walks\[0\].pace: 'slow'; a number is expected"):
        with_dummy.run("report", str(tmp_path / "d.json"), "--out", str(tmp_path / "d.html"))


@pytest.mark.agent
def test_its_part_of_agent_status_is_shown(with_dummy: Copy, agent: Any) -> None:
    shutil.copytree(paths.PACKAGE / "_native", with_dummy.package / "_native", dirs_exist_ok=True)
    assert "\n3 dummies\n" in with_dummy.run("agent", "status", "--agent", str(agent.session_file))
    said = json.loads(with_dummy.run("agent", "status", "--json", "--agent", str(agent.session_file)))
    assert (said["dummies"], said["streams"]) == (3, [])


def test_the_package_keeps_the_rules() -> None:
    house = check_python.House(paths.PACKAGE)
    assert house.violations() == []
    assert house.services == ("move", "route", "kv", "bypass", "probe", "dma")
    assert len(house.arrows()) <= check_python.MOST_ARROWS == 60


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("kv/keys.py", "from wherry.move import streams", "wherry.kv.keys -> wherry.move: services do not import each"),
        ("system/ports.py", "from wherry.session import locate", "system.ports -> wherry.session: system lies below"),
        ("errors.py", "import wherry.system", "wherry.errors -> wherry.system: errors lies below system"),
        ("report/page.py", "from wherry.kv import Client", "report.page -> wherry.kv: report knows no service"),
        ("route/advise.py", "from wherry.route.cli import run_job", "advise -> wherry.route.cli: service lies below"),
        ("kv/keys.py", "from wherry.system.ports import free_ports", "keys -> wherry.system.ports: import it from"),
        (
            "route/pinning.py",
            "def f() -> None: import wherry.route.launcher",
            "a circle: wherry.route.launcher, wherry",
        ),
        ("cli/help.py", "TYPE_CHECKING = 0\nif TYPE_CHECKING: import wherry.cli.root", "a circle: wherry.cli.agent"),
        ("errors.py", "from wherry.errors import *", "name the module, and what is imported from it"),
        ("errors.py", "from . import lazy", "name the module, and what is imported from it"),
    ],
)
def test_a_wrong_import_is_found(copy: Copy, file: str, line: str, message: str) -> None:
    copy.write(file, (copy.package / file).read_text() + line + "\n")
    try:
        found = copy.violations()
    except SystemExit as refused:
        found = [str(refused)]
    assert any(message in one for one in found), found


def test_full_folders_and_unlisted_rooms_are_found(copy: Copy) -> None:
    for number in range(check_python.MOST_MODULES):
        copy.write(f"route/extra{number}.py", "")
    copy.write("attic/__init__.py", "")
    found = copy.violations()
    assert any(one.startswith("wherry/route: ") and "modules, at most 14" in one for one in found), found
    assert "wherry.attic: 'attic' is neither a room nor in SERVICES of wherry/services.py" in found


def test_too_many_arrows_are_found(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_python, "MOST_ARROWS", len(check_python.House(copy.package).arrows()))
    assert copy.violations() == []
    copy.write(
        "route/pinning.py", (copy.package / "route/pinning.py").read_text() + "from wherry.system import built\n"
    )
    assert any("arrows between rooms, at most" in one for one in copy.violations())


HEAVY = ("pyarrow", "numpy", "matplotlib", "duckdb", "msgspec", "jinja2", "asyncio", "wherry._native._core")


@pytest.mark.parametrize(
    "words", [["--help"], ["kv", "--help"], ["bench", "kv", "--help"], ["agent", "start", "--help"]]
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    script = (
        f"import sys; from wherry import cli; cli.main({words!r}); print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
