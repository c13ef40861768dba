# SPDX-License-Identifier: Apache-2.0
"""Writes Wherry's figure beside each published value. With --check it only reports whether the page exists and is
current.

It reads spec/published/*.csv (the papers' values), spec/fidelity.toml (our figures) and the model of `wherry probe
model`. It writes docs/reference/fidelity.md and python/wherry/probe/model/published.json.

    tools/fidelity.py [--check | --record BENCH.json]

--record stores the simulated figures from the JSON file of `wherry bench bypass` or `wherry bench probe`.
"""

import csv
import fnmatch
import json
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fidelity_page

from wherry.probe.model import simulated
from wherry.probe.model.memory_access import QUANTITIES
from wherry.probe.model.parameters import stored
from wherry.probe.model.rows import Row, figures, rows

ROOT = Path(__file__).resolve().parent.parent
TABLES = ("memory_access", "buddy", "host_bypassing", "replication", "sdms")
MODELLED = ("ma", "hb", "rep")
"""Papers whose bandwidths and latencies get a row of the model."""
UNITS = ("GB/s", "MB/s", "TB/s", "Gbit/s", "ns", "us", "ms", "s")
VERDICTS = ("reproduced", "modelled", "used", "not yet", "not here", "background", "no number")
SOURCES = ("bench/**/*.[ch]pp", "sim/**/*.[ch]pp", "python/wherry/*/bench/*.py", "docs/reference/bench-*.md")
"""Files that contain the names of bars and experiments."""


class FidelityError(Exception):
    """spec/fidelity.toml has a wrong entry."""


@dataclass(frozen=True)
class Entry:
    """Our result for one or more rows of the papers' tables."""

    rows: tuple[str, ...]
    verdict: str
    by: str
    why: str


def read_tables(root: Path) -> dict[str, list[dict[str, str]]]:
    """The published values, by table."""
    tables = {}
    for table in TABLES:
        with (root / "spec" / "published" / f"{table}.csv").open(newline="", encoding="utf-8") as file:
            tables[table] = list(csv.DictReader(file))
    return tables


def read_entries(root: Path) -> list[Entry]:
    """Of spec/fidelity.toml. Raises FidelityError."""
    document = tomllib.loads((root / "spec" / "fidelity.toml").read_text(encoding="utf-8"))
    found = []
    for entry in document["entry"]:
        where = f"spec/fidelity.toml: {entry['rows'][0]}"
        if unknown := set(entry) - {"rows", "verdict", "by", "why"}:
            raise FidelityError(f"{where}: unknown key {', '.join(sorted(unknown))}")
        one = Entry(tuple(entry["rows"]), entry["verdict"], entry.get("by", ""), entry.get("why", ""))
        if one.verdict not in VERDICTS[:-1]:
            raise FidelityError(f"{where}: verdict {one.verdict!r}; one of {', '.join(VERDICTS[:-1])} is expected")
        if one.verdict in ("reproduced", "used") and not one.by:
            raise FidelityError(f"{where}: {one.verdict}, but `by` is missing")
        if one.verdict in ("not yet", "not here", "background", "reproduced") and not one.why:
            raise FidelityError(f"{where}: {one.verdict}, but `why` is missing")
        found.append(one)
    return found


def status_of(row: dict[str, str]) -> str:
    """Why the paper has no number; empty if it has one."""
    status = re.search(r"(?:^|;)status=([^;]*)", row["conditions"])
    return status[1].replace("_", " ") if status else ""


def assign(ids: Iterable[str], entries: list[Entry]) -> dict[str, Entry]:
    """The entry of each row that has a number. Raises FidelityError if a row has no entry or two, or an entry has no
    row."""
    exact: dict[str, Entry] = {}
    for entry in entries:
        for name in entry.rows:
            if not set(name) & set("*?["):
                if name in exact:
                    raise FidelityError(f"spec/fidelity.toml: {name} is named twice")
                exact[name] = entry
    patterns = [(name, entry) for entry in entries for name in entry.rows if set(name) & set("*?[")]
    used: set[str] = set()
    found = {}
    for identifier in ids:
        matching = [(name, entry) for name, entry in patterns if fnmatch.fnmatchcase(identifier, name)]
        used |= {name for name, _ in matching}
        if identifier in exact:
            used.add(identifier)
            found[identifier] = exact[identifier]
        elif len(matching) == 1:
            found[identifier] = matching[0][1]
        else:
            how = f"named by {' and '.join(name for name, _ in matching)}" if matching else "named by no entry"
            raise FidelityError(f"spec/fidelity.toml: {identifier} is {how}")
    if idle := {*exact, *(name for name, _ in patterns)} - used:
        raise FidelityError(f"spec/fidelity.toml: no row is called {', '.join(sorted(idle))}")
    return found


def check_references(root: Path, entries: list[Entry]) -> None:
    """Checks that the bars, experiments and files in `by` exist. Raises FidelityError if one does not."""
    text = "\n".join(path.read_text(encoding="utf-8") for pattern in SOURCES for path in sorted(root.glob(pattern)))
    words = set(re.findall(r"\w+", text))
    for entry in entries:
        bench = re.fullmatch(r"bench (\w+): (.+)", entry.by)
        if bench:
            if not (root / "python" / "wherry" / bench[1] / "bench").is_dir():
                raise FidelityError(f"spec/fidelity.toml: there is no `wherry bench {bench[1]}`")
            for name in bench[2].split(", "):
                if name not in words:
                    raise FidelityError(f"spec/fidelity.toml: no bar or experiment is called {name}")
        elif entry.by and not entry.by.startswith("wherry ") and not (root / entry.by).is_file():
            raise FidelityError(f"spec/fidelity.toml: {entry.by} is neither a file nor 'bench NAME: ...'")


def record(row: dict[str, str], verdict: str, why: str) -> dict[str, Any]:
    """A row in the form of published.json."""
    found: dict[str, Any] = {"id": row["id"], "quantity": row["quantity"]}
    found |= {key: float(row[key]) for key in ("value", "low", "high") if row[key]}
    return found | {
        "unit": row["unit"],
        "conditions": row["conditions"],
        "source": row["source"],
        "kind": row["kind"],
        "verdict": verdict,
        "why": why,
    }


def why_of(entry: Entry) -> str:
    """The text for a row that the model does not compute."""
    return f"{entry.by}. {entry.why}" if entry.by else entry.why


def generated(root: Path) -> dict[str, str]:
    """Every generated file, by its path. Raises FidelityError."""
    tables, entries = read_tables(root), read_entries(root)
    every = [row for table in TABLES for row in tables[table]]
    silent = {row["id"]: status_of(row) for row in every if status_of(row)}
    of = assign([row["id"] for row in every if row["id"] not in silent], entries)
    check_references(root, entries)
    known = figures(stored(), simulated.recorded())
    if lost := set(known) - set(of):
        raise FidelityError(f"the model has figures of rows that are not published: {', '.join(sorted(lost))}")
    restated = {other for quantity in QUANTITIES for other in quantity.ids[1:]}
    for identifier, entry in of.items():
        if (entry.verdict == "modelled") != (identifier in known or identifier in restated):
            how = "the model has no figure of it" if entry.verdict == "modelled" else "but the model has a figure of it"
            raise FidelityError(f"spec/fidelity.toml: {identifier} is {entry.verdict}: {how}")
    published = {
        row["id"]: record(row, of[row["id"]].verdict, why_of(of[row["id"]]))
        for row in every
        if row["id"] in of and (of[row["id"]].verdict == "modelled"
                                or (row["id"].partition("_")[0] in MODELLED and row["unit"] in UNITS))
    }  # fmt: skip
    made = rows(stored(), published=published)
    by_id: dict[str, Row] = {identifier: row for row in made for identifier in row.ids}
    values = ",\n".join(f"    {json.dumps(value)}" for value in published.values())
    note = "written by tools/fidelity.py from spec/published and spec/fidelity.toml"
    return {
        "python/wherry/probe/model/published.json": f'{{\n  "note": "{note}",\n  "values": [\n{values}\n  ]\n}}\n',
        "docs/reference/fidelity.md": fidelity_page.page(tables, of, silent, by_id),
    }


def main(words: list[str]) -> int:
    """Writes or checks the files. Returns 0, or 1 after printing the stale files or the error."""
    if words[:1] == ["--record"] and len(words) == 2:
        results = json.loads(Path(words[1]).read_text(encoding="utf-8"))["results"]
        if designs := simulated.from_designs(results):
            text = simulated.document_of(designs, "`wherry bench probe --only designs`")
            simulated.DESIGNS_RECORDED.write_text(text, encoding="utf-8")
            words = []
        found = simulated.recorded() if simulated.RECORDED.is_file() else {}
        found |= simulated.from_bypass(results) | simulated.from_probe(results)
        text = simulated.document_of(found, "`wherry bench bypass` and `wherry bench probe`")
        simulated.RECORDED.write_text(text, encoding="utf-8")
    elif words not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        files = generated(ROOT)
    except FidelityError as error:
        print(error, file=sys.stderr)
        return 1
    stale = [path for path, text in files.items() if not (ROOT / path).exists() or (ROOT / path).read_text() != text]
    for path in stale:
        if words == ["--check"]:
            print(f"{path} is not what spec/ says: run .venv/bin/python tools/fidelity.py", file=sys.stderr)
        else:
            (ROOT / path).write_text(files[path], encoding="utf-8")
            print(f"wrote {path}")
    return 1 if stale and words == ["--check"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
