# SPDX-License-Identifier: Apache-2.0
"""Boots Linux on the simulated soft core, and records its bus: `make linux-trace` (docs/design/designs.md).

The source of Linux and a compiler come from Debian 12 in fixed versions. They are unpacked into build/linux, not
installed. The kernel is built with sim/softcore/linux/kernel.config and one init. designs_linux boots it, and init must
power the board off. Then tools/bus_trace.py counts the recording and its slice a second time.

    tools/linux_trace.py [--record] [--keep] [--build BUILD] [--jobs N]

Exit status: 0 success; 77 Debian's packages are not available.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bus_trace

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "sim" / "softcore" / "linux"
COMMITTED = ROOT / "sim" / "designs" / "linux_boot.wbt"
LACKING = 77
SOURCE_PACKAGE, SOURCE_VERSION = "linux-source-6.1", "6.1.176-1"
PACKAGES = {
    SOURCE_PACKAGE: SOURCE_VERSION,
    "gcc-12-riscv64-linux-gnu": "12.2.0-13cross1",
    "cpp-12-riscv64-linux-gnu": "12.2.0-13cross1",
    "binutils-riscv64-linux-gnu": "2.40-2",
    "flex": "2.6.4-8.2",
    "bison": "2:3.8.2+dfsg-1+b1",
    "m4": "1.4.19-3",
    "bc": "1.07.1-3+b1",
}
NOT_BUILT = (
    "*/Documentation/[!K]*", "*/tools/testing/*", "*/tools/perf/*", "*/arch/[!r]*/*.[chS]", "*/arch/[!r]*/*.dts*",
    *(f"*/{folder}/*.[ch]" for folder in ("sound", "drivers/gpu", "drivers/net", "drivers/media", "drivers/staging",
                                          "drivers/scsi", "drivers/infiniband")),
)  # fmt: skip
"""Folders that this configuration does not compile, two thirds of the source."""
PREFIX = "riscv64-linux-gnu-"
COMPILER = f"{PREFIX}gcc-12"
BARE = ("-march=rv32ima_zicsr_zifencei", "-mabi=ilp32", "-mcmodel=medany", "-O2", "-Wall", "-Wextra", "-Werror",
        "-ffreestanding", "-fno-tree-loop-distribute-patterns", "-nostdlib", "-static",
        "-Wl,--build-id=none", "-Wl,-z,noexecstack", "-Wl,--no-warn-rwx-segments")  # fmt: skip
SAME_KERNEL = {"KBUILD_BUILD_USER": "wherry", "KBUILD_BUILD_HOST": "wherry", "KBUILD_BUILD_VERSION": "1",
               "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026"}  # fmt: skip
"""Fixed build information for the kernel, so that each recording is the same."""


class Lacking(Exception):
    """A package of Debian is not available."""


class Workshop:
    """The folder build/linux: packages, tools and the results of the build."""

    def __init__(self, place: Path, jobs: int) -> None:
        self.place, self.jobs = place, jobs
        self.tools = place / "tools"
        self.image = place / "Image"
        self.log = place / "log"
        place.mkdir(parents=True, exist_ok=True)
        usr = self.tools / "usr"
        self.environment = os.environ | SAME_KERNEL | {
            "PATH": f"{usr}/bin:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": f"{usr}/lib/x86_64-linux-gnu",
            "BISON_PKGDATADIR": f"{usr}/share/bison",
            "M4": f"{usr}/bin/m4",
            "LC_ALL": "C",
        }  # fmt: skip

    def run(self, *command: str | Path) -> None:
        """Runs a command with its output in the log. If it fails, this program ends with the log's last lines."""
        words = [str(part) for part in command]
        with self.log.open("a") as log:
            log.write(f"{' '.join(words)}\n")
            log.flush()
            done = subprocess.run(words, cwd=self.place, stdout=log, stderr=log, check=False, env=self.environment)
        if done.returncode != 0:
            lines = self.log.read_text(errors="replace").splitlines()
            print("\n".join(lines[-20:]), file=sys.stderr)
            sys.exit(f"failed ({done.returncode}): {' '.join(words)}; all of it: {self.log}")

    def fetch(self) -> Path:
        """Fetches Debian's packages and unpacks the tools. Returns the source package."""
        stamp = self.place / "fetched"
        wanted = json.dumps(PACKAGES)
        if not stamp.exists() or stamp.read_text() != wanted:
            packages = self.place / "packages"
            shutil.rmtree(packages, ignore_errors=True)
            packages.mkdir()
            line = ["apt-get", "download", *(f"{name}={version}" for name, version in PACKAGES.items())]
            try:
                subprocess.run(line, cwd=packages, check=True, capture_output=True, text=True)
            except FileNotFoundError as error:
                raise Lacking(f"no apt-get here: {error}") from error
            except subprocess.CalledProcessError as error:
                raise Lacking(f"{' '.join(line)}: {error.stderr.strip()}") from error
            for file in packages.glob("*.deb"):
                if not file.name.startswith(SOURCE_PACKAGE):
                    self.run("dpkg", "-x", file, self.tools)
            stamp.write_text(wanted)
        return next((self.place / "packages").glob(f"{SOURCE_PACKAGE}_*.deb"))

    def unpack(self, package: Path) -> Path:
        """Unpacks the kernel's source without the folders that are not built; returns its folder."""
        source = self.place / SOURCE_PACKAGE
        if not source.exists():
            archive = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
            inner = subprocess.Popen(["tar", "xO", f"./usr/src/{SOURCE_PACKAGE}.tar.xz"], stdin=archive.stdout,
                                     stdout=subprocess.PIPE)  # fmt: skip
            unpacking = self.place / "unpacking"
            shutil.rmtree(unpacking, ignore_errors=True)
            unpacking.mkdir()
            without = [f"--exclude={pattern}" for pattern in NOT_BUILT]
            subprocess.run(["tar", "xJ", "--wildcards", *without, "-C", unpacking], stdin=inner.stdout, check=True)
            if inner.wait() != 0 or archive.wait() != 0:
                sys.exit(f"{package} cannot be unpacked")
            (unpacking / SOURCE_PACKAGE).rename(source)
            unpacking.rmdir()
        return source

    def build(self, *, keep: bool) -> None:
        """Builds sbi.bin, board.dtb and Image, unless they exist from the same sources."""
        stamp = self.place / "built"
        digest = hashlib.sha256(json.dumps([PACKAGES, SAME_KERNEL, BARE]).encode())
        for file in sorted(SOURCES.iterdir()):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return
        stamp.unlink(missing_ok=True)
        package = self.fetch()
        self.run(COMPILER, *BARE, "-Wl,-e,start", "-s", "-o", "init", SOURCES / "init.c")
        self.run(COMPILER, *BARE, f"-Wl,-T,{SOURCES / 'sbi.ld'}", "-o", "sbi.elf", SOURCES / "sbi.S",
                 SOURCES / "sbi.c")  # fmt: skip
        self.run(f"{PREFIX}objcopy", "-O", "binary", "sbi.elf", "sbi.bin")
        listing = self.place / "initramfs.list"
        listing.write_text(
            f"dir /dev 0755 0 0\nnod /dev/console 0600 0 0 c 5 1\nfile /init {self.place}/init 0755 0 0\n"
        )
        config = self.place / "kernel.config"
        config.write_text((SOURCES / "kernel.config").read_text() + f'CONFIG_INITRAMFS_SOURCE="{listing}"\n')
        source, objects = self.unpack(package), self.place / "kernel"
        objects.mkdir(exist_ok=True)
        make = ("make", f"-j{self.jobs}", "-C", source, f"O={objects}", "ARCH=riscv", f"CROSS_COMPILE={PREFIX}",
                f"CC={COMPILER}", f"KCONFIG_ALLCONFIG={config}")  # fmt: skip
        self.run(*make, "allnoconfig")
        made = set((objects / ".config").read_text().splitlines())
        if lost := [line for line in config.read_text().splitlines() if line.startswith("CONFIG") and line not in made]:
            sys.exit(f"Linux' configuration does not take {', '.join(lost)}")
        self.run(*make, "Image")
        self.run(objects / "scripts/dtc/dtc", "-I", "dts", "-O", "dtb", "-o", "board.dtb", SOURCES / "board.dts")
        shutil.copyfile(objects / "arch/riscv/boot/Image", self.image)
        if not keep:  # a GB
            shutil.rmtree(source)
            shutil.rmtree(objects)
        stamp.write_text(digest.hexdigest())

    def boot(self, program: Path) -> dict[str, Any]:
        """Boots the kernel; returns the report of designs_linux. The console goes to standard error."""
        files = {"--sbi": "sbi.bin", "--dtb": "board.dtb", "--kernel": "Image", "--trace": "boot.wbt",
                 "--slice": "slice.wbt", "--json": "boot.json"}  # fmt: skip
        words = [
            str(program),
            *(str(part) for pair in files.items() for part in (pair[0], self.place / pair[1])),
        ]
        if (status := subprocess.run(words, check=False).returncode) != 0:
            sys.exit(f"failed ({status}): {' '.join(words)}")
        document: dict[str, Any] = json.loads((self.place / "boot.json").read_text())
        return document


def differences(said: Mapping[str, Any], place: Path) -> list[str]:
    """A line for each count that differs between designs_linux and tools/bus_trace.py."""
    found = []
    for name, file in (("boot", "boot.wbt"), ("slice", "slice.wbt")):
        counted = bus_trace.count((place / file).read_bytes())
        found += [f"{name}: {key} is {said[name][key]} by designs_linux, and {value} by tools/bus_trace.py"
                  for key, value in counted.items() if said[name][key] != value]  # fmt: skip
    found += [f"boot: the core counted {value} {key}" for key, value in said["counted_by_the_core"].items()
              if said["boot"][key] != value]  # fmt: skip
    return found


def main() -> int:
    """Fetches, builds, boots, counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="the slice replaces the one in sim/designs")
    parser.add_argument("--keep", action="store_true", help="the kernel's source and objects stay, 600 MB")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="where designs_linux was built")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    program = arguments.build / "sim" / "designs" / "designs_linux"
    if not program.exists():
        sys.exit(f"{program} is not there: cmake --build {arguments.build} --target designs_linux")
    workshop = Workshop(ROOT / "build" / "linux", arguments.jobs)
    try:
        workshop.build(keep=arguments.keep)
    except Lacking as error:
        print(f"linux-trace: {error}", file=sys.stderr)
        return LACKING
    said = workshop.boot(program)
    if wrong := differences(said, workshop.place):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    boot, cut = said["boot"], said["slice"]
    megabytes = boot["bytes"] / said["core_cycles"] * said["clock_hz"] / 1e6
    print(f"Linux booted, and init powered the board off: {said['core_cycles'] / 1e6:.1f} million cycles, "
          f"{boot['accesses'] / 1e6:.2f} million accesses, {boot['written_words'] / boot['accesses']:.0%} writes, "
          f"{boot['pages']} pages, {megabytes:.0f} MB/s")  # fmt: skip
    slice_file = workshop.place / "slice.wbt"
    print(f"slice: {cut['accesses']} accesses, {cut['pages']} pages, {slice_file.stat().st_size} bytes; counted twice")
    if arguments.record:
        shutil.copyfile(slice_file, COMMITTED)
        shutil.copyfile(workshop.place / "boot.json", COMMITTED.with_suffix(".json"))
    elif not COMMITTED.exists() or COMMITTED.read_bytes() != slice_file.read_bytes():
        print(f"{COMMITTED.relative_to(ROOT)} is another slice; --record replaces it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
