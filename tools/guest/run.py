# SPDX-License-Identifier: Apache-2.0
"""`wherry-bypass` in a Debian guest: a real kernel, VFIO, an IOMMU, a switch, and a NIC that nobody here wrote.

The guest has QEMU's e1000e (or igb) and a card of plain memory below one PCIe switch. The program finds them, takes
the NIC from its driver, moves frames from the card's memory through the NIC and back, and gives it back; then the
driver answers ping. Then it is killed in the middle, and mended. TCG suffices; it takes about two minutes.

    tools/guest/run.py PROGRAM [--nic e1000e] [--qemu qemu-system-x86_64] [--work build/guest]

Needs qemu-system-x86 and Debian's apt-get, with which it fetches a kernel and busybox-static (71 MB) into --work.
"""

import argparse
import gzip
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = ["irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci", "dca", "i2c-algo-bit"]
MODULES += ["e1000e", "igb"]
WANTED = {
    "probe": "0",
    "ping_before": "0",
    **{f"move_{n}": "0" for n in (1, 2, 3)},
    "up": "1",
    "ping_after": "0",
    **{f"down_{n}": "0" for n in (1, 3, 6)},
    "ping_last": "0",
    "faults": "0",
}
"""What must be; and every driver_* is that of before."""


def fetch(work: Path) -> tuple[Path, Path, Path]:
    """The kernel's image, its modules, busybox: from Debian's packages, once."""
    work.mkdir(parents=True, exist_ok=True)
    place = work / "packages"
    if not (place / "done").exists():
        said = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, check=True)
        kernel = re.search(r"Depends: (linux-image-\S+)", said.stdout)
        if kernel is None:
            raise SystemExit("apt knows no linux-image-amd64: run apt-get update")
        subprocess.run(["apt-get", "download", kernel[1], "busybox-static"], cwd=work, check=True)
        for package in work.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, place], check=True)
        (place / "done").touch()
    busybox = next(path for path in (place / "bin/busybox", place / "usr/bin/busybox") if path.exists())
    return next((place / "boot").glob("vmlinuz-*")), next((place / "lib/modules").iterdir()), busybox


def archive(files: list[tuple[str, int, bytes]]) -> bytes:
    """A cpio archive in the form newc (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    out = bytearray()
    for number, (name, mode, data) in enumerate([*files, ("TRAILER!!!", 0, b"")], 1):
        text = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(text), 0)
        out += b"070701" + "".join(f"{field:08x}" for field in fields).encode() + text
        out += b"\0" * (-len(out) % 4)
        out += data + b"\0" * (-len(data) % 4)
    return bytes(out)


def initramfs(program: Path, modules: Path, busybox: Path) -> bytes:
    """The program, its libraries, busybox, the modules, and init.sh."""
    folders = ("bin", "proc", "sys", "dev", "run", "lib", "lib64", "lib/x86_64-linux-gnu", "modules")
    files = [(folder, 0o40755, b"") for folder in folders]
    found = [(name, path) for name in MODULES for path in list(modules.rglob(f"{name}.ko"))[:1]]
    files += [(f"modules/{name}.ko", 0o100644, path.read_bytes()) for name, path in found]
    files += [("bin/wherry-bypass", 0o100755, program.read_bytes()), ("bin/busybox", 0o100755, busybox.read_bytes())]
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for path in (Path(word) for word in re.findall(r"/\S+", linked)):
        folder = "lib64" if "ld-linux" in path.name else "lib/x86_64-linux-gnu"
        files.append((f"{folder}/{path.name}", 0o100755, path.resolve().read_bytes()))
    init = (HERE / "init.sh").read_text().replace("@MODULES@", " ".join(name for name, _ in found))
    return gzip.compress(archive([*files, ("init", 0o100755, init.encode())]), 1)


def command(options: argparse.Namespace, kernel: Path, initrd: Path) -> list[str]:
    """QEMU's words: root port, switch, NIC and card at its two downstream ports."""
    words = [options.qemu, *(["-L", options.firmware] if options.firmware else [])]
    words += ["-M", "q35,kernel-irqchip=off", "-m", "512M", "-accel", "tcg", "-cpu", "max", "-nodefaults", "-no-reboot"]
    words += ["-display", "none", "-serial", "stdio", "-kernel", str(kernel), "-initrd", str(initrd)]
    words += ["-append", "console=ttyS0 intel_iommu=on iommu=nopt quiet panic=-1", "-device", "intel-iommu"]
    words += ["-object", f"memory-backend-file,id=card,share=on,size=8M,mem-path={options.work / 'card'}"]
    for device in (
        "pcie-root-port,id=root,chassis=1,slot=1",
        "x3130-upstream,id=up,bus=root",
        "xio3130-downstream,id=first,bus=up,chassis=2,slot=2",
        "xio3130-downstream,id=second,bus=up,chassis=3,slot=3",
        f"{options.nic},netdev=net,bus=first,mac=52:54:00:12:34:56",
        "ivshmem-plain,memdev=card,master=on,bus=second",
    ):
        words += ["-device", device]
    return [*words, "-netdev", "user,id=net"]


def judge(results: dict[str, str]) -> list[str]:
    """A line for each result that is not as it must be."""
    wrong = [
        f"{name}: {results.get(name, 'missing')}, want {want}"
        for name, want in WANTED.items()
        if results.get(name) != want
    ]
    before = results.get("driver_before")
    drivers = {name: value for name, value in results.items() if name.startswith("driver_")}
    return wrong + [
        f"{name}: {value}, want {before}" for name, value in drivers.items() if value != before or not value
    ]


def main(arguments: list[str]) -> int:
    """0: all results are as they must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="wherry-bypass")
    parser.add_argument("--nic", default="e1000e", choices=("e1000e", "igb"), help="igb: QEMU 8 and later")
    parser.add_argument("--qemu", default="qemu-system-x86_64")
    parser.add_argument("--firmware", default="", help="QEMU's folder of firmware, if it is not the system's")
    parser.add_argument("--work", type=Path, default=Path("build/guest"))
    parser.add_argument("--limit", type=float, default=900, help="seconds")
    options = parser.parse_args(arguments)
    kernel, modules, busybox = fetch(options.work)
    initrd = options.work / "initrd.gz"
    initrd.write_bytes(initramfs(options.program, modules, busybox))
    done = subprocess.run(
        command(options, kernel, initrd),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=options.limit,
        check=False,
    )
    (options.work / f"{options.nic}.log").write_text(done.stdout + done.stderr)
    results = dict(re.findall(r"^RESULT (\S+) ?(.*?)\s*$", done.stdout, re.MULTILINE))
    for name, value in results.items():
        print(f"{name:20} {value}")
    wrong = judge(results)
    for line in wrong:
        print(f"WRONG {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
