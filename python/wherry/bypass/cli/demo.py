# SPDX-License-Identifier: Apache-2.0
"""`wherry bypass demo`: a NIC answers requests, and the screen shows its counters."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.table import Table

from wherry.cli import out, progress

if TYPE_CHECKING:
    from rich.live import Live

    from wherry.bypass.demo import Demo, DemoOptions, Report

MS = 1e6
"""Nanoseconds."""


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the demonstration like Ctrl-C: the host gives the NIC back."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def demo(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Behind `--`: a program that runs where the NIC is reached. The demonstration ends with it.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0, max=10**6, help="End so long after everything is set up. Default: Ctrl-C ends it."),
    ] = None,
    core: Annotated[
        str, typer.Option(metavar="rtl|twin", help="The card: its simulated RTL, or the RTL's software twin.")
    ] = "rtl",
    nic: Annotated[str, typer.Option(metavar="e1000e|igb", help="QEMU's NIC. igb takes QEMU 8 or newer.")] = "e1000e",
    qemu: Annotated[str, typer.Option(metavar="PATH", help="QEMU. Default: qemu-system-x86_64 on $PATH.")] = "",
    here: Annotated[
        bool,
        typer.Option(
            "--here", help="The TAP device is in this machine's own network, for every program to use. Takes root."
        ),
    ] = False,
    host_runs: Annotated[
        bool, typer.Option("--host-runs", help="Do not stop the host's process once everything is set up.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the last figures, or why there are none, as one JSON object, and nothing else."
        ),
    ] = False,
) -> None:
    """Show a commodity NIC that answers ping and key-value requests. The RTL of the card drives it, without the host.

    QEMU simulates the NIC. A TAP device connects it to this machine's kernel. The NIC writes received frames into the
    simulated card; the card answers them, and the NIC fetches the answers from the card. A separate process, the host,
    sets up the NIC, the card and the kv core. Then the host is stopped (SIGSTOP). The screen shows that it accesses no
    register and uses no CPU time while the card answers frames. The simulation and QEMU use CPU time, because they
    replace the hardware.

    The TAP device is in a separate network namespace, so the machine's own network does not change. This needs root, or
    permission to create user namespaces. The command removes everything at its end, however it ends, except processes
    that COMMAND starts in their own session.

    Examples:

      wherry bypass demo

      wherry bypass demo -- ping -c 3 10.90.0.2

      wherry bypass demo -- sh -c 'wherry kv put greeting hello && wherry kv get greeting'

      wherry bypass demo --core twin --seconds 3 --json
    """
    for option, value, values in (("--core", core, ("rtl", "twin")), ("--nic", nic, ("e1000e", "igb"))):
        if value not in values:
            raise typer.BadParameter(f"{option} {value}: want {' or '.join(values)}")
    from wherry.bypass.answers import answer, failing_answer
    from wherry.bypass.demo import DemoOptions

    options = DemoOptions(nic=nic, core=core, qemu=qemu, here=here, host_runs=host_runs)
    with failing_answer("demo", as_json):
        status, final = _demonstrate(options, list(command or ()), seconds, as_json)
    if as_json:
        error = f"the command ended with status {status}" if status else None
        print(json.dumps(answer("demo", status, error) | (final or {})))
    elif final is not None:
        out().print(_verdict(final), markup=False)
    raise typer.Exit(status)


def _demonstrate(
    options: DemoOptions, command: list[str], seconds: float | None, silent: bool
) -> tuple[int, Report | None]:
    """Returns the exit status, and the last report, if there is one."""
    from wherry.bypass.demo import Demo

    status = 0
    with _ended_by_signals(), Demo(options) as running:
        last: Report | None = None
        try:
            for report in _shown(running, command, seconds, silent):
                last = report
        except KeyboardInterrupt:
            status = 130 if last is not None and command else 0
        status = running.status if running.status is not None else status
        return status, running.end() or last


def _shown(running: Demo, command: list[str], seconds: float | None, silent: bool) -> Iterator[Report]:
    """Yields the reports and shows each on the screen. The first report starts the command."""
    live: Live | None = None
    before: Report | None = None
    try:
        for report in running.reports(seconds):
            if before is None:
                if not silent:
                    _introduce(running, report, bool(command))
                    if sys.stdout.isatty() and not command:
                        from rich.live import Live

                        live = Live(console=out(), auto_refresh=False)
                        live.start()
                if command:
                    running.run(command, sys.stderr.fileno() if silent else None)
            if live is not None:
                live.update(_table(report, before), refresh=True)
            elif not silent and (before is None or before["frames_in"] != report["frames_in"]):
                progress().print(_line(report), markup=False)
            before = report
            yield report
    finally:
        if live is not None:
            live.stop()


def _introduce(running: Demo, report: Report, with_command: bool) -> None:
    from wherry.bypass.demo import NIC

    host = report["host"]
    card = "its RTL, simulated" if report["core"] == "rtl" else "the software twin of its RTL"
    enter = shlex.join(running.enter) + " " if running.enter else ""
    stopped = ", and is stopped (SIGSTOP)" if host["state"] == "T" else ""
    lines = [
        f"NIC    {report['nic']} of {report['qemu']}, pid {report['qemu_pid']}",
        f"card   {card}, pid {report['pid']}; {NIC} is behind it",
        f"host   pid {host['pid']} set both up: {host['setup_accesses']} register accesses, "
        f"{host['setup_cpu_ns'] / MS:.1f} ms of CPU time{stopped}",
    ]
    if not with_command:
        lines += [
            f"try   {enter}ping {NIC}",
            f"      {enter}wherry kv put greeting hello --cluster {running.cluster}",
            f"      {enter}wherry kv get greeting --cluster {running.cluster}",
            "end   Ctrl-C",
        ]
    for line in lines:
        out().print(line, markup=False)
    sys.stdout.flush()


def _since(report: Report) -> tuple[int, float]:
    """What the host has used since the end of its set-up: register accesses, and milliseconds of CPU time."""
    host = report["host"]
    return host["accesses"] - host["setup_accesses"], (host["cpu_ns"] - host["setup_cpu_ns"]) / MS


def _rows(report: Report) -> list[tuple[str, str, float]]:
    answered, card = report["answered"], report["card"]
    return [
        ("frames from the NIC to the card", "frames_in", report["frames_in"]),
        ("answered: who has (ARP)", "arp", answered["arp"]),
        ("answered: ping", "ping", answered["ping"]),
        ("answered: key-value requests", "kv", answered["kv"]),
        ("frames from the card to the NIC", "frames_out", report["frames_out"]),
        ("tail writes, card to NIC", "tail_writes", report["tail_writes"]),
        ("reads of the card by the NIC", "dma_reads", report["dma_reads"]),
        ("writes of the card by the NIC", "dma_writes", report["dma_writes"]),
        ("the card's counter rx_frames", "rx_frames", card["rx_frames"]),
        ("the card's counter tx_done", "tx_done", card["tx_done"]),
        ("write-backs of sent frames", "tx_written_back", card["tx_written_back"]),
    ]


def _table(report: Report, before: Report | None) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "so far", "per second"):
        table.add_column(heading, justify="left" if not heading else "right")
    earlier = {name: value for _, name, value in _rows(before)} if before is not None else {}
    span = report["seconds"] - before["seconds"] if before is not None else 0.0
    for text, name, value in _rows(report):
        rate = (value - earlier.get(name, value)) / span if span > 0 else 0.0
        table.add_row(text, f"{value:,}", f"{rate:,.0f}")
    accesses, cpu_ms = _since(report)
    state = "stopped" if report["host"]["state"] == "T" else "runs"
    table.add_row(f"register accesses of the host ({state})", f"{accesses}", "", style="bold")
    table.add_row("CPU time of the host, ms", f"{cpu_ms:.3f}", "", style="bold")
    table.add_row("CPU time of the simulated card, s", f"{report['simulation_cpu_s']:.2f}", "", style="dim")
    table.add_row("CPU time of QEMU, s", f"{report['qemu_cpu_s']:.2f}", "", style="dim")
    return table


def _line(report: Report) -> str:
    answered = report["answered"]
    accesses, cpu_ms = _since(report)
    return (
        f"{report['seconds']:7.1f} s  frames in {report['frames_in']}, out {report['frames_out']}; answered: ARP "
        f"{answered['arp']}, ping {answered['ping']}, kv {answered['kv']}; tail writes {report['tail_writes']}; host: "
        f"{accesses} register accesses, {cpu_ms:.3f} ms of CPU time"
    )


def _verdict(report: Report) -> str:
    accesses, cpu_ms = _since(report)
    return (
        f"{report['frames_in']} frames in, {report['frames_out']} out, {report['tail_writes']} tail writes in "
        f"{report['seconds']:.1f} s; meanwhile the host made {accesses} register accesses, in {cpu_ms:.3f} ms of CPU "
        "time"
    )
