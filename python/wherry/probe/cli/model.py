# SPDX-License-Identifier: Apache-2.0
"""`wherry probe model`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from wherry.cli import App, into, note, out
from wherry.errors import Error

if TYPE_CHECKING:
    from wherry.probe.model import HeldOut, Parameters, Row

AGREE = 1e-6
"""A repeated fit may differ from the stored one by this relative difference, because of rounding."""


def model(
    all_rows: Annotated[
        bool, typer.Option("--all", help="Every published bandwidth and latency of papers 000, 002 and 003.")
    ] = False,
    repeat_fit: Annotated[
        bool, typer.Option("--fit", help="Repeat the fit. Status 1 if the stored numbers are not what comes out.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="With --fit: store what comes out, in this checkout.")] = False,
    link: Annotated[
        str, typer.Option(metavar="LINK", help="Only what a PCIe link carries, as 'gen4 x8'. Nothing in it is fitted.")
    ] = "",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all rows as JSON; wherry report draws them.")
    ] = None,
) -> None:
    """Print the predictions of the analytic model of host-card paths, with published values and errors.

    The model consists of arithmetic on PCIe packets, a closed queueing network for channels that share a link, and six
    numbers that are fitted to seven values of paper 000. Each row says whether it was fitted, predicted or simulated.
    The command measures nothing.

    Examples:

      wherry probe model

      wherry probe model --fit

      wherry probe model --link 'gen4 x16'
    """
    if write and not repeat_fit:
        raise typer.BadParameter("--write stores what --fit finds: give both", param_hint="--write")
    if link:
        _show_link(link)
        return
    if repeat_fit:
        _fit(write)
        return
    from wherry.probe.model import document, everything, stored

    parameters = stored()
    found, others = everything(parameters)
    _show(parameters, found, others, all_rows)
    if json_file is not None:
        from wherry.probe.model.records import write as write_json

        with into(json_file):
            write_json(json_file, document(parameters, found, others))
        note(f"results: {json_file}; `wherry report {json_file}` draws them")


def _fit(write: bool) -> None:
    """Repeats the fit and prints its numbers beside the stored ones. Raises Error if they differ and `write` is
    false."""
    from dataclasses import asdict

    from wherry.probe.model import fit, fitted_to, stored
    from wherry.probe.model.parameters import STORED, document

    targets = fitted_to()
    new, old = asdict(fit(targets)), asdict(stored())
    table = _table("Fitted numbers", ("number", "fit", "stored", "difference"))
    for name, value in new.items():
        table.add_row(name, f"{value:.6g}", f"{old[name]:.6g}", f"{value / old[name] - 1:+.1e}")
    out().print(table)
    out().print(f"fitted to {', '.join(targets)}", markup=False)
    if write:
        from wherry.probe.model import Parameters

        rounded = Parameters(**{name: float(f"{value:.9g}") for name, value in new.items()})
        shown = {name: [target.low, target.high] for name, target in targets.items()}
        STORED.write_text(document(rounded, shown), encoding="utf-8")
        note(f"wrote {STORED}; tools/fidelity.py writes docs/reference/fidelity.md anew")
    elif any(abs(value / old[name] - 1) > AGREE for name, value in new.items()):
        raise Error("the stored numbers are not those of the fit: `wherry probe model --fit --write` stores them")


def _table(title: str, columns: Sequence[str], text: Sequence[str] = ()) -> Table:
    """A table. All columns except the first and those in `text` contain numbers."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 or name in text else "right")
    return table


def _show_link(text: str) -> None:
    from wherry.probe.model.link import parse

    try:
        link = parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--link") from None
    columns = ("bytes a packet", "card writes (C2H)", "card reads (H2C), 512 a request", "4096 a request")
    table = _table(f"{link}: {link.raw():.3f} GB/s after the encoding; payload one way, GB/s", columns)
    for size in (64, 128, 256, 512):
        rates = (link.writes(size), link.reads(size), link.reads(size, 4096))
        table.add_row(str(size), *(f"{rate:.2f}" for rate in rates))
    out().print(table)


def _show(parameters: Parameters, found: Sequence[Row], others: Sequence[HeldOut], all_rows: bool) -> None:
    from wherry.probe.model import bars, beside, constants
    from wherry.probe.model.rows import USES, bandwidths

    table = _table("Constants", ("constant", "value", "mark", "source"), ("value", "mark", "source"))
    for constant in constants(parameters):
        table.add_row(constant.name, constant.value, constant.mark, escape(constant.source))
    out().print(table)
    out().print()
    thirteen = bandwidths(found)
    _print_rows("The 13 bandwidths of paper 000", thirteen)
    if all_rows:
        _print_rows("Other bandwidths and latencies", [row for row in found if row not in thirteen])
    columns = ("value", "measured", "model", "error", "mark", "source")
    table = _table("Held out: measured by others, seen by no fit", columns, ("mark", "source"))
    for row in others:
        mark = "bound" if row.bound else "missed" if row.miss else "predicted"
        table.add_row(row.name, f"{row.measured:.2f} {row.unit}", f"{row.model:.2f}", f"{100 * row.error:+.1f} %", mark,
                      escape(row.address.replace("https://", "")))  # fmt: skip
    out().print(table)
    for row in others:
        if row.miss:
            out().print(f"missed: {row.name}: {row.miss}", markup=False)
    out().print()
    table = _table("Bars", ("bar", "value", "target", "verdict", "uses", "beside it"), ("verdict", "uses", "beside it"))
    for name, bar in bars(found, others).items():
        verdict = "[green]met[/green]" if bar["pass"] else "[red]missed[/red]"
        value = f"{bar['value']:.3g} {bar['unit']}".strip()
        table.add_row(name, value, bar["target"], verdict, USES[name], escape(beside(name, found, others)))
    out().print(table)


def _print_rows(title: str, rows: Sequence[Row]) -> None:
    columns = ("published value", "published", "unit", "ours", "off middle", "outside", "mark", "how")
    table = _table(title, columns, ("unit", "mark", "how"))
    for row in rows:
        figure = row.figure
        if figure is None:
            table.add_row(row.ids[0], str(row.published), row.unit, "", "", "", row.verdict, escape(row.why))
            continue
        ours = f"{figure.low:.4g}" if figure.low == figure.high else f"{figure.low:.4g} to {figure.high:.4g}"
        errors = [f"{round(100 * share, 1) + 0.0:+.1f} %" if share is not None else ""
                  for share in (row.off_middle, row.outside)]  # fmt: skip
        how = f"{figure.provenance}: {figure.how}; {figure.note}".removesuffix("; ")
        table.add_row(row.ids[0], str(row.published), row.unit, ours, *errors, figure.mark, escape(how))
    out().print(table)
    out().print()


def add_model(group: App) -> None:
    """Adds the command `model` to `group`, which is `wherry probe`."""
    group.command("model")(model)
