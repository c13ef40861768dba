# SPDX-License-Identifier: Apache-2.0
"""An installed tree works without the checkout and the build. Another project can build Wherry as a part of itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import built

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
Run = Callable[..., str]

OFFLOAD = """
import numpy as np
import wherry

with wherry.Session() as session:
    x = np.arange(1000.0)
    stream = session.stream("particles", {"x": x})
    stream.offload({"x": x}, tag=7).wait(60)
    stream.close()
    frames = [(f.tag, f.batch.column("x").to_pylist()) for f in wherry.open("particles", agent=session, timeout=60)]
assert frames == [(7, x.tolist())], frames
print("delivered", wherry.__file__)
"""


def output_of(*words: str | Path, **keywords: object) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=400, check=False, **keywords
    )  # type: ignore[call-overload]
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed tree that was moved after the installation."""
    built("wherryd")
    folder = tmp_path_factory.mktemp("install")
    output_of("cmake", "--install", RELEASE, "--prefix", folder / "first")
    (folder / "first").rename(folder / "prefix")
    return folder / "prefix"


@pytest.fixture
def run(prefix: Path, tmp_path: Path) -> Iterator[Run]:
    """Runs commands in a private environment, where an empty file system hides the checkout."""
    hide = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    hide += ["sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(ROOT)]
    if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not make mount namespaces")
    environment = {"PATH": f"{prefix}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    yield lambda *words: output_of(*hide, *words, env=environment, cwd=tmp_path)
    assert not (tmp_path / "wherry").exists() or not list((tmp_path / "wherry").glob("agent.json")), "an agent runs on"


def test_installed_programs_name_no_path_of_the_checkout(prefix: Path) -> None:
    ours = [*prefix.glob("bin/*"), *prefix.glob("lib/**/libwherry*.so*"), *prefix.glob("lib/**/python/wherry/**/*.so")]
    binaries = [path for path in ours if path.read_bytes()[:4] == b"\x7fELF"]
    assert len(binaries) >= 6
    for path in binaries:
        dynamic = output_of("readelf", "-d", path)
        assert str(ROOT) not in dynamic, f"{path}: {dynamic}"
        for entry in re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", dynamic):
            assert all(one.startswith("$ORIGIN") for one in entry.split(":")), f"{path}: {entry}"
    text = [path for path in prefix.rglob("*") if path.suffix in {".py", ".cmake", ".pc"} or path.name == "wherry"]
    assert not [path for path in text if path.is_file() and str(ROOT) in path.read_text(errors="replace")]


def test_the_command_line_serves_and_reads_after_the_checkout_is_gone(run: Run, prefix: Path) -> None:
    assert run("wherry", "--version").startswith("wherry ")
    run("wherry", "agent", "start", "--budget", "64MiB")
    try:
        assert "pid" in run("wherry", "agent", "status")
        delivered = run("env", f"PYTHONPATH={prefix}/lib/wherry/python", "python3.11", "-c", OFFLOAD)
        assert delivered.split() == ["delivered", f"{prefix}/lib/wherry/python/wherry/__init__.py"]
    finally:
        run("wherry", "agent", "stop")


def test_a_program_in_c_is_built_and_runs_after_the_checkout_is_gone(run: Run, prefix: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "04_c_abi" / "c_abi.c", tmp_path / "program.c")
    flags = run("env", f"PKG_CONFIG_PATH={prefix}/lib/pkgconfig", "pkg-config", "--cflags", "--libs", "wherry").split()
    run("gcc", "-std=c99", "program.c", "-o", "program", *flags, f"-Wl,-rpath,{prefix}/lib")
    assert "frame 0 took the agent" in run("env", "WHERRY_AGENT=embedded", "./program")


MODULE_COMMANDS = """
proc module-whatis {text} {}
proc conflict {name} {}
proc prepend-path {name value} {puts "prepend $name $value"}
proc append-path {name value} {puts "append $name $value"}
set ModulesCurrentModulefile [lindex $argv 0]
source $ModulesCurrentModulefile
"""
"""The commands of a module system that our module file uses."""


def test_the_module_file_leads_into_the_prefix_wherever_that_is(prefix: Path, tmp_path: Path) -> None:
    (file,) = (prefix / "share" / "modulefiles" / "wherry").iterdir()
    assert file.read_text().startswith("#%Module")
    assert f"wherry {file.name}" in output_of(prefix / "bin" / "wherry-kv", "--version")
    script = tmp_path / "load.tcl"
    script.write_text(MODULE_COMMANDS)
    said = [line.split() for line in output_of("tclsh", script, file).splitlines()]
    paths = {name: Path(value) for _, name, value in said}
    assert (paths["PATH"] / "wherry").is_file()
    assert (paths["PYTHONPATH"] / "wherry" / "__init__.py").is_file()
    assert (paths["LD_LIBRARY_PATH"] / "libwherry.so").exists()
    assert (paths["CPATH"] / "wherry" / "kv.h").is_file()
    assert (paths["PKG_CONFIG_PATH"] / "wherry.pc").is_file()
    assert paths["CMAKE_PREFIX_PATH"] == prefix
    assert paths["LIBRARY_PATH"] == paths["LD_LIBRARY_PATH"]
    assert ["append", "PYTHONPATH"] in [words[:2] for words in said], "numpy of the user's other modules comes first"
    # A WHERRY variable would be a setting, and the agent refuses unknown settings.
    assert not [name for name in paths if name.startswith("WHERRY")]


@pytest.fixture
def ucx_alone(tmp_path: Path) -> Path:
    """A virtual environment that contains only UCX."""
    site = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (libucx,) = (ROOT / ".venv").glob("lib/python3.*/site-packages/libucx")
    (site / "libucx").symlink_to(libucx)
    return tmp_path / "venv"


def test_another_project_builds_the_library_as_its_part_without_arrow(ucx_alone: Path, wherryd: Path) -> None:
    build = ROOT / "build" / "fetched"
    shutil.rmtree(build, ignore_errors=True)
    configured = output_of(
        *("cmake", "-G", "Ninja", "-S", ROOT / "examples" / "05_consumer" / "fetched", "-B", build),
        *(
            "-DCMAKE_BUILD_TYPE=",  # halves the time; the release build compiles the same files with optimisation
            "-DCMAKE_UNITY_BUILD=ON",
            f"-DFETCHCONTENT_SOURCE_DIR_WHERRY={ROOT}",
            f"-DWHERRY_VENV={ucx_alone}",
        ),
        *("-DWHERRY_WERROR=ON", "-DFETCHCONTENT_FULLY_DISCONNECTED=ON"),
    )
    assert "without wherryd" in configured
    output_of("cmake", "--build", build)
    names = {path.name for path in build.rglob("*") if path.is_file() and os.access(path, os.X_OK)}
    assert not names & {"wherryd", "wherry-kv", "base_test"}, "only what the project asked for is built"
    assert "delivered" in output_of(build / "consumer", env=os.environ | {"WHERRY_WHERRYD": str(wherryd)})
