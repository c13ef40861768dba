# SPDX-License-Identifier: Apache-2.0
"""The parts of a Debian guest in QEMU: kernel, modules, busybox, programs with their libraries, initramfs."""

import gzip
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

LACKING = 77
"""Exit status if a package or program for the guest is missing and cannot be fetched."""
LIBRARIES = "lib/x86_64-linux-gnu"


class Lacking(Exception):
    """A part of the guest is not available."""


@dataclass(frozen=True)
class Parts:
    """The unpacked files of Debian's packages."""

    root: Path
    kernel: Path
    modules: Path
    busybox: Path


def fetch(work: Path, packages: Iterable[str] = ()) -> Parts:
    """Fetches the kernel's image, its modules, busybox and `packages` from Debian, unless they were fetched before."""
    work.mkdir(parents=True, exist_ok=True)
    place = work / "packages"
    wanted = [name for name in packages if not (place / f"done-{name}").exists()]
    if not (place / "done").exists():
        wanted += ["linux-image-amd64", "busybox-static"]
    for name in wanted:
        package = name
        try:
            if name == "linux-image-amd64":  # an empty package that depends on the package with the files
                line = ["apt-cache", "depends", name]
                said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
                kernel = re.search(r"Depends: (linux-image-\S+)", said)
                if kernel is None:
                    raise Lacking("apt knows no linux-image-amd64: run apt-get update")
                package = kernel[1]
            line = ["apt-get", "download", package]
            subprocess.run(line, cwd=work, check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise Lacking(f"the packages of the guest cannot be fetched: {error}") from error
        except subprocess.CalledProcessError as error:
            raise Lacking(f"{' '.join(line)}: {error.stderr.strip()}") from error
        for file in work.glob(f"{package}_*.deb"):
            subprocess.run(["dpkg", "-x", file, place], check=True)
        (place / f"done-{name}").touch()
    (place / "done").touch()
    busybox = next(path for path in (place / "bin/busybox", place / "usr/bin/busybox") if path.exists())
    return Parts(place, next((place / "boot").glob("vmlinuz-*")), next((place / "lib/modules").iterdir()), busybox)


def archive(files: Iterable[tuple[str, int, bytes]]) -> bytes:
    """A cpio archive in the form newc (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    out = bytearray()
    for number, (name, mode, data) in enumerate([*files, ("TRAILER!!!", 0, b"")], 1):
        text = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(text), 0)
        out += b"070701" + "".join(f"{field:08x}" for field in fields).encode() + text
        out += b"\0" * (-len(out) % 4)
        out += data + b"\0" * (-len(data) % 4)
    return bytes(out)


def with_dependencies(names: Iterable[str], modules: Path) -> list[Path]:
    """The modules' files, each after the modules on which it depends, as its section .modinfo says.

    Modules that are built into the kernel are left out.
    """
    files = {path.stem.replace("-", "_"): path for path in modules.rglob("*.ko")}
    found: list[Path] = []

    def add(name: str) -> None:
        path = files.get(name.replace("-", "_"))
        if path is None or path in found:
            return
        said = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for other in said[1].decode().split(",") if said and said[1] else []:
            add(other)
        found.append(path)

    for name in names:
        add(name)
    return found


def libraries(program: Path, also: Iterable[Path] = ()) -> set[Path]:
    """The shared libraries of a program. `also`: folders in which the loader searches first."""
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(str(folder.resolve()) for folder in also)}
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, env=environment).stdout
    return {Path(word) for word in re.findall(r"(?<=\s)/\S+", said)}


def initramfs(
    busybox: Path,
    init: str,
    modules: Iterable[Path],
    programs: Iterable[Path],
    others: Mapping[str, Path] | None = None,
    also: Iterable[Path] = (),
) -> bytes:
    """The initramfs: busybox, modules, programs with their libraries, other files by their name in the guest, and the
    first process."""
    folders = {"bin", "proc", "sys", "dev", "run", "lib", "lib64", LIBRARIES, "modules"}
    files = [("bin/busybox", 0o100755, busybox.read_bytes()), ("init", 0o100755, init.encode())]
    files += [(f"modules/{path.name}", 0o100644, path.read_bytes()) for path in modules]
    programs, others, also = list(programs), dict(others or {}), list(also)
    files += [(f"bin/{program.name}", 0o100755, program.read_bytes()) for program in programs]
    needed = [*programs, *(path for path in others.values() if ".so" in path.name)]
    for path in sorted({library for one in needed for library in libraries(one, also)}):
        folder = "lib64" if "ld-linux" in path.name else LIBRARIES
        files.append((f"{folder}/{path.name}", 0o100755, path.resolve().read_bytes()))
    for name, path in others.items():
        files.append((name, 0o100755, path.resolve().read_bytes()))
        folders |= {str(parent) for parent in Path(name).parents if str(parent) != "."}
    return gzip.compress(archive([*((folder, 0o40755, b"") for folder in sorted(folders)), *files]), 1)
