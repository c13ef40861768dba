# SPDX-License-Identifier: Apache-2.0
"""Tests probe's device paths in a Debian guest, with a real kernel's sysfs and with devices from other projects.

QEMU's `edu` does DMA as a bus master, `ivshmem` shares its memory with a file on the host, and the kernel's Soft-RoCE
is an RDMA device without hardware. QEMU interprets all code (TCG), so the guest shows that bytes arrive, but not how
fast.

    python tools/guest/probe.py [--build build/release] [--json FILE]

Needs qemu-system-x86, iproute2 and Debian's apt-get. With apt-get it fetches a kernel, busybox-static and RDMA
libraries (72 MB) into --work.
"""

import argparse
import json
import mmap
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import parts

HERE = Path(__file__).resolve().parent
MODULES = ["crc32_generic", "rdma_rxe", "ib_uverbs", "dummy"]
RDMA = ["libibverbs1", "ibverbs-providers", "libnl-3-200", "libnl-route-3-200"]
PATHS = {
    "pci.config",
    *(f"mmio.{which}" for which in ("bar.read", "bar.write", "bar.wc", "ivshmem.read", "ivshmem.write")),
    "edu.h2c",
    "edu.c2h",
    *(f"verbs.{which}{side}" for which in ("read", "write", "send", "atomic") for side in ("", ".device")),
}
"""The checks that must pass in the guest."""
RESULTS = {
    "switched_off": "2",  # nothing ran
    "pci": "0",
    "edu": "0",
    "filled": "0",
    "host_compared": "0",
    "compared": "0",
    "flipped": "1",
    "rxe": "0",
    "verbs": "0",
    "faults": "0",
    "end": "0",
}
SHARED = 16 << 20  # bytes of the file
SHOWN = 64 << 10  # bytes at its start that both sides write and compare
FLIPPED = 12345
PATIENCE = 600  # seconds, for an answer
MASK = (1 << 64) - 1


def pattern(seed: int, size: int) -> bytes:
    """The memory content that src/probe/device/places.hpp defines: splitmix64 (Steele, Lea, Flood 2014),
    little-endian."""
    out = bytearray()
    for index in range((size + 7) // 8):
        state = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & MASK
        out += (state ^ state >> 31).to_bytes(8, "little")
    return bytes(out[:size])


def command(options: argparse.Namespace, debian: parts.Parts, initrd: Path, shared: Path) -> list[str]:
    """QEMU's command line, without disk, network and display."""
    line = [options.qemu, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot"]
    line += ["-accel", "tcg", "-cpu", "max", "-M", "q35", "-m", "512M", "-serial", "stdio"]
    line += ["-kernel", str(debian.kernel), "-initrd", str(initrd)]
    line += ["-append", "console=ttyS0 quiet panic=-1 no_timer_check nowatchdog ipv6.disable=1"]
    line += ["-device", "edu,dma_mask=0xffffffff"]
    line += ["-object", f"memory-backend-file,id=shared,size={SHARED},share=on,mem-path={shared}"]
    line += ["-device", "ivshmem-plain,memdev=shared"]
    return line


class Host:
    """The host's side, which sees the shared memory as a file."""

    def __init__(self, shared: Path) -> None:
        """Creates the file, filled with zeros."""
        with shared.open("wb") as file:
            file.truncate(SHARED)
        with shared.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), SHARED)
        self.results: dict[str, str] = {}

    def turn(self, name: str) -> None:
        """Performs the host's step `name` for the guest."""
        if name == "filled":
            same = self.memory[:SHOWN] == pattern(7, SHOWN)
            self.results["host_compared"] = "0" if same else "1"
            self.memory[:SHOWN] = pattern(8, SHOWN)
        elif name == "flip":
            self.memory[FLIPPED] ^= 0x40


def run(line: list[str], host: Host, log: Path) -> dict[str, Any]:
    """Runs QEMU until the guest ends. Returns the guest's results, the lines of its checks, and the time when it had
    booted."""
    started = time.monotonic()
    report: dict[str, Any] = {"results": {}, "right": [], "wrong_lines": [], "absent": {}, "marks": {}}
    guest = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    watch = threading.Timer(PATIENCE, guest.kill)
    watch.start()
    try:
        assert guest.stdin is not None
        assert guest.stdout is not None
        with log.open("w") as out:
            for raw in guest.stdout:
                out.write(raw)
                word, _, rest = raw.strip().partition(" ")
                if word == "RESULT":
                    name, _, value = rest.partition(" ")
                    report["results"][name] = value
                elif word == "MARK":
                    report["marks"][rest] = round(time.monotonic() - started, 1)
                elif word == "RIGHT":
                    report["right"].append(rest)
                elif word == "WRONG":
                    report["wrong_lines"].append(rest)
                elif word == "ABSENT":
                    name, _, why = rest.partition(": ")
                    report["absent"][name] = why
                elif word == "TURN":
                    host.turn(rest)
                    guest.stdin.write("go\n")
                    guest.stdin.flush()
    finally:
        watch.cancel()
        guest.kill()
        guest.wait()
    report["results"] |= host.results
    report["seconds"] = round(time.monotonic() - started, 1)
    return report


def judge(report: dict[str, Any]) -> list[str]:
    """A line for each result that differs from the expected one."""
    results: dict[str, str] = report["results"]
    wrong = [
        f"{name}: {results.get(name, 'missing')!r}, want {want!r}"
        for name, want in RESULTS.items()
        if results.get(name) != want
    ]
    verified = {line.partition(":")[0] for line in report["right"]}
    wrong += [f"{path}: not verified" for path in sorted(PATHS - verified)]
    flipped = f"compare: 1 bytes differ, the first at {FLIPPED}"
    wrong += [line for line in report["wrong_lines"] if line != flipped]
    if flipped not in report["wrong_lines"]:
        wrong.append("the byte that was flipped outside was not noticed in the guest")
    return wrong


def main(arguments: list[str]) -> int:
    """Runs the guest; returns 0 if all paths were verified and the changed byte was noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"), help="with src/wherry-probe-device")
    parser.add_argument("--qemu", default="qemu-system-x86_64")
    parser.add_argument("--work", type=Path, default=Path("build/guest"))
    parser.add_argument("--json", type=Path, help="write the report there")
    options = parser.parse_args(arguments)
    program = options.build / "src" / "wherry-probe-device"
    try:
        rdma = shutil.which("rdma", path="/usr/sbin:/usr/bin:/sbin:/bin")
        if shutil.which(options.qemu) is None or rdma is None:
            raise parts.Lacking(f"{options.qemu} or rdma (iproute2) is not installed")
        debian = parts.fetch(options.work, RDMA)
    except parts.Lacking as lacking:
        print(f"guest: {lacking}", file=sys.stderr)
        return parts.LACKING
    modules = parts.with_dependencies(MODULES, debian.modules)
    init = (HERE / "probe_init.sh").read_text().replace("@MODULES@", " ".join(path.stem for path in modules))
    libraries = [debian.root / "usr" / parts.LIBRARIES, debian.root / parts.LIBRARIES]
    verbs = next(libraries[0].glob("libibverbs.so.1"))
    provider = next(libraries[0].glob("libibverbs/librxe-rdmav*.so"))
    others = {
        f"{parts.LIBRARIES}/libibverbs.so.1": verbs,
        f"usr/{parts.LIBRARIES}/libibverbs/{provider.name}": provider,
        "etc/libibverbs.d/rxe.driver": debian.root / "etc/libibverbs.d/rxe.driver",
    }
    initrd, shared, log = (options.work / name for name in ("probe-initrd.gz", "probe-shared", "probe-console.log"))
    initrd.write_bytes(parts.initramfs(debian.busybox, init, modules, [program, Path(rdma)], others, libraries))
    report = run(command(options, debian, initrd, shared), Host(shared), log)
    report["wrong"] = judge(report)
    version = subprocess.run([options.qemu, "--version"], capture_output=True, text=True, check=True).stdout
    report["how"] = {
        "qemu": version.splitlines()[0],
        "processor": "TCG, no KVM: its times are not the paths'",
        "kernel": re.sub("^vmlinuz-", "", debian.kernel.name),
    }
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    for line in report["right"]:
        print(f"verified  {line}")
    print(f"{report['seconds']} s, of which {report['marks'].get('boot')} s until the first process ran")
    for line in report["wrong"]:
        print(f"WRONG {line}")
    if report["wrong"]:
        print(f"the guest's console is in {log}", file=sys.stderr)
    return 1 if report["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
