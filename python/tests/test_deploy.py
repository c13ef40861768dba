# SPDX-License-Identifier: Apache-2.0
"""The systemd unit: the agent accepts its settings, and systemd accepts the unit. Also the environment of CI."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNIT = DEPLOY / "wherryd.service"


@pytest.fixture
def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT.read_text())
    return unit["Service"]


@pytest.fixture
def settings(service: configparser.SectionProxy, wherryd: Path) -> dict[str, dict[str, str]]:
    """The agent's settings from the unit's command line and the configuration file beside the unit."""
    _, *arguments = shlex.split(service["ExecStart"])
    assert arguments[:2] == ["--config", "/etc/wherry/wherryd.toml"]
    line = [str(wherryd), "--config", str(DEPLOY / "wherryd.toml"), *arguments[2:], "--dump-config"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return tomllib.loads(done.stdout)


def test_the_agent_is_not_root(service: configparser.SectionProxy) -> None:
    assert service["User"] not in ("", "root")
    assert f"u {service['User']} " in (DEPLOY / "wherry.sysusers").read_text()
    assert "AmbientCapabilities" not in service, "the unit's agent could not share memory with its clients"


def test_the_group_may_use_it(service: configparser.SectionProxy, settings: dict[str, dict[str, str]]) -> None:
    assert settings["agent"]["group"] == service["Group"]
    directory = f"/run/{service['RuntimeDirectory']}"
    assert Path(settings["agent"]["session_file"]).parent == Path(directory)
    assert service["RuntimeDirectoryMode"] == "0750"


def test_files_can_be_written(service: configparser.SectionProxy, settings: dict[str, dict[str, str]]) -> None:
    assert service["ProtectSystem"] == "strict", "then only the unit's own directories are writable"
    state = Path(f"/var/lib/{service['StateDirectory']}")
    assert Path(settings["sink"]["root"]).is_relative_to(state)


def test_it_outlives_its_drain(service: configparser.SectionProxy, settings: dict[str, dict[str, int]]) -> None:
    assert int(service["TimeoutStopSec"]) * 1000 > settings["agent"]["drain_ms"]


def test_systemd_understands_it(wherryd: Path, tmp_path: Path) -> None:
    lines = [line for line in UNIT.read_text().splitlines() if line and not line.startswith("#")]
    assert all(line.startswith("[") or "=" in line for line in lines)
    if analyze := shutil.which("systemd-analyze"):
        copy = tmp_path / UNIT.name
        copy.write_text(UNIT.read_text().replace("/usr/bin/wherryd", str(wherryd)))
        done = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60)
        complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
        assert (done.returncode, complaints) == (0, []), done.stderr


def test_agents_start_in_the_environment_that_tests_set(wherryd: Path) -> None:
    """An agent refuses unknown variables that begin with its own prefix, so the variables of CI and ctest must have
    other names."""
    root = DEPLOY.parent
    sets = dict(re.findall(r"^([A-Z_]+)=(\S+) make", (root / ".ci/run").read_text(), re.MULTILINE))
    assert sets
    of_ctest = dict(re.findall(r'"([A-Z_]+)=([^"]*)"', (root / "cmake/Tests.cmake").read_text()))
    assert "UBSAN_OPTIONS" in of_ctest
    sets |= of_ctest
    subprocess.run([wherryd, "--dump-config"], check=True, capture_output=True, env=os.environ | sets)
