# SPDX-License-Identifier: Apache-2.0
"""The report lists every skipped test. In CI, a test that can run must not be skipped. Failures are listed at the end,
in their own section."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wherry.system import paths

RAN = """[ RUN      ] Ports.Bound_ExpectPackets
[       OK ] Ports.Bound_ExpectPackets (3 ms)
"""
SKIPPED = """[ RUN      ] {test}
../../src/kv/net/xdp_port_test.cpp:77: Skipped
no network namespace:
not permitted
[  SKIPPED ] {test} (0 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] {test}
"""
HIDDEN = "EventCounter.CacheMisses_ExpectThoseOfARandomWalkThroughMemory"


def said(build: Path, log: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (build / "Testing/Temporary").mkdir(parents=True)
    (build / "Testing/Temporary/LastTest.log").write_text(log)
    return report(build, **environment)


def report(build: Path, *others: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, paths.PACKAGE.parent.parent / "tools/ctest_report.py", build, *others]
    clean = {name: value for name, value in os.environ.items() if name != "NO_SKIPS"}
    return subprocess.run(command, capture_output=True, text=True, env=clean | environment)


def test_skipped_tests_and_their_reasons_are_said(tmp_path: Path) -> None:
    done = said(tmp_path, RAN + SKIPPED.format(test="Ports.Taken"))
    assert done.stdout == "skipped: Ports.Taken: no network namespace: not permitted\n"
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("log", "status"),
    [(RAN, 0), (SKIPPED.format(test="Ports.Taken"), 1), (SKIPPED.format(test=HIDDEN), 0)],
    ids=["ran", "skipped", "cannot run in a virtual machine"],
)
def test_ci_fails_where_a_test_was_skipped(tmp_path: Path, log: str, status: int) -> None:
    assert said(tmp_path, log, NO_SKIPS="1").returncode == status


PROGRAMS = {
    "passes": "[ RUN      ] A.One\\nwords\\n[       OK ] A.One (1 ms)",
    "fails": "[ RUN      ] B.One\\nfine\\n[       OK ] B.One (1 ms)\\n"
    "[ RUN      ] B.Two\\nseen 1, wanted 2\\n[  FAILED  ] B.Two (3 ms)",
    "dies": "[ RUN      ] C.One\\n[       OK ] C.One (1 ms)\\n[ RUN      ] C.Two\\nlast words",
    "hangs": "[ RUN      ] D.One\\n[       OK ] D.One (1 ms)\\n[ RUN      ] D.Two\\nstill here",
}
ENDINGS = {"passes": "true", "fails": "exit 1", "dies": "kill -SEGV $$", "hangs": "exec sleep 60"}


def test_what_failed_is_said_alone(tmp_path: Path) -> None:
    tests = [
        f'add_test({name} "sh" "-c" "printf \'[==========] 2 tests\\\\n{words}\\\\n\'; {ENDINGS[name]}")\n'
        f"set_tests_properties({name} PROPERTIES TIMEOUT 2)\n"
        for name, words in PROGRAMS.items()
    ]
    (tmp_path / "CTestTestfile.cmake").write_text("".join(tests))
    assert subprocess.run(["ctest"], cwd=tmp_path, capture_output=True, check=False).returncode != 0
    done = report(tmp_path)
    assert done.returncode == 1
    assert done.stderr.replace(str(tmp_path), "build") == (
        "error: fails of build failed:\n[ RUN      ] B.Two\nseen 1, wanted 2\n[  FAILED  ] B.Two (3 ms)\n"
        "error: dies of build failed:\n[ RUN      ] C.Two\nlast words\n"
        "error: hangs of build failed:\n[ RUN      ] D.Two\nstill here\n"
    )


def test_what_another_build_left_to_this_one_must_have_run(tmp_path: Path) -> None:
    build, other = tmp_path / "asan", tmp_path / "release"
    build.mkdir()
    other.mkdir()
    (build / "CTestTestfile.cmake").write_text('add_test(one "true")\nadd_test(two "true")\n')
    assert subprocess.run(["ctest"], cwd=build, capture_output=True, check=False).returncode == 0
    assert report(build, other).returncode == 0, "it left nothing"
    (other / "left_to_asan.txt").write_text("two\none\n")
    assert report(build, other).returncode == 0
    (other / "left_to_asan.txt").write_text("two\nthree\none\nfour\n")
    done = report(build, other)
    assert done.returncode == 1
    assert done.stderr == f"error: {other} leaves to {build} what did not run there: three, four\n"


def test_in_ci_a_skipped_python_test_fails_unless_the_machine_may_lack_what_it_takes(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = may_lack\n")
    (tmp_path / "test_skips.py").write_text(
        "import pytest\n"
        "@pytest.mark.skipif(True, reason='x')\ndef test_marked(): pass\n"
        "def test_skips(): pytest.skip('y')\n"
        "@pytest.mark.may_lack\ndef test_may_lack(): pytest.skip('z')\n"
        "def test_runs(): pass\n"
    )
    tests = str(paths.PACKAGE.parent / "tests")
    for no_skips, counts in (("1", "1 failed, 1 passed, 1 skipped, 1 error"), ("0", "1 passed, 3 skipped")):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "skips", str(tmp_path)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"NO_SKIPS": no_skips, "PYTHONPATH": tests},
        )
        assert counts in done.stdout, done.stdout + done.stderr
