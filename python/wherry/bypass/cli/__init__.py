# SPDX-License-Identifier: Apache-2.0
"""`wherry bypass`: an FPGA card drives a NIC. The host sets up both. After that, the host process can be stopped."""

from __future__ import annotations

import enum
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from wherry.bypass.cli.demo import demo
from wherry.cli import App, JsonFileOption, OnlyOption, check_experiments, into, note, progress, show_bench

bypass_app = App(
    no_args_is_help=True,
    help="An FPGA card drives a commodity NIC by itself: rings and frames lie on the card, and the host is not in the "
    "data path (docs/guide/bypass-host.md)."
    "\n\n[bold]A first look[/bold]\n\n"
    "  wherry bypass probe         NIC, card, the way between them, and what is in the way\n\n"
    "  wherry bypass probe --move  as root: moves frames from the card through the NIC and back\n\n"
    "  wherry bypass up            as root: the card drives the NIC, until Ctrl-C\n\n"
    "  wherry bypass status        what card and NIC count\n\n"
    "  wherry bypass down          the NIC is its kernel driver's again\n\n"
    "  wherry bypass demo          without hardware: a NIC of QEMU answers ping and kv, driven by the card's RTL\n\n"
    "[bold]Exit status[/bold]: 0 done, 1 failed, 2 wrong command line, 3 no such hardware. What is in the way: 10 no "
    "common port, 11 ACS redirect, 12 BAR, 13 IOMMU group, 14 reserved address, 15 no IOMMU. What moved data shows: 20 "
    "reads dead, 21 writes dead, 22 wrong data, 23 tails dead, 24 no loopback, 25 card memory, 26 DMA engine "
    "dead.",
)

NicOption = Annotated[
    str, typer.Option("--nic", metavar="ADDRESS", help="Its PCI address, as 0000:03:00.0. Default: the only one.")
]
CardOption = Annotated[
    str, typer.Option("--card", metavar="ADDRESS", help="Its PCI address. Default: the only Xilinx card with a window.")
]
JsonOption = Annotated[
    bool,
    typer.Option(
        "--json", help="One JSON object, for programs, also when the command fails (docs/guide/bypass-host.md)."
    ),
]
DirectoryOption = Annotated[
    Path, typer.Option("--directory", metavar="DIR", help="Where `up` writes down what it has taken.")
]
DIRECTORY = Path("/run/wherry-bypass")


class Rings(enum.StrEnum):
    """Where rings and frames lie."""

    AUTO = "auto"
    CARD = "card"
    HOST = "host"


def _run(command: str, words: Sequence[str | Path]) -> None:
    """Runs the host's program, which writes the result, and exits with its status. The terminal sends Ctrl-C to the
    program as well."""
    from wherry.bypass import programs
    from wherry.bypass.answers import failing_answer

    with failing_answer(command, "--json" in words):
        sys.stdout.flush()
        process = programs.start_host(command, *words)
    while True:
        try:
            status = process.wait()
            break
        except KeyboardInterrupt:
            process.send_signal(signal.SIGCONT)  # a stopped program handles the terminal's Ctrl-C only after this
    raise typer.Exit(130 if status == -2 else status if status >= 0 else 1)


def _words(nic: str, card: str, directory: Path, as_json: bool) -> list[str | Path]:
    words: list[str | Path] = ["--directory", directory]
    for flag, value in (("--nic", nic), ("--card", card)):
        words += [flag, value] if value else []
    return words + (["--json"] if as_json else [])


def probe(
    nic: NicOption = "",
    card: CardOption = "",
    move: Annotated[
        bool,
        typer.Option("--move", help="Take the NIC from its driver for a second, and move frames through it. Root."),
    ] = False,
    as_json: JsonOption = False,
    directory: DirectoryOption = DIRECTORY,
) -> None:
    """Show the NICs and cards of this machine, the PCIe path between them, and what prevents its use.

    Without root, the effect of ACS is not shown. The command changes the machine only with --move.

    Examples:

      wherry bypass probe

      wherry bypass probe --json | jq .verdict
    """
    _run("probe", [*_words(nic, card, directory, as_json), *(["--move"] if move else [])])


def up(
    nic: NicOption = "",
    card: CardOption = "",
    promiscuous: Annotated[bool, typer.Option("--promiscuous", help="Every frame on the wire.")] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Frames stay in their slots, and are sent from there.")
    ] = False,
    frame_bytes: Annotated[int, typer.Option(min=64, max=9728, help="Longest frame, with FCS.")] = 1518,
    pairs: Annotated[
        int, typer.Option(min=1, max=16, help="Queue pairs: the NIC spreads flows over them, by RSS.")
    ] = 1,
    allow_detour: Annotated[
        bool,
        typer.Option(
            "--allow-detour",
            help="Go on although traffic passes the root complex, if moved data shows that it arrives.",
        ),
    ] = False,
    preflight: Annotated[bool, typer.Option("--preflight/--no-preflight", help="Move data first.")] = True,
    rings: Annotated[
        Rings,
        typer.Option(
            help="Where rings and frames lie. Host: the host's memory; a processor core works for each frame, and the "
            "card needs the DMA engine. Auto: the card, or the host's memory if NIC and card cannot reach each other."
        ),
    ] = Rings.AUTO,
    function: Annotated[
        str,
        typer.Option(
            metavar="none|echo|reflect|filter|generator|checker|elsewhere",
            help="What the card does with frames. Default: what its registers say.",
        ),
    ] = "",
    ip: Annotated[
        str, typer.Option("--ip", metavar="ADDRESS", help="Of echo: the IPv4 address that it answers for.")
    ] = "",
    udp_port: Annotated[int, typer.Option(min=0, max=65535, help="Of echo.")] = 7,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="Of filter, several times: pass or drop, then all, arp, ip, icmp, tcp[:PORT] or udp[:PORT], as in "
            "pass:udp:53. The first that matches decides; a frame that none matches is dropped.",
        ),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="MAC", help="Of generator: the Ethernet address that it sends to.")
    ] = "",
    generated_bytes: Annotated[
        int, typer.Option("--bytes", min=60, max=9728, help="Of a generated frame, without FCS.")
    ] = 60,
    interval: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="From one generated frame to the next, in 1/65536 cycles of 4 ns.")
    ] = 16 * 65536,
    count: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Generated frames. 0: without an end.")] = 0,
    as_json: JsonOption = False,
    directory: DirectoryOption = DIRECTORY,
) -> None:
    """Hand the NIC's rings over to the card. Ctrl-C or `wherry bypass down` returns both to the host.

    The process stays but is idle: it may be stopped (SIGSTOP), and traffic continues. Needs root and an IOMMU. If NIC
    and card cannot reach each other, rings and frames lie in the host's memory. Then the process says so, and must run.

    --function enables the function that is built in behind the card's core, and reads back that it is enabled.

    Examples:

      sudo wherry bypass up --nic 0000:03:00.0 --card 0000:04:00.0

      sudo wherry bypass up --function echo --ip 10.0.0.2

      sudo wherry bypass up --function filter --rule drop:udp:53 --rule pass:ip
    """
    words = _words(nic, card, directory, as_json)
    flags = {"--promiscuous": promiscuous, "--in-place": in_place, "--allow-detour": allow_detour}
    words += [flag for flag, wanted in flags.items() if wanted]
    words += ["--frame-bytes", str(frame_bytes), "--pairs", str(pairs)] + ([] if preflight else ["--no-preflight"])
    words += ["--rings", rings.value]
    for name, value in (("--function", function), ("--ip", ip), ("--to", to)):
        words += [name, value] if value else []
    words += [word for rule in rules or () for word in ("--rule", rule)]
    numbers = {"--udp-port": udp_port, "--bytes": generated_bytes, "--interval": interval, "--count": count}
    words += [word for name, number in numbers.items() for word in (name, str(number))]
    _run("up", words)


def status(nic: NicOption = "", as_json: JsonOption = False, directory: DirectoryOption = DIRECTORY) -> None:
    """Print the counters of the card, and the NIC's link.

    Example:

      wherry bypass status --json
    """
    _run("status", _words(nic, "", directory, as_json))


def down(nic: NicOption = "", as_json: JsonOption = False, directory: DirectoryOption = DIRECTORY) -> None:
    """Give the NIC back to its kernel driver. This also works after `up` was killed.

    Example:

      wherry bypass down
    """
    _run("down", _words(nic, "", directory, as_json))


def bench(
    json_file: JsonFileOption,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer packets: a look, not a measurement.")] = False,
    only: OnlyOption = None,
    guest: Annotated[
        Path | None, typer.Option("--guest", metavar="FILE", help="Figures of tools/guest/run.py --json FILE.")
    ] = None,
    kv: Annotated[
        Path | None, typer.Option("--kv", metavar="FILE", help="Figures of the kv core behind the bypass core.")
    ] = None,
) -> None:
    """Evaluate the bypass core, an FPGA design that drives a NIC. The benchmark simulates our RTL, compares it with
    models of paper 002's core, NIC and baselines, runs it behind QEMU's NICs, and reports its resources. It does not
    use PCIe hardware. It skips experiments that cannot run on this machine, and names them. A missed target is a
    result: the exit status is 0.

    Examples:

      wherry bench bypass --json build/bench-bypass.json

      wherry bench bypass --json /tmp/quick.json --quick --only batching --only resources
    """
    from wherry.bypass.bench.run import run
    from wherry.bypass.bench.schema import EXPERIMENTS

    experiments = check_experiments(only, EXPERIMENTS)
    with into(json_file):
        result = run(json_file, quick=quick, only=experiments, guest=guest, kv=kv, progress=progress())
    show_bench(result, json_file, quick=quick, only=experiments)
    for name, why in result.not_measured.items():
        note(f"{name}: not measured: {why}")
    if result.not_run:
        note(f"bars that were not run, and so not met: {', '.join(result.not_run)}")


def add_to(app: App, benches: App) -> None:
    """Adds the group `bypass` to `app`, and the benchmark to `wherry bench`."""
    benches.command("bypass")(bench)
    for command in (probe, up, status, down, demo):
        bypass_app.command(command.__name__)(command)
    app.add_typer(bypass_app, name="bypass")
