# SPDX-License-Identifier: Apache-2.0
"""The wheel of the release build does not contain paths of this machine, and works with only its dependencies
installed.

`make wheel` makes a wheel for other machines from the same objects, which are linked differently
(cmake/Portable.cmake). tools/try_wheel.sh installs that wheel in an empty Debian.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundle_python import needed
from jobs import built

ROOT = Path(__file__).resolve().parents[2]
(SITE,) = (ROOT / ".venv").glob("lib/python3.*/site-packages")
SYSTEM = re.compile(r"/(lib|usr/lib)[^ ]*/(ld-linux-x86-64|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z))\.so\.\d+$")
"""System libraries that are allowed: glibc, GCC's run-time libraries, and zlib. UCX's and Arrow's wheels use zlib from
the system, as every manylinux wheel may."""


def output_of(*words: str | Path, **keywords: object) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=300, check=False, **keywords
    )  # type: ignore[call-overload]
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built("wherryd")
    folder = tmp_path_factory.mktemp("dist")
    output_of(sys.executable, ROOT / "tools" / "wheel.py", "--out", folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def target(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as installed by `pip install --target`. Its dependencies are symbolic links into the virtual
    environment."""
    folder = tmp_path_factory.mktemp("target")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    output_of(*pip, "--disable-pip-version-check", "--target", folder, wheel)
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for name in {file.parts[0] for one in needed(requirements).values() for file in one.files or ()} - {
        "..",
        "__pycache__",
    }:
        (folder / name).symlink_to(SITE / name)
    return folder


@pytest.fixture
def elsewhere(target: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which only the installed package can be found."""
    runtime = tmp_path / "run"
    runtime.mkdir()
    yield {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(runtime), "PYTHONPATH": str(target)}
    assert not [*runtime.rglob("*.json")], "something runs on"


def test_the_wheel_says_what_it_needs_and_names_no_path_of_this_machine(wheel: Path, tmp_path: Path) -> None:
    assert re.fullmatch(r"wherry-[\d.]+-cp3\d+-cp3\d+-manylinux_2_\d\d_x86_64\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (dist_info,) = tmp_path.glob("*.dist-info")
    needs = json.loads((tmp_path / "wherry" / "_native" / "needs.json").read_text())
    assert {"libucx/lib", "pyarrow"} == {*needs}
    for need in needs.values():
        asked = re.findall(
            rf"^Requires-Dist: {need['wheel']}([^;\n]*)", (dist_info / "METADATA").read_text(), re.MULTILINE
        )
        assert [{*one.strip().split(",")} for one in asked] == [{*need["range"].split(",")}]
    binaries = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert {"wherryd", "wherry-kv", "wherry-bypass", "wherry-probe", "histogram"} < {path.name for path in binaries}
    assert not [path for path in binaries if str(ROOT).encode() in path.read_bytes()]
    for path in binaries:
        for entry in re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", output_of("readelf", "-d", path)):
            assert all(one.startswith("$ORIGIN") for one in entry.split(":")), f"{path}: {entry}"


def test_every_library_is_the_wheels_a_dependencys_or_glibcs(target: Path) -> None:
    ours = [*(target / "wherry" / "_prefix" / "bin").iterdir(), *(target / "wherry" / "_native").glob("*.so")]
    ours += [target / "wherry" / "_prefix" / "lib" / "libwherry.so.0"]
    assert len(ours) == 7
    for path in ours:
        said = output_of("env", "-i", "/usr/bin/ldd", path)
        assert "not found" not in said, f"{path}: {said}"
        for library in re.findall(r"=> (\S+)", said):
            place = os.path.normpath(library)
            mine = place.startswith(f"{target}/") or os.path.realpath(place).startswith(f"{SITE}/")
            assert mine or SYSTEM.search(place), f"{path} takes {library}"


def test_the_demonstration_passes_where_only_the_wheel_and_its_dependencies_are(elsewhere: dict[str, str]) -> None:
    said = output_of(sys.executable, "-S", "-m", "wherry", "demo", env=elsewhere, cwd=elsewhere["HOME"])
    assert re.search(r"^wherry demo: passed", said, re.MULTILINE), said
    for part in ("every byte as it was posted", "what one rank alone counts", "200 of 200 values are still there"):
        assert part in said, said


def test_a_program_in_c_is_built_with_what_the_wheel_has_for_it(
    target: Path, elsewhere: dict[str, str], tmp_path: Path
) -> None:
    shutil.copy(ROOT / "examples" / "04_c_abi" / "c_abi.c", tmp_path / "program.c")
    prefix = output_of(sys.executable, "-S", "-m", "wherry", "prefix", env=elsewhere).strip()
    assert prefix == str(target / "wherry" / "_prefix")
    there = elsewhere | {"PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"}
    flags = output_of("pkg-config", "--cflags", "--libs", "wherry", env=there).split()
    output_of("gcc", "-std=c99", "program.c", "-o", "program", *flags, f"-Wl,-rpath,{prefix}/lib", cwd=tmp_path)
    said = output_of(tmp_path / "program", env=elsewhere | {"WHERRY_AGENT": "embedded"}, cwd=tmp_path)
    assert "frame 0 took the agent" in said


def test_arrow_of_another_version_is_an_error_that_says_what_to_install(
    target: Path, elsewhere: dict[str, str], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(target, other, symlinks=True)
    (other / "pyarrow").unlink()
    (other / "pyarrow").mkdir()
    (other / "pyarrow" / "__init__.py").write_text("__version__ = '99.0.0'\n")
    (other / "pyarrow" / "libarrow.so.9900").touch()
    line = [sys.executable, "-S", "-m", "wherry", "agent", "start"]
    done = subprocess.run(line, env=elsewhere | {"PYTHONPATH": str(other)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert re.search(r"needs its libarrow\.so\.2600.*pip install 'pyarrow>=26\.0,<26\.1'", done.stderr), done.stderr
    shutil.rmtree(other / "pyarrow")
    done = subprocess.run(line, env=elsewhere | {"PYTHONPATH": str(other)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "needs the Python package pyarrow, which is not installed" in done.stderr, done.stderr


def test_dependencies_in_another_site_packages_are_found(
    target: Path, elsewhere: dict[str, str], tmp_path: Path
) -> None:
    mine = tmp_path / "user"
    mine.mkdir()
    for name in ("wherry", "wherry.libs"):
        (mine / name).mkdir()
        shutil.copytree(target / name, mine / name, dirs_exist_ok=True)
    there = elsewhere | {"PYTHONPATH": f"{mine}:{SITE}"}
    said = output_of(sys.executable, "-S", "-m", "wherry", "demo", "move", env=there, cwd=tmp_path)
    assert "every byte as it was posted" in said
