# SPDX-License-Identifier: Apache-2.0
"""Boots Linux on the simulated soft core and records what it asks of the memory: `make linux-trace`.

Builds, in build/card: a kernel from Debian's sources (clang and LLVM's linker; tinyconfig and sim/softcore/linux), a
machine mode of two files, one program; Verilates VexRiscv (MIT, from PyPI); boots, and writes the trace that
sim/softcore/bus_trace.hpp reads. Packages of Debian are downloaded and unpacked, not installed. docs/card-memory.md.

    tools/linux_trace.py [--trace FILE] [--from ACCESS --count ACCESSES]
"""

import argparse
import os
import sys
import tarfile
from pathlib import Path

from card_programs import PLACE, ROOT, SITE, build_program, install_packages, run

SOURCES = ROOT / "sim" / "softcore" / "linux"
LINUX = PLACE / "linux"
PACKAGES = [
    "linux-source-6.1",
    "lld-16",
    "llvm-16",
    "flex",
    "bison",
    "m4",
    "device-tree-compiler",
    "libyaml-0-2",
    "libfdt1",
]
LEFT_OUT = ("drivers/gpu/drm/amd/include/", "tools/testing/")
"""Large folders of the source that no part of this build reads."""
CLANG = ["clang", "--target=riscv32", "-march=rv32ima", "-mabi=ilp32", "-nostdlib", "-static", "-fuse-ld=lld"]


def unpack_tools() -> dict[str, str]:
    """Debian's packages into build/card/linux; the environment in which their programs are found."""
    packages, tools, programs = LINUX / "packages", LINUX / "tools", LINUX / "bin"
    for folder in (packages, tools, programs):
        folder.mkdir(parents=True, exist_ok=True)
    if not (tools / "usr" / "bin" / "dtc").exists():
        run("apt-get", "-q", "download", *PACKAGES, cwd=packages)
        for package in packages.glob("*.deb"):
            run("dpkg", "-x", package, tools)
        found = [
            *tools.glob("usr/lib/llvm-16/bin/*"),
            *(tools / "usr" / "bin" / name for name in ("flex", "bison", "m4", "dtc")),
        ]
        for program in [*found, Path("/usr/bin/clang-16")]:
            link = programs / program.name.removesuffix("-16")
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    libraries = f"{tools}/usr/lib/x86_64-linux-gnu:{tools}/usr/lib/llvm-16/lib"
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}", "LD_LIBRARY_PATH": libraries, "M4": f"{programs}/m4",
        "BISON_PKGDATADIR": f"{tools}/usr/share/bison",
    }  # fmt: skip


def build_guest(environment: dict[str, str]) -> None:
    """Machine mode, the program and the device tree."""
    run(*CLANG, "-O2", "-ffreestanding", "-mcmodel=medany", f"-Wl,-T,{SOURCES}/sbi.ld", SOURCES / "start.S",
        SOURCES / "sbi.c", "-o", LINUX / "sbi.elf", env=environment)  # fmt: skip
    run("llvm-objcopy", "-O", "binary", LINUX / "sbi.elf", LINUX / "sbi.bin", env=environment)
    run(*CLANG, "-mno-relax", SOURCES / "init.S", "-o", LINUX / "init", env=environment)
    run("dtc", "-q", "-I", "dts", "-O", "dtb", SOURCES / "board.dts", "-o", LINUX / "board.dtb", env=environment)
    (LINUX / "files").write_text(f"dir /dev 755 0 0\nnod /dev/console 600 0 0 c 5 1\nfile /init {LINUX}/init 755 0 0\n")


def build_kernel(environment: dict[str, str]) -> Path:
    """The kernel's image, with the program in it."""
    source, out = LINUX / "source", LINUX / "kernel"
    if not (source / "Makefile").exists():
        source.mkdir(parents=True, exist_ok=True)
        with tarfile.open(next(LINUX.glob("tools/usr/src/linux-source-6.1.tar.xz"))) as archive:
            for member in archive:
                member.name = member.name.partition("/")[2]
                if member.name and not member.name.startswith(LEFT_OUT):
                    archive.extract(member, source, filter="tar")
    make = ["make", "-s", "ARCH=riscv", "LLVM=1", "HOSTCC=gcc", "HOSTCXX=g++", f"O={out}"]
    run(*make, "tinyconfig", cwd=source, env=environment)
    with (out / ".config").open("a") as config:
        config.write((SOURCES / "kernel.config").read_text())
        config.write(f'CONFIG_INITRAMFS_SOURCE="{LINUX}/files"\n')
    run(*make, "olddefconfig", cwd=source, env=environment)
    run(*make, f"-j{os.environ.get('JOBS', '1')}", "Image", cwd=source, env=environment)
    return out / "arch" / "riscv" / "boot" / "Image"


def main() -> None:
    """Exit status 1 if Linux did not come up and switch itself off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, default=ROOT / "build" / "linux.trace")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first access that is kept")
    parser.add_argument("--count", type=int, help="so many accesses are kept; all unless told")
    arguments = parser.parse_args()
    install_packages()
    environment = unpack_tools()
    build_guest(environment)
    kernel = build_kernel(environment)
    verilog = SITE / "pythondata_cpu_vexriscv" / "verilog" / "VexRiscv_Linux.v"
    sources = [
        "sim/softcore/linux_main.cpp",
        "sim/softcore/vex_core.cpp",
        "sim/softcore/bus_trace.cpp",
        "src/base/status.cpp",
    ]
    program = build_program("vexriscv", "VexRiscv", verilog, sources)
    part = [] if arguments.count is None else [str(arguments.first), str(arguments.count)]
    said = run(program, LINUX / "sbi.bin", LINUX / "board.dtb", kernel, arguments.trace, *part)
    print(said)
    if "soft core: done" not in said:
        sys.exit("Linux did not reach the end of its program")


if __name__ == "__main__":
    main()
