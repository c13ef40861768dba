# SPDX-License-Identifier: Apache-2.0
"""docs/reference/fidelity.md and spec/fidelity.toml are current and complete. Wrong entries are refused."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import fidelity
import pytest

from wherry.bench import published_values
from wherry.errors import NotFound
from wherry.probe.model import simulated
from wherry.system import built

ROOT = Path(__file__).resolve().parents[2]
TABLES = {"memory_access": 91, "buddy": 137, "host_bypassing": 106, "replication": 463, "sdms": 83}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the checkout in which a test may damage spec/."""
    shutil.copytree(ROOT / "spec", tmp_path / "spec")
    for folder in ("bench", "sim", "python", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    return tmp_path


def spoil(root: Path, old: str, new: str) -> None:
    file = root / "spec" / "fidelity.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_what_is_committed_is_fresh() -> None:
    command = [sys.executable, "tools/fidelity.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_published_value_stands_once_on_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "fidelity.md").read_text()
    shown = Counter(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    ids = []
    for table, count in TABLES.items():
        with (ROOT / "spec" / "published" / f"{table}.csv").open(newline="") as file:
            of_table = [row["id"] for row in csv.DictReader(file)]
        assert len(of_table) == count
        ids += of_table
    assert len(ids) == 880
    assert shown == Counter(ids)


def test_the_counts_of_the_page_are_those_of_its_rows() -> None:
    page = (ROOT / "docs" / "reference" / "fidelity.md").read_text()
    counted: Counter[str] = Counter()
    for section in page.split("\n### ")[1:]:
        rows = re.findall(r"^\| `\w+` \|.*$", section, re.MULTILINE)
        shared = re.search(r"^(?:All|Where a row says nothing): \*\*([a-z ]+)\*\*", section, re.MULTILINE)
        for row in rows:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)]
            verdict = cells[4] if len(cells) > 5 else ""
            counted[verdict or (shared[1] if shared else "none")] += 1
    total = re.search(r"^\| all \| (.+) \|$", page, re.MULTILINE)
    assert total is not None
    assert [int(cell) for cell in total[1].split(" | ")] == [*(counted[verdict] for verdict in fidelity.VERDICTS), 880]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"ma_ddr_saturation_size"', '"ma_ddr_saturation_sizes"', "ma_ddr_saturation_size is named by no entry"),
        ('"ma_link_*"', '"ma_link_*", "ma_lin*"', r"is named by ma_link_\* and ma_lin\*"),
        ('"ma_ddr_saturation_size"', '"ma_ddr_saturation_size", "ma_no_such_row"', "no row is called ma_no_such_row"),
        ("bench route: sweeps", "bench route: sweeps, no_such_bar", "no bar or experiment is called no_such_bar"),
        ("bench route: sweeps", "bench carriage: sweeps", "there is no `wherry bench carriage`"),
        ('by = "sim/hbm.hpp"', 'by = "sim/no_such_file.hpp"', "no_such_file.hpp is neither a file"),
        ('verdict = "not yet"', 'verdict = "modelled"', "ma_ddr_saturation_size is modelled: the model has no figure"),
        ('verdict = "modelled"\nwhy = "The four', 'verdict = "not yet"\nwhy = "The four', "but the model has a figure"),
        ('verdict = "not yet"', 'verdict = "soon"', "verdict 'soon'"),
        ('verdict = "not yet"', 'verdict = "reproduced"', "`by` is missing"),
        ('why = "What buses', 'whereas = "What buses', "unknown key whereas"),
    ],
)
def test_what_is_not_so_is_refused(copy: Path, old: str, new: str, message: str) -> None:
    fidelity.generated(copy)
    spoil(copy, old, new)
    with pytest.raises(fidelity.FidelityError, match=message):
        fidelity.generated(copy)


def test_a_change_of_a_verdict_or_of_a_value_makes_the_page_stale(copy: Path) -> None:
    before = fidelity.generated(copy)
    spoil(copy, "The model's size curve saturates later", "Another reason")
    after = fidelity.generated(copy)
    assert after["docs/reference/fidelity.md"] != before["docs/reference/fidelity.md"]
    table = copy / "spec" / "published" / "host_bypassing.csv"
    table.write_text(table.read_text().replace(",7.99,us,", ",6.99,us,", 1))
    worse = fidelity.generated(copy)
    row = re.search(r"^\| `hb_s3_latency_avg` .*$", worse["docs/reference/fidelity.md"], re.MULTILINE)
    assert row is not None
    assert "error +13.5 %" in row[0]  # 7.933 us of 6.99


@pytest.mark.parametrize(
    ("of", "table"),
    [("move", "sdms"), ("route", "buddy"), ("kv", "replication"), ("bypass", "host_bypassing")],
)
def test_services_have_the_same_published_values(of: str, table: str) -> None:
    with (ROOT / "spec" / "published" / f"{table}.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    for identifier, entry in published_values(of).items():
        for key in ("value", "low", "high"):
            assert (float(rows[identifier][key]) if rows[identifier][key] else None) == entry.get(key), identifier


@pytest.mark.may_lack  # the published tables may be absent: they are not part of the project
@pytest.mark.parametrize("table", list(TABLES))
def test_the_projects_copy_is_that_of_the_workplace(table: str) -> None:
    found = next((path for place in (ROOT, ROOT.parent)
                  if (path := place / "shared" / "published" / f"{table}.csv").is_file()), None)  # fmt: skip
    if found is None:
        pytest.skip(f"shared/published/{table}.csv is not beside this checkout")
    assert found.read_bytes() == (ROOT / "spec" / "published" / f"{table}.csv").read_bytes()


def test_recorded_figures_are_what_the_simulation_says(tmp_path: Path) -> None:
    """Simulates fewer packets than the recording."""
    try:
        program = built("sim/host_bypassing", "host_bypassing_bench")
    except NotFound as why:
        pytest.skip(str(why))
    file = tmp_path / "bench.json"
    line = [str(program), "--json", str(file), "--quick", "--only", "batching", "--only", "latency"]
    subprocess.run(line, check=True, capture_output=True, timeout=240)
    found = simulated.from_bypass(json.loads(file.read_text()))
    assert len(found) >= 14
    recorded = simulated.recorded()
    for identifier, figure in found.items():
        if identifier != "hb_rx_tx_sum_gap":  # not comparable: a small difference of large numbers
            assert figure.low == pytest.approx(recorded[identifier].low, rel=0.01), identifier
