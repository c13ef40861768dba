# SPDX-License-Identifier: Apache-2.0
"""`wherry advise`: real runs, the arithmetic on invented runs, and refusals."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from apps import program
from jobs import Jobs, built

from wherry import cli
from wherry.errors import Error, FailedPrecondition, InvalidArgument, NotFound
from wherry.route import advise, calibration
from wherry.route.advise import Category, RankFile
from wherry.route.calibration import DEFAULT, Calibration, Cost, Point
from wherry.route.launcher import Job
from wherry.system import paths

LINE = calibration.line_bytes()


def test_the_last_level_is_the_largest_readable_cache(tmp_path: Path) -> None:
    for index, size in enumerate(("32K", "1024K", "16M", "", "12", "many")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(size + "\n")
    (tmp_path / "index9" / "size").mkdir(parents=True)
    assert calibration.last_level_cache_bytes(tmp_path) == 16 << 20
    assert calibration.last_level_cache_bytes(tmp_path / "nothing") == 0


def advise_on(jobs: Jobs, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wherry.cli", "advise", *words]
    return subprocess.run(
        command, env=jobs.environment, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=60
    )


def rank(number: int = 0, **changes: Any) -> RankFile:
    """The file of a rank that sent 1000 messages (16 kB) and worked for 1 s. Keywords replace fields or statistics."""
    statistics = {
        "sent": 1000, "handled": 1000, "forwarded_bytes": 0, "bytes_out": 16_000, "bytes_in": 16_000, "transfers": 1,
        "flush_full": 1,
    }  # fmt: skip
    fields = {
        "cache_misses": 500,
        "cache_misses_missing": "",
        "placement": "inline",
        "seconds": 1.0,
        "cpu_seconds": 1.0,
        "blocked_seconds": 0.0,
    }
    for name, value in changes.items():
        (statistics if name in statistics else fields)[name] = value
    return RankFile(rank=number, node=number, statistics=statistics, **fields)  # type: ignore[arg-type]


# ---- real runs


@pytest.mark.parametrize("placement", ["inline", "host"])
def test_program_gets_advice(jobs: Jobs, tmp_path: Path, placement: str) -> None:
    file, app = tmp_path / "advice.json", str(program("histogram"))
    words = ["--nodes", "2", "--placement", placement, "--json", str(file), "--", app, "--updates", "1e6"]
    done = advise_on(jobs, *words)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("[0] ") for line in done.stderr.splitlines()), "what the program says for people"
    advice = json.loads(file.read_text())
    assert advice["program"] == [app, "--updates", "1e6"]
    assert (advice["placement"], advice["nodes"], advice["ranks"]) == (placement, 2, 2)
    assert advice["messages"] == 1_000_000
    # Each message has 8 bytes and a header, which messages sent directly to a rank may share. The library adds a few.
    least = 8_000_000 if placement == "inline" else 16_000_000
    assert least <= advice["routed_bytes"] < 16_010_000
    assert advice["ratio"] == pytest.approx(advice["memory_bytes"] / advice["routed_bytes"])
    assert advice["estimated"] == (advice["cache_misses"] is None)
    if advice["cache_misses"] is not None:
        assert advice["memory_bytes"] == advice["cache_misses"] * LINE
    else:
        assert "perf_event_open" in advice["how"]
        assert "an estimate" in done.stdout
    assert ("take turns on a core" in advice["how"]) == (advice["estimated"] and placement == "host")
    assert f"category       {advice['category']}" in done.stdout
    assert (advice["category"] == "cannot tell") == (
        advice["bound"] and advice["category"] != "communication-dominated"
    )
    assert "messages       1,000,000, " in done.stdout
    for sentence in advice["what_to_do"]:
        assert sentence in done.stdout


def test_program_that_never_used_route(jobs: Jobs) -> None:
    done = advise_on(jobs, "--ranks-per-node", "2", "--", "true")
    assert done.returncode == 1
    assert done.stderr.startswith("wherry: true left no statistics: it never started a wherry::route::Runtime")


def test_program_that_fails(jobs: Jobs) -> None:
    done = advise_on(jobs, "--", built("bootstrap_rank"), "exit=7")
    assert done.returncode == 7
    assert done.stderr.splitlines() == [
        "wherry run: rank 0 exited with status 7",
        "wherry advise: the program failed, so there is no advice",
    ]
    assert done.stdout == ""


def test_command_line_is_checked(jobs: Jobs, tmp_path: Path) -> None:
    assert advise_on(jobs).returncode == 2
    assert advise_on(jobs, "--calibrate", "--", "true").returncode == 2
    (tmp_path / "file").write_text("{}")
    done = advise_on(jobs, "--thresholds", str(tmp_path / "file"), "--", "true")
    assert (done.returncode, done.stderr) == (
        1,
        f"wherry: {tmp_path / 'file'} is not a path profile: it lacks 'name'\n",
    )


def kernel(*words: str) -> dict[str, Any]:
    line = [str(paths.built("bench", "route_balance")), *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_kernel_touches_what_it_is_told_to() -> None:
    found = kernel("--touches", "0", "0.25", "3", "--table", "8", "--messages", "1e5")
    assert [point["touches"] for point in found["points"]] == [0, 0.25, 3, 0]
    for point in found["points"]:
        assert point["touched"] == pytest.approx(point["touches"] * point["messages"], abs=4)
        least = point["message_bytes"] * point["messages"]  # messages sent directly to a rank may share headers
        assert least <= point["bytes"] <= least + 8 * point["messages"] + 2000
        assert point["seconds"] > 0


@pytest.mark.may_lack  # virtual machines do not show the counter
def test_counter_counts_lines_that_come_from_memory() -> None:
    beyond = kernel("--touches", "8", "--table", "512", "--messages", "2e6")
    if beyond["points"][0]["cache_misses"] is None:
        pytest.skip(f"no counter of cache misses here: {beyond['cache_misses_missing']}")
    inside = kernel("--touches", "8", "--table", "1", "--messages", "2e6")
    misses, touched = (beyond["points"][0][name] for name in ("cache_misses", "touched"))
    assert touched / 4 < misses < touched * 4, "caches hold a part; page tables and neighbours are misses, too"
    assert inside["points"][0]["cache_misses"] < misses / 4


# ---- arithmetic


def test_ratio_is_misses_times_line_over_routed_bytes() -> None:
    ranks = [rank(0), rank(1, cache_misses=1500, bytes_out=26_000, forwarded_bytes=10_000)]
    advice = advise.conclude(["p"], ranks, DEFAULT)
    assert advice.routed_bytes == 32_000, "what a rank forwards was counted where it came from"
    assert advice.memory_bytes == 2000 * LINE
    assert advice.ratio == 2000 * LINE / 32_000
    assert not advice.estimated
    assert (advice.messages, advice.average_transfer) == (2000, 21_000)


@pytest.mark.parametrize(
    ("ratio", "category"),
    [(0.0, Category.communication), (0.19, Category.communication), (0.2, Category.balanced), (1.35, Category.balanced),
     (1.36, Category.host), (72.0, Category.host)],
)  # fmt: skip
def test_categories(ratio: float, category: Category) -> None:
    assert advise.categorise(ratio, DEFAULT) is category


@pytest.fixture(autouse=True)
def not_amd(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """These tests assume a machine whose counter counts last-level misses, so not AMD."""
    if "jobs" not in request.fixturenames:
        monkeypatch.setattr(advise, "_is_amd", lambda: False)


@pytest.mark.parametrize("cpu", [0.000001, 0.5, 1.0])
def test_an_upper_bound_alone_expect_cannot_tell(cpu: float) -> None:
    uncounted = rank(cache_misses=None, cache_misses_missing="no counter", cpu_seconds=cpu)
    advice = advise.conclude(["p"], [uncounted], DEFAULT)
    assert advice.category is Category.unknown
    assert advice.bound
    assert advice.what_to_do[0] == advise.CANNOT_TELL
    assert not any("Local work dominates" in sentence for sentence in advice.what_to_do)


def test_a_counted_bound_expect_a_category_only_below_the_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advise, "_is_amd", lambda: True)
    few, many = (advise.conclude(["p"], [rank(cache_misses=n)], DEFAULT) for n in (10, 9000))
    assert few.category is Category.communication, "what is below at most, is below"
    assert many.category is Category.unknown


def test_advice_follows_the_category() -> None:
    few, some, many = (advise.conclude(["p"], [rank(cache_misses=n)], DEFAULT).what_to_do[0] for n in (10, 200, 9000))
    assert few.startswith("Keep routing inline")
    assert "host lets them overlap" in some
    assert many.startswith("Local work dominates")
    shared = advise.conclude(["p"], [rank(placement="shared")], DEFAULT).what_to_do[0]
    assert "Avoid shared" in shared


def test_hints_name_the_figures() -> None:
    hints = advise.conclude(["p"], [rank(transfers=16, flush_full=4, blocked_seconds=0.5)], DEFAULT).what_to_do
    assert any("1000 bytes in the mean, and 25 % of them" in hint for hint in hints)
    assert any("nothing to do for 50 % of their time" in hint for hint in hints)


def test_estimate_where_nothing_counts() -> None:
    # 1000 messages of 10 ns and 16,000 bytes of 0.5 ns: 18 us of communication. The rank waited for 0.2 s of its 1 s.
    calibration = dataclasses.replace(DEFAULT, line_ns=20.0, inline=Cost(10, 0.5), agent=Cost(1000, 0))
    uncounted: dict[str, Any] = {"cache_misses": None, "cache_misses_missing": "no counter", "blocked_seconds": 0.2}
    advice = advise.conclude(["p"], [rank(**uncounted)], calibration)
    assert advice.estimated
    assert advice.cache_misses is None
    assert advice.memory_bytes == pytest.approx((0.8 - 18e-6) / 20e-9 * LINE)
    assert "(no counter)" in advice.how
    idle = advise.conclude(["p"], [rank(**uncounted | {"cpu_seconds": 0.000001})], calibration)
    assert idle.memory_bytes == 0
    routed = advise.conclude(["p"], [rank(**uncounted | {"placement": "host"})], calibration, alone=False)
    assert routed.memory_bytes == pytest.approx((0.8 - 1e-3) / 20e-9 * LINE)
    assert "take turns on a core" in routed.how


def test_one_uncounted_rank_makes_it_an_estimate() -> None:
    missing = rank(1, cache_misses=None, cache_misses_missing="it could not")
    advice = advise.conclude(["p"], [rank(0), missing], DEFAULT)
    assert advice.estimated
    assert "it could not" in advice.how


def test_no_message_no_advice() -> None:
    with pytest.raises(FailedPrecondition, match="p sent no message"):
        advise.conclude(["p"], [rank(sent=0)], DEFAULT)


def test_rank_that_left_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "rank-0.json").write_text(json.dumps(dataclasses.asdict(rank())))
    assert advise.gather(tmp_path, Job(["p"])) == [rank()]
    with pytest.raises(NotFound, match="rank 1 of p left no statistics"):
        advise.gather(tmp_path, Job(["p"], ranks_per_node=2))


# ---- calibration


def made_up_rounds(touch_ns: float = 20, message_ns: float = 10) -> list[dict[str, dict[str, Any]]]:
    """Results of a machine that takes `message_ns` per message, `touch_ns` per line and 0.1 ns per byte. Placement
    shared takes twice that."""

    def point(touches: float, size: int, factor: float) -> dict[str, Any]:
        messages = 1000
        seconds = messages * factor * (message_ns + touches * touch_ns + size * 0.1) * 1e-9
        return {
            "touches": touches, "message_bytes": size, "messages": messages, "seconds": seconds,
            "rank_seconds": 2 * seconds, "cpu_seconds": seconds, "blocked_seconds": 0, "bytes": messages * (size + 8),
            "touched": messages * touches, "cache_misses": None,
        }  # fmt: skip

    return [
        {
            name: {
                "table_bytes": 1 << 30,
                "points": [*(point(t, 8, factor) for t in calibration.TOUCHES), point(0, 4088, factor)],
            }
            for name, factor in (("inline", 0.5), ("shared", 2.0), ("host", 1.0))
        }
    ] * 3


def test_thresholds_of_a_machine_that_is_known() -> None:
    found = calibration.evaluate(made_up_rounds(), 64, 1 << 26)
    # A message without touches takes 10.8 ns. 0.27 lines add half of that, and 1.08 lines twice that. A line gives a
    # ratio of 4, less the 16th of the table that the cache may hold.
    assert found.communication_below == pytest.approx(0.27 * 4 * 15 / 16)
    assert found.host_above == pytest.approx(1.08 * 4 * 15 / 16)
    assert found.line_ns == pytest.approx(20)
    assert found.agent.byte_ns == pytest.approx(0.1)
    assert found.agent.message_ns == pytest.approx(10.8 - 16 * 0.1)
    assert found.inline.byte_ns == pytest.approx(0.05)
    assert {point.speedup for point in found.curve} == {2.0}
    assert found.curve[-1].ratio == pytest.approx(16 * 4 * 15 / 16)
    assert found.spread["host_above"] == [found.host_above, found.host_above]


def test_machine_without_a_threshold_is_an_error() -> None:
    with pytest.raises(Error, match=r"never took 1\.5 times as long"):
        calibration.evaluate(made_up_rounds(touch_ns=0.01), 64, 0)


def test_calibration_is_read_as_it_was_written(tmp_path: Path) -> None:
    point = Point(1.0, 2.0, 3.0, 4.0, 0.75, 0.5, 1.0)
    here = Calibration(1.0, 2.0, 3.0, Cost(4, 5), Cost(6, 7), "here", {"host_above": [1, 2]}, [point])
    here.write(tmp_path / "a" / "here.json")
    read = calibration.load(tmp_path / "a" / "here.json")
    assert read == dataclasses.replace(here, source=f"from profile {tmp_path / 'a' / 'here.json'}, here")
    assert "kernel of ratio 1 took 2 ns" in advise.conclude(["p"], [rank()], read).what_to_do[1]


@pytest.mark.parametrize(
    ("settings", "figures", "why"),
    [({"line_ns": "0"}, {}, "advise.line_ns = '0'"), ({"line_ns": "much"}, {}, "much"), ({"line_ns": "nan"}, {}, "nan"),
     ({"inline_byte_ns": "-1"}, {}, "inline_byte_ns"), ({"host_above": "0.1"}, {}, "above advise.host_above"),
     ({}, {"curve": [{"x": 1}]}, "x"), ({}, {"spread": 1}, "figures of advise"), ({}, None, "lack 'advise'")],
)  # fmt: skip
def test_absurd_calibrations_are_refused(
    tmp_path: Path, settings: dict[str, str], figures: dict[str, Any] | None, why: str
) -> None:
    path = tmp_path / "here.json"
    DEFAULT.write(path)
    document = json.loads(path.read_text())
    for name, value in settings.items():
        document["settings"][f"advise.{name}"]["value"] = value
    if figures is None:
        del document["advise"]
    else:
        document["advise"] |= figures
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidArgument, match=why):
        calibration.load(path)


def test_the_profile_in_use_is_the_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, warnings = tmp_path / "here.json", list[str]()
    monkeypatch.setenv("WHERRY_PROFILE", "off")
    assert calibration.find(warnings.append) is DEFAULT
    monkeypatch.setenv("WHERRY_PROFILE", str(path))
    dataclasses.replace(DEFAULT, line_ns=50.0).write(path)
    assert calibration.find(warnings.append).line_ns == 50
    document = json.loads(path.read_text())
    document["settings"] = {"advise.line_ns": {"value": "40.5", "rule": "random line", "why": "cpu.chase"}}
    path.write_text(json.dumps(document))
    found = calibration.find(warnings.append)
    assert found == dataclasses.replace(DEFAULT, line_ns=40.5, source=found.source)
    assert found.source.startswith(f"from profile {path}: line_ns; the rest Wherry's own")
    document["settings"] = {"move.window": {"value": "4MiB", "rule": "window", "why": ""}}
    path.write_text(json.dumps(document))
    assert calibration.find(warnings.append) is DEFAULT
    with pytest.raises(InvalidArgument, match="has no calibration"):
        calibration.load(path)
    document["settings"] = {"advise.line_ns": {"value": "-1", "rule": "random line", "why": ""}}
    path.write_text(json.dumps(document))
    assert warnings == []
    assert calibration.find(warnings.append) is DEFAULT
    assert "cannot be used" in warnings[0]
    with pytest.raises(NotFound):
        calibration.load(tmp_path / "none")


def test_calibration_takes_two_cores() -> None:
    with pytest.raises(InvalidArgument, match="two cores"):
        calibration.measure([0])


def test_calibrate_shows_and_writes_what_it_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    measured = calibration.evaluate(made_up_rounds(), 64, 1 << 26)
    monkeypatch.setattr(calibration, "measure", lambda _cores: measured)
    assert cli.main(["advise", "--calibrate", "--json", str(tmp_path / "here.json")]) == 0
    said = capsys.readouterr().out
    assert "2.00 [2.00, 2.00]" in said
    assert f"{'host_above':20} 4.05 [4.05, 4.05]" in said
    assert calibration.load(tmp_path / "here.json").curve == measured.curve
