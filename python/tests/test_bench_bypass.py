# SPDX-License-Identifier: Apache-2.0
"""`wherry bench bypass`: where the bars come from, how programs are run, and a small run of the models."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jobs import eventually
from rich.console import Console
from test_bench_schema import row_type

from wherry import cli, report
from wherry.bench import load
from wherry.bench.schema import keys
from wherry.bypass import programs
from wherry.bypass.bench import bars, hardware, schema
from wherry.bypass.bench import run as bench_bypass
from wherry.bypass.bench.jobs import Job, run_jobs
from wherry.bypass.bench.schema import BypassBench, BypassResults
from wherry.errors import BenchError, NotFound
from wherry.system import paths

Document = dict[str, Any]
QUIET = Console(stderr=True, quiet=True)


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\nimport json, sys, time\narguments = sys.argv[1:]\n{text}")
    path.chmod(0o755)
    return path


def test_unknown_experiment_is_a_wrong_command_line(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["bench", "bypass", "--json", str(tmp_path / "b.json"), "--only", "everything"]) == 2
    assert "batching" in capfd.readouterr().err


# ---- rows and bars


def rtl_document(**figures: float) -> Document:
    """A document in the form that bypass_rtl_bench writes (see the header of sim/bypass/bench_main.cpp)."""

    def row(name: str, group: str, topology: str, size: int, lost: int) -> Document:
        return {
            "name": name, "group": group,
            "given": {"mbits": 10_000, "bytes": size, "wire_bytes": 304, "load": 0.5, "way": "stream",
                      "nic": "ixgbe", "card_link": "gen3x8",
                      "topology": topology},
            "frames": {"in": 4000, "out": 4000 - lost, "reordered": 0, "lost_uncounted": 0,
                       "nic_rx_dropped": {"buffer_full": lost}, "nic_tx_dropped": {}},
            "rate": {"packets_per_s": 14.88e6, "share_of_line": 1.0, "link_packets_per_s": 39e6, "share_of_link": 0.38,
                     "share_of_limit": 0.998, "limited_by": "port"},
            "latency_us": {"mean": 7.6, "p99": 7.7, "std": 0.01},
            "per_packet": {"tails": 0.7, "requests": 13.0, "link_bytes_in": 200.0, "link_bytes_out": 180.0,
                           "flow_control_bytes": 0.0},
        }  # fmt: skip

    return {
        "schema": "wherry.bypass_rtl_bench/1",
        "versions": {"verilator": "5.48"},
        "core": {"clock_mhz": 250, "queue_pairs": 1, "rx_entries": 256, "tx_entries": 512, "pack_bytes": 32768},
        "rows": [
            row("rate_64b_10g_stream", "rates", "switch", 64, 0),
            row("intel_300b_10g_stream", "latency", "intel_xeon_4110", 300, 4),
            row("curve_switch_300b_50", "curve", "switch", 300, 0),
            row("overload_port_switch_stream", "overload", "switch", 300, 2000),
            {"name": "cycles", "group": "cycles", "cycles": {"rx": {"min": 5, "max": 6, "samples": 40}}},
        ],
        "figures": {"rate_64b_10g": 1.0000000002, "rx_cycles": 7, "intel_root_loss_10g": 0.001} | figures,
    }


def test_bars_of_the_rtl() -> None:
    document = rtl_document(rate_64b_25g=0.99996, unheard_of=3)
    rows = hardware.rtl_rows(document)
    assert (rows["rtl_latency"][0]["topology"], rows["rtl_latency"][0]["loss"]) == ("intel", 0.001)
    assert rows["rtl_curves"][0]["rate_gbps"] == pytest.approx(5 * 304 / 324)
    assert rows["rtl_overload"][0]["dropped_by_nic"] == 2000
    assert rows["rtl_cycles"] == [{"path": "rx", "least": 5, "most": 6, "samples": 40, "published": "7 + bytes / 8"}]
    found = bars.rtl_bars(document["figures"], rows["rtl_rates"])
    assert set(found) == {"rate_64b_10g", "rate_64b_25g", "rx_cycles", "intel_root_loss_10g"}
    assert (found["rate_64b_10g"]["value"], found["rate_64b_10g"]["pass"]) == (1.0, True)
    assert (found["rx_cycles"]["value"], found["rx_cycles"]["pass"]) == (7.0, False)
    assert found["intel_root_loss_10g"]["pass"]
    assert found["rate_64b_25g"]["value"] == 1.0, "rounded to four digits"
    document["rows"][0]["frames"]["out"] -= 1
    found = bars.rtl_bars(document["figures"], hardware.rtl_rows(document)["rtl_rates"])
    assert (found["rate_64b_10g"]["value"], found["rate_64b_10g"]["pass"]) == (0.0, False), "a frame was lost"
    with pytest.raises(BenchError, match=r"schema 'other'; wherry.bypass_rtl_bench/1 is expected"):
        hardware.rtl_rows({"schema": "other"})


def test_errors_of_the_models_against_numbers_done_by_hand() -> None:
    batching = [
        {"reading": reading, "batch": batch, "latency_us": us, "outgoing": out, "ingoing": 316.0}
        for reading, batch, us, out in (("any_fetches", 16, 12.0, 316.7), ("one_fetch", 16, 9.72, 316.83),
                                        ("one_fetch", 1, 8.0, 324.0))
    ]  # fmt: skip
    document = {
        "batching": batching,
        "overload": [{"topology": "intel", "writeback": True, "loss_percent": 15.99},
                     {"topology": "intel", "writeback": False, "loss_percent": 1.0}],
        "latency": [{"scenario": "both", "reading": "one_fetch", "mean_us": 8.0699},
                    {"scenario": "software", "reading": "one_fetch", "mean_us": 6.0}],
        "tcp": [{"topology": "switch", "goodput_gbps": 9.4758, "latency_us": 10.0}],
    }  # fmt: skip
    rows = hardware.model_rows(document)
    assert [row["mark"] for row in rows["overload"]] == ["fitted", "fitted"]
    assert [row["mark"] for row in rows["batching"]] == ["predicted", "chosen", "predicted"]
    assert [row["error_percent"] for row in rows["latency"]] == [pytest.approx(1.0), None]
    found = bars.model_bars(rows)
    expected = {
        "model_error_table2_bytes": (100 * (316.83 / 316.7 - 1), True),
        "model_error_batch16_latency": (100 * (1 - 9.72 / 9.92), True),
        "model_error_loss_writeback": (0.20, True),
        "model_error_switch_latency": (1.0, True),
        "model_error_tcp_goodput": (2.0, True),
    }
    for name, (value, met) in expected.items():
        assert found[name]["value"] == pytest.approx(value), name
        assert found[name]["pass"] == met or name == "model_error_tcp_goodput"
    assert bars.model_bars({}) == {}


def test_bars_of_resources() -> None:
    table = [
        {"name": name, "parameters": {}, "lut": lut, "lutram": 10, "ff": 5, "bram36": 1, "bram18": 31,
         "uram": 15, "depth": depth}
        for name, lut, depth in (("bypass_expand", 250, 2), ("bypass_decode", 187, 9), ("bypass_core", 4087, 8),
                                 ("kv_core", 9000, 20))
    ]  # fmt: skip
    found = bars.resource_bars(hardware.resource_rows(table))
    values = {name: bar["value"] for name, bar in found.items()}
    assert values == {"personality_luts": 457, "luts_total": 4097, "uram_total": 15, "bram36_total": 16.5,
                      "lut_levels_max": 9}  # fmt: skip
    assert not found["bram36_total"]["pass"]
    assert bars.resource_bars([]) == {}


def test_fewer_frames_of_a_nic_demand_nothing() -> None:
    row = {"nic": "e1000e", "frames": 10_000, "wrong": 0, "lost": 0, "tx_writebacks": 0, "good": True}
    assert bars.qemu_bars([row])["qemu_frames_wrong_e1000e"]["pass"]
    assert "pass" not in bars.qemu_bars([row | {"frames": 9_999}])["qemu_frames_wrong_e1000e"]
    found = bars.qemu_bars([row, row | {"nic": "igb", "lost": 2, "good": False}])
    assert (found["qemu_frames_wrong_igb"]["value"], found["qemu_frames_wrong_igb"]["pass"]) == (3, False)


# ---- programs


def test_a_whole_run_with_programs_that_write_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = rtl_document()
    qemu = {
        "nic": "e1000e", "qemu": "QEMU 7.2", "good": True, "frames_wrong": 0, "frames_lost": 0, "tx_writebacks": 0,
        "messages_per_frame": 50.0, "tails_per_frame": 1.5,
        "phases": [{"may_lose": False, "sent": 200}, {"may_lose": True, "sent": 9}],
    }  # fmt: skip

    def writes(name: str, document: Document) -> Path:
        text = f"sys.stderr.write('[1/1] {name}\\n')\n"
        text += f"open(arguments[arguments.index('--json') + 1], 'w').write({json.dumps(document)!r})\n"
        return script(tmp_path / name, text)

    constants = [{"name": "rx_ns", "value": 2500, "unit": "ns", "mark": "fitted", "source": "3.37 us"}]
    for name, document in (("rtl_bench", said), ("model_bench", {"constants": constants}), ("qemu_bench", qemu)):
        program = writes(name, document)
        monkeypatch.setattr(programs, name, lambda program=program: program)

    def none() -> Path:
        raise NotFound("no QEMU with igb")

    monkeypatch.setattr(programs, "newer_qemu", none)
    guest = tmp_path / "guest.json"
    guest.write_text(json.dumps({"good": True, "guest_setup_s": 18.5, "guest_frames_while_stopped": 1000,
                                 "guest_frames_wrong": 0}))  # fmt: skip
    file = tmp_path / "b.json"
    bench = bench_bypass.run(file, quick=True, guest=guest, progress=QUIET)
    assert isinstance(bench, BypassBench)
    assert load(file) == bench
    assert bench.not_measured == {"qemu igb": "no QEMU with igb"}
    assert bench.bars["guest_setup_s"].passed
    assert bench.bars["qemu_frames_wrong_e1000e"].passed is None, "of 200 frames"
    assert bench.results.qemu[0].frames == 200
    assert bench.results.constants[0].mark == "fitted"
    assert bench.versions["verilator"] == "5.48"
    # Every bar is either measured or listed as not run, never both.
    assert set(bench.bars) | set(bench.not_run) == set(bars.TARGETS)
    assert not set(bench.bars) & set(bench.not_run)
    assert bench.not_run["qemu_frames_wrong_igb"] == "no QEMU with igb"
    assert bench.not_run["kv_behind_bypass"] == "needs --kv FILE"
    assert "bars not run" in report.build([file])


def test_failure_of_one_experiment_loses_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(rtl_document())
    rtl = script(tmp_path / "rtl", f"open(arguments[1], 'w').write({text!r})")
    model = script(tmp_path / "model", "print('no such thing')\nsys.exit(3)")
    monkeypatch.setattr(programs, "rtl_bench", lambda: rtl)
    monkeypatch.setattr(programs, "model_bench", lambda: model)
    file = tmp_path / "b.json"
    with pytest.raises(BenchError, match=r"tcp: .*model failed \(status 3\): no such thing.*b\.json"):
        bench_bypass.run(file, only=["rtl_cycles", "tcp"], progress=QUIET)
    left = load(file)
    assert isinstance(left, BypassBench)
    assert "rx_cycles" in left.bars
    assert set(left.not_measured) == {"tcp"}
    assert "model failed" in left.not_run["model_error_tcp_goodput"]
    script(tmp_path / "model", "open(arguments[1], 'w').write('{\"tcp\": [{}]}')")
    with pytest.raises(
        BenchError, match=r"rows that are not as docs/reference/bench-bypass.md describes them: KeyError"
    ):
        bench_bypass.run(file, only=["tcp"], progress=QUIET)


def test_what_was_not_built_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wherry.system.paths.repository", lambda: None)
    monkeypatch.setenv("PATH", "")
    bench = bench_bypass.run(tmp_path / "b.json", only=["rtl_rates", "tcp", "qemu"], progress=QUIET)
    assert isinstance(bench, BypassBench)
    assert bench.bars == {}
    assert "no bypass_rtl_bench" in bench.not_measured["rtl_rates"]
    assert "no host_bypassing_bench" in bench.not_measured["tcp"]
    assert "no bypass_qemu" in bench.not_run["qemu_frames_wrong_e1000e"]
    assert bench.not_run["luts_total"] == "resources was not asked for"


def test_no_more_simulations_than_cores(tmp_path: Path) -> None:
    text = "begin = time.monotonic()\ntime.sleep(0.2)\n"
    text += "open(arguments[0], 'w').write(json.dumps([begin, time.monotonic()]))"
    program = script(tmp_path / "program", text)
    jobs = [Job(str(i), [str(program), str(tmp_path / f"{i}.json")], tmp_path / f"{i}.json") for i in range(5)]
    found = run_jobs(jobs, lambda _: None, 2)
    spans = [json.loads((tmp_path / f"{i}.json").read_text()) for i in range(5)]
    assert set(found) == {job.name for job in jobs}
    for begin, _ in spans:
        assert sum(one <= begin < end for one, end in spans) <= 2


def state_of(pid: int) -> str:
    """As ps(1) has it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_command_ends_all_programs(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, number: signal.Signals
) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    for name in ("host_bypassing_bench", "bypass_rtl_bench"):
        script(tmp_path / name, f"import os\nopen({str(tmp_path / name)!r} + '.pid', 'w').write(str(os.getpid()))\n"
               "time.sleep(600)")  # fmt: skip
    runs = (
        "from wherry import cli; from wherry.bypass import programs; from pathlib import Path; import sys\n"
        f"programs.model_bench = lambda: Path({str(tmp_path / 'host_bypassing_bench')!r})\n"
        f"programs.rtl_bench = lambda: Path({str(tmp_path / 'bypass_rtl_bench')!r})\n"
        f"sys.exit(cli.main(['bench', 'bypass', '--json', {str(tmp_path / 'b.json')!r}, '--only', 'tcp', "
        "'--only', 'rtl_cycles']))"
    )
    cores = sorted(os.sched_getaffinity(0))
    with subprocess.Popen(
        [sys.executable, "-c", runs], stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    ) as process:  # fmt: skip
        started = [tmp_path / f"{name}.pid" for name in ("bypass_rtl_bench", "host_bypassing_bench")[: len(cores)]]
        assert eventually(lambda: all(file.is_file() and file.read_text() for file in started))
        pids = [int(file.read_text()) for file in started]
        assert list(scratch.iterdir()), "where the programs' results go"
        os.kill(process.pid, number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == (130 if number == signal.SIGINT else -number), said
    for pid in pids:  # their new parent may leave them as zombies for a while
        assert eventually(lambda pid=pid: state_of(pid) in ("gone", "Z"))
    assert not (tmp_path / "b.json").exists()
    assert eventually(lambda: not list(scratch.iterdir())), "no folder is left"
    assert "Traceback" not in said


def test_ctrl_c_ends_a_program_that_is_stopped(tmp_path: Path) -> None:
    program = script(tmp_path / "program", f"import os\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
                     "time.sleep(600)")  # fmt: skip
    runs = f"from wherry.bench import program; program.wait_for(program.start([{str(program)!r}]))"
    with subprocess.Popen([sys.executable, "-c", runs], stderr=subprocess.DEVNULL, start_new_session=True) as process:
        assert eventually(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text())
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, signal.SIGSTOP)
        assert eventually(lambda: state_of(pid) == "T")
        os.kill(process.pid, signal.SIGINT)
        process.wait(60)
    assert eventually(lambda: state_of(pid) in ("gone", "Z"))


# ---- the models themselves


def test_models_against_the_paper(tmp_path: Path) -> None:
    """Runs the real program for the bars of the quick experiments."""
    file = tmp_path / "b.json"
    bench = bench_bypass.run(file, quick=True, only=["batching", "tcp", "resources"], progress=QUIET)
    assert isinstance(bench, BypassBench)
    assert bench.not_measured == {}
    for name in ("model_error_table2_bytes", "model_error_batch16_latency", "model_error_tcp_goodput"):
        assert bench.bars[name].passed, (name, bench.bars[name].value)
    rows = {(row.reading, row.batch): row for row in bench.results.batching}
    assert rows["one_fetch", 1].latency_us < rows["one_fetch", 8].latency_us < rows["one_fetch", 16].latency_us
    assert {row.mark for row in bench.results.constants} <= {"given", "chosen", "fitted"}
    assert "Tail writes by batches" in report.build([file])


def defaults_of_the_core() -> dict[str, int]:
    """The default parameters in bypass_core.sv."""
    root = paths.repository()
    assert root is not None
    text = (root / "hdl" / "bypass" / "bypass_core.sv").read_text()
    return {name: int(value) for name, value in re.findall(r"parameter int unsigned (\w+) *= (\d+)", text)}


def test_rates_and_resources_are_of_one_core(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    bench = bench_bypass.run(file, quick=True, only=["rtl_cycles", "resources"], progress=QUIET)
    assert isinstance(bench, BypassBench)
    bits = defaults_of_the_core()
    core = bench.results.rtl_core[0]
    assert core.queue_pairs == 2 ** bits["QueueBits"]
    assert (core.slots, core.tx_descriptors) == (2 ** bits["RxRingBits"], 2 ** bits["TxRingBits"])
    assert core.pack_bytes == 64 * 2 ** bits["PackBits"]
    assert next(row for row in bench.results.resources if row.name == "bypass_core").parameters == ""
    assert schema.basis_of("rx_cycles", bench.results).uses.endswith(f"a core of {core.slots} slots")
    assert f"the defaults ({core.slots} slots)" in schema.basis_of("luts_total", bench.results).uses


def test_documentation_names_every_key_and_bar() -> None:
    root = paths.repository()
    assert root is not None
    text = (root / "docs" / "reference" / "bench-bypass.md").read_text()
    named = set(re.findall(r'`"?([a-z0-9_]+)"?`', text))
    kinds = [BypassResults, *(row_type(BypassResults, section) for section in dataclasses.fields(BypassResults))]
    for kind in kinds:
        missing = set(keys(kind)) - named
        assert not missing, f"docs/reference/bench-bypass.md does not describe {sorted(missing)} of {kind.__name__}"
    assert not (missing := set(bars.TARGETS) - named), (
        f"docs/reference/bench-bypass.md does not name the bars {sorted(missing)}"
    )
