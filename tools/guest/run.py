# SPDX-License-Identifier: Apache-2.0
"""Tests `wherry-bypass` in a Debian guest: a real kernel, VFIO, an IOMMU, a switch, QEMU's NIC, and our core.

The guest has QEMU's e1000e and the Verilated bypass core below one PCIe switch. The program takes the NIC from its
driver, moves frames, and hands the NIC's rings to the card. The card then answers frames from the cable, also while the
program is stopped. The program returns the NIC, and the driver answers ping. Then the program is killed in further
turns, and recovery is checked.

    python tools/guest/run.py [--build build/release] [--frames 1000] [--json FILE]

Needs qemu-system-x86 and Debian's apt-get. With apt-get it fetches a kernel and busybox-static (71 MB) into --work.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import parts

HERE = Path(__file__).resolve().parent
MODULES = ["irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci", "e1000e"]

UPS = ("up", "up_in_place", "up_to_kill", "up_again")
MOMENTS = ("recorded", "bound", "mastering")
DOWNS = ("down", "down_killed", "down_again", *(f"down_{moment}" for moment in MOMENTS))
ECHOES = ("echo_running", "echo_stopped", "echo_continued", "echo_in_place", "echo_again")
WANTED = {
    "probe": "0",
    "move": "0",
    "status": "0",
    "stopped_state": "T",
    "stopped_ticks": "0",
    "tx_written_back": "",
    "faults": "0",
    **{f"ping_{when}": "0" for when in ("before", "down", "killed", "last")},
    **dict.fromkeys(UPS + DOWNS, "0"),
    **{f"at_{moment}": "0" for moment in MOMENTS},
    **{f"{who}_killed": "vfio-pci" for who in ("driver", "card")},
    **{f"card_{when}": "" for when in ("before", "move", *DOWNS)},
}
"""The expected values. Every other driver_* value must equal driver_before. Counters with value 0 are not
shown."""


def judge(report: dict[str, Any], frames: int) -> list[str]:
    """A line for each result that differs from the expected one."""
    results: dict[str, str] = report["results"]
    wanted = dict(WANTED)
    before = results.get("driver_before")
    wanted |= {f"driver_{when}": before or "a driver" for when in ("before", "move", *DOWNS)}
    # The card counted the frames on the cable since `up`, without the pre-flight test.
    wanted |= {name: str(3 * frames) for name in ("rx_frames", "tx_done")}
    wrong = [
        f"{name}: {results.get(name, 'missing')!r}, want {want!r}"
        for name, want in wanted.items()
        if results.get(name) != want
    ]
    turns = {turn["name"]: turn for turn in report["turns"]}
    for name in ECHOES:
        turn = turns.get(name, {})
        have = [turn.get(key) for key in ("sent", "returned", "wrong", "lost")]
        if have != [frames, frames, 0, 0]:
            wrong.append(f"{name}: sent, returned, wrong, lost are {have}, want {[frames, frames, 0, 0]}")
    wrong += [f"{name}: not reached" for name in ("hold", "let_go", "release") if name not in turns]
    wrong += [f"{name}: {turn['uninvited']} frames came out" for name, turn in turns.items() if turn["uninvited"]]
    if report["mapped_after_down"] or report["tails_faulted"]:
        wrong.append("the card's tail writes: faults, or a mapping that outlived `down`")
    return wrong


def figures(report: dict[str, Any], options: argparse.Namespace, kernel: Path) -> dict[str, Any]:
    """The figures that `wherry bench bypass` reads, and the conditions of their measurement."""
    turns = {turn["name"]: turn for turn in report["turns"]}
    marks = report["marks"]
    qemu = subprocess.run([options.qemu, "--version"], capture_output=True, text=True, check=True).stdout
    wrong = judge(report, options.frames)
    return {
        "program": "tools/guest/run.py",
        "good": not wrong,
        "guest_setup_s": round(marks["up_end"] - marks["up_begin"], 3),
        "guest_boot_s": round(marks["boot"], 3),
        "guest_frames_while_stopped": turns["echo_stopped"]["returned"],
        "guest_frames_wrong": sum(turn["wrong"] + turn["lost"] + turn["uninvited"] for turn in report["turns"]),
        "guest_frames": sum(turns[name]["returned"] for name in ECHOES),
        "guest_frames_per_second": round(turns["echo_stopped"]["returned"] / turns["echo_stopped"]["seconds"], 1),
        "how": {
            "qemu": qemu.splitlines()[0],
            "processor": "TCG, no KVM",
            "iommu": "intel-iommu",
            "kernel": kernel.name.removeprefix("vmlinuz-"),
            "nic": "QEMU's e1000e (82574)",
            "card": "Verilated core behind x-pci-proxy-dev; its tail writes by qtest, by the guest's IOMMU tables",
        },
        "wrong": wrong,
        **report,
    }


def main(arguments: list[str]) -> int:
    """Runs the guest; returns 0 if all results are as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"), help="with wherry-bypass, bypass_guest")
    parser.add_argument("--frames", type=int, default=1000, help="in each of the five turns")
    parser.add_argument("--seed", type=int, default=1, help="of the frames")
    parser.add_argument("--qemu", default="qemu-system-x86_64")
    parser.add_argument("--work", type=Path, default=Path("build/guest"))
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    try:
        debian = parts.fetch(options.work)
    except parts.Lacking as lacking:
        print(f"guest: {lacking}", file=sys.stderr)
        return parts.LACKING
    initrd, raw, log = (options.work / name for name in ("initrd.gz", "report.json", "console.log"))
    modules = parts.with_dependencies(MODULES, debian.modules)
    init = (HERE / "init.sh").read_text().replace("@MODULES@", " ".join(path.stem for path in modules))
    program = options.build / "src" / "wherry-bypass"
    initrd.write_bytes(parts.initramfs(debian.busybox, init, modules, [program]))
    line = [
        options.build / "sim" / "qemu" / "bypass_guest",
        "--kernel",
        debian.kernel,
        "--initrd",
        initrd,
        "--json",
        raw,
    ]
    line += ["--frames", str(options.frames), "--seed", str(options.seed), "--qemu", options.qemu]
    with log.open("w") as out:
        done = subprocess.run(line, stdout=out, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        print("\n".join(log.read_text(errors="replace").splitlines()[-25:]), file=sys.stderr)
        print(f"guest: bypass_guest has ended with status {done.returncode}; its console is in {log}", file=sys.stderr)
        return 1
    found = figures(json.loads(raw.read_text()), options, debian.kernel)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    for turn in found["turns"]:
        print(f"{turn['name']:16} {turn['sent']:5} sent, {turn['returned']:5} returned, {turn['seconds']:6.1f} s")
    for name in ("guest_setup_s", "guest_boot_s", "guest_frames_while_stopped", "guest_frames_wrong"):
        print(f"{name:28} {found[name]}")
    for text in found["wrong"]:
        print(f"WRONG {text}")
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
