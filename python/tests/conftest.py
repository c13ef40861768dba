# SPDX-License-Identifier: Apache-2.0
"""Fixtures that tests share: session files, benchmark documents, and a real agent if it was built."""

from __future__ import annotations

import fcntl
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from agents import TOKEN, Agent, LocalAgent
from ending import pytest_sessionfinish  # noqa: F401 (pytest finds it here)
from inputs import Bench
from jobs import Jobs, built
from kvclusters import KvHome
from skips import pytest_runtest_makereport  # noqa: F401 (pytest finds it here)

from wherry.errors import Error, NotFound
from wherry.session import sessionfile
from wherry.session.sessionfile import SessionFile
from wherry.system import netns, paths

# As in the Makefile: the programs that tools/setup.sh unpacks (etcd, redis-server) come last, after the machine's.
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.prefix) / "bin")])
# A profile that a user measured on this machine must not change the tests.
os.environ.setdefault("WHERRY_PROFILE", "off")


PATIENCE = 8
"""Factor for all time limits, which only end tests that hang. The limits as written suit an idle machine, and no test
may fail on a busy one."""


WHOLE_MACHINE = {"jobs", "mpich_segments", "namespaces"}
"""Fixtures of tests that use things that a machine has only once: network devices, shared-memory segments."""
WHOLE_MACHINE_FILES = {"test_kv_rtl", "test_lammps_fix", "test_lammps_job", "test_snippets"}
"""Files that use such things without one of these fixtures."""


@pytest.hookimpl(tryfirst=True)  # before pytest looks at -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks whole files that use things that a machine has only once. `make test` runs these one after another, in
    parallel with the rest of the suite.

    Also extends the limit of tests that have their own. pyproject.toml has the limit of all others.
    """
    files = set(WHOLE_MACHINE_FILES)
    for item in items:
        if WHOLE_MACHINE & set(getattr(item, "fixturenames", ())):
            files.add(item.path.stem)
    for item in items:
        if item.path.stem in files:
            item.add_marker("machine")
        if marker := item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(float(marker.args[0]) * PATIENCE), append=False)


@pytest.fixture(autouse=True)
def patience_with_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiplies the time limit of each wait for a process by PATIENCE, too."""

    def patient(wait: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(wait)

        def waiting(*arguments: Any, **named: Any) -> Any:
            given = signature.bind(*arguments, **named)
            if (timeout := given.arguments.get("timeout")) is not None:
                given.arguments["timeout"] = timeout * PATIENCE
            return wait(*given.args, **given.kwargs)

        return waiting

    for name in ("communicate", "wait"):
        monkeypatch.setattr(subprocess.Popen, name, patient(getattr(subprocess.Popen, name)))


def wherryd_or_fail() -> Path:
    try:
        program = paths.wherryd()
    except NotFound as error:
        pytest.fail(str(error))
    if importlib.util.find_spec("wherry._native._core") is None:
        pytest.fail("the compiled module wherry._native._core was not built: `make build`")
    return program


@pytest.fixture
def wherryd() -> Path:
    """The agent's program. If it was not built, the test fails, so that no test is skipped silently."""
    return wherryd_or_fail()


@pytest.fixture
def agent(tmp_path: Path, wherryd: Path) -> Iterator[Agent]:
    """A real agent with its own session file and free ports."""
    running = Agent(tmp_path, wherryd)
    yield running
    running.stop()


@pytest.fixture
def make_agent(tmp_path: Path, wherryd: Path) -> Iterator[Callable[..., Agent]]:
    """Starts agents like `agent`, with more arguments: make_agent("--flight", "off")."""
    running: list[Agent] = []

    def make(*arguments: str) -> Agent:
        directory = tmp_path / f"agent{len(running)}"
        directory.mkdir()
        running.append(Agent(directory, wherryd, *arguments))
        return running[-1]

    yield make
    for one in running:
        one.stop()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    program = wherryd_or_fail()
    running = Agent(tmp_path_factory.mktemp("inputs"), program)
    try:
        one = Bench(running)
        yield one
        one.client.close()
        one.session.close()
    finally:
        running.stop()


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    """Runs `wherry run`. However a job ends, no process or file of it may remain."""
    one = Jobs()
    try:
        yield one
        one.expect_nothing_left()
    finally:
        one.clean_up()


def abandoned_segments() -> set[Path]:
    """This user's MPICH segments that no process has mapped."""
    mapped = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            mapped |= set(re.findall(r"/dev/shm/mpich_shm_\S+", (process / "maps").read_text()))
    found = set()
    for segment in Path("/dev/shm").glob("mpich_shm_*"):
        with suppress(FileNotFoundError):  # its job has just ended
            if segment.stat().st_uid == os.geteuid() and str(segment) not in mapped:
                found.add(segment)
    return found


@pytest.fixture
def mpich_segments() -> Iterator[None]:
    """Removes MPICH's segments, which remain when a rank dies. A later job of the same name would wait at them
    forever."""
    for segment in abandoned_segments():  # from an earlier run that was killed
        segment.unlink(missing_ok=True)
    before = set(Path("/dev/shm").glob("mpich_shm_*"))
    yield
    for segment in set(Path("/dev/shm").glob("mpich_shm_*")) - before:
        segment.unlink(missing_ok=True)


@pytest.fixture
def namespaces() -> None:
    """For tests that create network namespaces. Skips a test if this user or this container may not create them."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces take root: run these as root, too")
    try:
        netns.Namespace().close()
    except Error as error:
        pytest.skip(str(error))


@pytest.fixture
def home() -> Iterator[KvHome]:
    """A private environment for `wherry kv`. However a cluster ends, no process or file of it may remain."""
    built("wherry-kv")
    one = KvHome()
    try:
        yield one
        one.expect_nothing_left()
    finally:
        one.clean_up()


@pytest.fixture
def write_session(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Writes a private session file, locked as by a running agent (`alive`). Keywords replace fields; None removes
    one."""
    locked = []

    def write(
        *, name: str = "agent.json", mode: int = 0o600, text: str | None = None, alive: bool = True, **fields: Any
    ) -> Path:
        document: dict[str, Any] = {
            "version": 2,
            "pid": os.getpid(),
            "control": str(tmp_path / "agent.json.control"),
            "host": "127.0.0.1",
            "port": 4242,
            "token": TOKEN,
            "local_socket": str(tmp_path / "local.sock"),
            "flight": "grpc://127.0.0.1:4243",
            "metrics": "http://127.0.0.1:4244/metrics",
            "wherry": "0.1.0",
        }
        document = {key: value for key, value in (document | fields).items() if value is not None}
        path = tmp_path / name
        path.unlink(missing_ok=True)
        path.write_text(json.dumps(document) if text is None else text)
        path.chmod(mode)
        if alive:
            locked.append(path.open("rb"))
            fcntl.flock(locked[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path

    yield write
    for file in locked:
        file.close()


@pytest.fixture
def load_session(write_session: Callable[..., Path]) -> Callable[..., SessionFile]:
    """Writes a session file with `write_session` and loads it."""
    return lambda **fields: sessionfile.load_session(write_session(**fields))


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[LocalAgent]:
    """A scripted agent for local readers, at the address in the files of `write_session`."""
    agent = LocalAgent(tmp_path / "local.sock", TOKEN)
    yield agent
    agent.stop()


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hides the user's own agent and configuration from every test."""
    for variable in ("WHERRY_AGENT", "WHERRY_SESSION", "WHERRY_WHERRYD", "WHERRY_KV", "WHERRY_KV_CLUSTER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))


def move_document() -> dict[str, Any]:
    """A complete, valid benchmark document with a few rows in every experiment."""
    sizes = [1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24]
    document: dict[str, Any] = {
        "schema": 1,
        "name": "move",
        "when": "2026-11-20T20:00:00+00:00",
        "wherry": "0.1.0",
        "machine": {"cpu": "A <CPU> & more", "cores": 2, "kernel": "6.1", "memory_bytes": 8 << 30},
        "versions": {"ucx": "1.22.0", "arrow": "26.0.1", "compiler": "gcc 12.2"},
        "pinning": {"application": 0, "agent": 1},
        "transports": "posix/memory cma/memory",
        "one_sided": "one_sided",
        "repetitions": 5,
        "bars": {
            "page_aligned_over_host": {
                "value": 0.97, "min": 0.93, "max": 1.02, "target": ">= 0.95", "pass": True, "unit": "",
                "published": "more than 95 % from 1 MiB",
            },
            "call_us": {
                "value": 7.5, "min": 6.0, "max": 9.0, "target": "<= 5", "pass": False, "unit": "us", "published": None,
            },
        },
        "results": {
            "initiate": [
                {"columns": c, "size": s, "p50_us": 1.0 + c / 10, "min_us": 0.8, "max_us": 40.0, "p99_us": 3.0,
                 "after_wait_p50_us": 2.5}
                for c in (1, 16) for s in sizes
            ],
            "bandwidth": [
                {"size": s, "move_gbps": 60.0, "raw_gbps": 64.0, "ratio": 0.94, "ratio_min": 0.9, "ratio_max": 0.97}
                for s in sizes
            ],
            "mapped": [{"size": s, "move_gbps": 90.0, "memcpy_gbps": 100.0, "ratio": 0.9} for s in sizes],
            "buffers": [
                {"size": s, "client_alloc": c, "server_alloc": d, "cache": k, "gbps": gbps}
                for s in sizes
                for c in ("malloc", "memalign")
                for d, k, gbps in (
                    ("memalign", True, 50.0), ("memalign", False, 40.0), ("malloc", True, 40.0), ("malloc", False, 20.0)
                )
            ],
            "conversion": [
                {"api": a, "columns": c, "size": s, "arrays_us": 4.0, "schema_us": 1.0, "batch_us": 1.0, "ipc_us": 4.0,
                 "total_us": 10.0}
                for a in ("cpp", "c_abi") for c in (1, 4, 16) for s in sizes
            ],
            "approaches": [
                {"approach": a, "columns": c, "size": s, "host_us": 1.5, "gbps": 30.0, "fresh_gbps": 20.0}
                for a in ("host_serialization", "smartnic_serialization", "idp_ipc",
                          "idp_page_aligned_ipc", "idp_c_abi")
                for c in (1, 4, 16) for s in sizes
            ],
            "flight": [
                {"size": s, "move_gbps": 60.0, "flight_gbps": 10.0, "throughput_ratio": 6.0, "move_cpu_us": 1.0,
                 "flight_cpu_us": 250.0, "cpu_ratio": 250.0}
                for s in sizes
            ],
            "python": [
                {"columns": 16, "size": 1048576, "call": "offload", "warm_us": 60.5, "cold_us": 207.0},
                {"columns": 16, "size": 1048576, "call": "bind", "warm_us": 3.5, "cold_us": 50.0},
            ],
            "readers": [
                {"reader": reader, "size": 1048576, "call_us": 40.0, "wait_us": wait, "step_us": 9000.0,
                 "read_percent": read}
                for reader, wait, read in (("none", 12.0, 0.0), ("plain", 13.0, 90.0), ("lz4", 12.5, 60.0))
            ],
            "flight_16_columns": [
                {"size": s, "move_gbps": 50.0, "flight_gbps": 25.0, "throughput_ratio": 2.0, "move_cpu_us": 2.0,
                 "flight_cpu_us": 240.0, "cpu_ratio": 120.0}
                for s in sizes
            ],
        },
    }  # fmt: skip
    return json.loads(json.dumps(document))  # type: ignore[no-any-return]


@pytest.fixture
def move() -> dict[str, Any]:
    """A benchmark document of move that a test may change."""
    return move_document()


def route_document() -> dict[str, Any]:
    """Like move_document(), for route."""
    placements = ["inline", "shared", "host"]

    def agents(placement: str, value: float) -> float | None:
        return None if placement == "inline" else value

    points = [("inline", "buffer_bytes", v) for v in (4096, 32768)] + [("inline", "buffers", v) for v in (2, 4)]
    points += [("host", name, v) for _, name, v in points] + [("host", "routing_threads", v) for v in (1, 2, 4)]
    head = {k: v for k, v in move_document().items() if k not in ("transports", "one_sided", "bars", "results")}
    document: dict[str, Any] = head | {
        "name": "route",
        "pinning": {"a": 0, "b": 1},
        "bars": {
            "histogram_inline_mups_20": {"value": 200.0, "min": 150.0, "max": 220.0, "unit": "M updates/s"},
            "histogram_vs_limit_20": {
                "value": 0.8, "min": 0.7, "max": 0.9, "target": ">= 0.7", "pass": True, "unit": "", "published": None,
            },
            "offload_speedup_transport": {
                "value": 1.2, "min": 1.1, "max": 1.4, "target": ">= 1.3", "pass": False, "unit": "",
                "published": "1.55 (x86 over none)",
            },
        },
        "results": {
            "histogram": [
                {"counters_log2": n, "updates": 8000000, "mups": 200.0, "limit_mups": 250.0} for n in (20, 24)
            ],
            "peers": [
                {"peer": "a <peer>", "counters_log2": n, "mups": 40.0, "inline_mups": 200.0, "ratio": 5.0,
                 "ratio_min": 4.0, "ratio_max": 6.0, "samples": [39.0, 40.0, 41.0]}
                for n in (20, 24)
            ],
            "random_sizes": [{"payload_gbytes": 9.0, "copy_gbytes": 12.0, "ratio": 0.75}],
            "agent_rate": [{"size": n, "mmps": 90.0} for n in (8, 16, 64)],
            "latency": [{"placement": p, "p50_us": 4.5, "p99_us": 9.0} for p in placements],
            "message_sizes": [
                {"placement": p, "size": n, "mmps": 800.0 / n, "gbps": 6.4, "transfer_bytes": 30000.0,
                 "blocked_share": 0.25}
                for p in placements for n in (8, 1 << 10, 1 << 20)
            ],
            "sweeps": [
                {"placement": p, "parameter": name, "value": v, "is_default": v in (1, 4, 32768), "mmps": 100.0,
                 "rank_transfer_bytes": 20000.0, "blocked_share": 0.5, "agent_transfer_bytes": agents(p, 10000.0),
                 "agent_blocked_per_transfer": agents(p, 1.5)}
                for p, name, v in points
            ],
            "weak_scaling": [
                {"nodes": n, "ns_per_message": 10.0 + n, "over_2_nodes": (10.0 + n) / 12,
                 "rank_transfer_bytes": 31000.0, "agent_transfer_bytes": 20000.0}
                for n in (1, 2, 4, 8)
            ],
            "agent_memory": [
                {"nodes": n, "rss_bytes": 4e7 + 3e5 * n, "pss_bytes": 1.3e7, "idle_rss_bytes": 3.4e7,
                 "inbox_bytes": 131328 * n, "lane_bytes": 131264 * n}
                for n in (1, 2, 4, 8, 16)
            ],
            "link": [{"placement": p, "gbps": 100.0} for p in ("inline", "host")],
            "applications": [
                {"app": app, "arguments": ["--size", "4"], "inline_seconds": 0.5, "shared_seconds": 2.0,
                 "host_seconds": 1.25, "speedup": 1.6, "inline_speedup": 4.0, "messages": 1000, "bytes": 64000,
                 "average_transfer": 20000.0, "network_share": 0.25, "mc_ratio": None if app == "transport" else 1.5,
                 "mc_estimate": 9.0 if app == "transport" else None, "category": "balanced",
                 "mc_missing": "no counter" if app == "transport" else "", "published_speedup": 1.5,
                 "published_network_share": 0.3, "published_mc_ratio": 2.3}
                for app in ("histogram", "transpose", "triangle", "sssp", "transport")
            ],
        },
    }  # fmt: skip
    return json.loads(json.dumps(document))  # type: ignore[no-any-return]


@pytest.fixture
def route() -> dict[str, Any]:
    """A benchmark document of route that a test may change."""
    return route_document()


def kv_document() -> dict[str, Any]:
    """Like move_document(), for kv."""
    head = {k: v for k, v in move_document().items() if k not in ("transports", "one_sided", "bars", "results")}
    cards = [("read", "none", 0), ("replica_write", "store", 0), ("replica_write", "accept", 0),
             ("leader_write", "store", 1), ("leader_write", "accept", 1)]  # fmt: skip
    nodes = [("wherry", "loopback", "sockets", 10.0), ("redis", "loopback", "sockets", 30.0),
             ("etcd", "loopback", "sockets", 400.0), ("wherry", "veth", "xdp", 4.0),
             ("redis", "veth", "sockets", 32.0)]  # fmt: skip
    document: dict[str, Any] = head | {
        "name": "kv",
        "pinning": {"node": 0, "client": 1},
        "not_measured": {"line_rate": "no <harness>"},
        "bars": {
            "sw_read_vs_redis": {
                "value": 3.0, "min": 2.5, "max": 3.5, "target": ">= 2", "pass": True, "unit": "",
                "published": "45 us: the thesis' software",
            },
            "luts_total": {"value": 12000, "min": 12000, "max": 12000, "target": "<= 10000", "pass": False},
            "failover_ms_p50": {"value": 11.0, "min": 9.0, "max": 14.0, "unit": "ms"},
        },
        "results": {
            "rtl_latency": [
                {"operation": o, "policy": p, "size": size, "followers": f, "memory": "simulated", "cmac_ns": 225.0,
                 "replication_rx_ns": 24.0, "replication_tx_ns": 20.0, "memory_ns": 300.0, "total_ns": 590.0}
                for o, p, f in cards for size in (64, 1024)
            ],
            "line_rate": [
                {"workload": w, "size": size, "per_second": 1e7, "limit_per_second": 1.01e7, "share": 0.99, "lost": 0}
                for w in ("read", "replica_write") for size in (64, 1024)
            ],
            "resources": [
                {"name": name, "parameters": "UserWidth 48", "lut": 2000, "lutram": 500, "ff": 3000, "bram36": 14.5,
                 "uram": 0, "levels": 8}
                for name in ("kv_parser", "kv_engine")
            ],
            "software": [
                {"system": s, "network": n, "path": path, "operation": o, "size": size, "p50_us": us * (1 + write),
                 "p50_min_us": us, "p50_max_us": us * 3, "p99_us": us * 4, "placement": "a <place>"}
                for s, n, path, us in nodes for write, o in enumerate(("read", "leader_write")) for size in (64, 1024)
            ],
            "throughput": [
                {"system": s, "operation": "read", "size": 64, "depth": d, "per_second": r, "per_second_min": r / 2,
                 "per_second_max": r * 2}
                for s, r in (("wherry", 2e6), ("redis", 6e5)) for d in (16, 64, 256)
            ],
            "failover": [
                {"timing": t, "nodes": 3, "ping_ms": p, "misses": 3, "lease_ms": 3 * p, "kills": 50, "p50_ms": 5.0 * p,
                 "p99_ms": 6.0 * p, "eager_p50_ms": 4.0 * p, "eager_p99_ms": 5.0 * p, "eager_min_ms": 3.0 * p,
                 "eager_max_ms": 5.0 * p, "detection_ms": 3.5 * p, "control_ms": 0.4, "leftovers_ms": 0.8,
                 "backoff_ms": 1.0 * p}
                for t, p in (("default", 100), ("tight", 2))
            ],
            "gateway": [
                {"system": s, "nodes": n, "operation": o, "clients": 50, "per_second": r, "per_second_min": r / 2,
                 "per_second_max": r * 2}
                for s, n, r in (("wherry", 3, 3e4), ("wherry", 1, 4e4), ("redis", 1, 5e4)) for o in ("set", "get")
            ],
        },
    }  # fmt: skip
    return json.loads(json.dumps(document))  # type: ignore[no-any-return]


@pytest.fixture
def kv() -> dict[str, Any]:
    """A benchmark document of kv that a test may change."""
    return kv_document()


def bypass_document() -> dict[str, Any]:
    """Like move_document(), for bypass."""
    head = {k: v for k, v in move_document().items() if k not in ("transports", "one_sided", "bars", "results")}
    slices = {"at_us": 1000.0, "mean_us": 8.0, "min_us": 7.9, "max_us": 8.5, "reordered": 3}
    document: dict[str, Any] = head | {
        "name": "bypass",
        "pinning": {},
        "repetitions": 1,
        "not_measured": {"qemu igb": "no QEMU with <igb>"},
        "not_run": {"kv_behind_bypass": "needs --kv FILE"},
        "bars": {
            "rate_64b_10g": {
                "value": 1.0, "min": 1.0, "max": 1.0, "target": ">= 1", "pass": True, "unit": "",
                "published": "10 Gbit/s at 300 B",
            },
            "rx_cycles": {"value": 9, "min": 9, "max": 9, "target": "<= 6", "pass": False, "unit": "cycles"},
            "model_error_batch16_latency": {
                "value": 2.0, "min": 2.0, "max": 2.0, "target": "<= 4", "pass": True, "unit": "%",
                "published": "9.92 us",
            },
        },
        "results": {
            "rtl_core": [
                {"clock_mhz": 250, "queue_pairs": 1, "slots": 256, "tx_descriptors": 512, "pack_bytes": 32768}
            ],
            "rtl_rates": [
                {"name": f"rate_{size}b_{mbits // 1000}g_{way}", "mbits": mbits, "size": size, "way": way,
                 "nic": "ice", "card_link": "gen3x16", "mpps": 14.88,
                 "share_of_line": 1.0, "bound_mpps": 39.1, "share_of_link": 0.38, "lost": 0, "tails_per_packet": 1.0,
                 "bytes_in": 201.0, "bytes_out": 181.5, "flow_control_bytes": 0.0}
                for mbits in (10_000, 100_000) for size in (64, 300) for way in ("in_place", "stream")
            ],
            "rtl_latency": [
                {"topology": t, "way": way, "mean_us": 7.7, "p99_us": 7.8, "std_us": 0.1, "loss": 0.0,
                 "tails_per_packet": 0.7, "requests_per_packet": 13.0, "published": "7.99 us"}
                for t in ("switch", "intel", "amd") for way in ("in_place", "stream")
            ],
            "rtl_curves": [
                {"topology": t, "rate_gbps": rate, "latency_us": 7.0, "loss_percent": 0.0, "tails_per_packet": 1.1}
                for t in ("switch", "intel", "amd") for rate in (0.94, 9.38)
            ],
            "rtl_overload": [
                {"name": "overload_port_switch_stream", "topology": "switch", "way": "stream", "limited_by": "port",
                 "share_of_limit": 0.999, "dropped_by_nic": 1000, "reordered": 0, "lost_uncounted": 0, "mean_us": 430.0}
            ],
            "rtl_cycles": [
                {"path": path, "least": 4, "most": 9, "samples": 40, "published": "7 + bytes / 8"}
                for path in ("rx", "tx", "inplace")
            ],
            "latency": [
                {"scenario": s, "reading": r, "frames": 1000, "mean_us": us, "deviation_ns": 20.0, "min_us": us - 0.1,
                 "max_us": us + 0.1, "published_us": f"{us} us", "error_percent": None if s == "software" else 1.0,
                 "mark": "bound" if s == "software" else "predicted" if s == "both" else "fitted"}
                for s, us in (("software", 6.0), ("both", 7.91), ("receive", 3.37), ("transmit", 4.56))
                for r in ("any_fetches", "one_fetch")
            ],
            "latency_over_time": [
                {"scenario": s, "reading": "one_fetch"} | slices | {"at_us": at}
                for s in ("software", "both", "receive", "transmit") for at in (0.0, 1000.0)
            ],
            "rates": [
                {"system": s, "topology": t, "reading": r, "rate_gbps": rate, "latency_us": 7.0,
                 "nic_loss_percent": 0.0, "loss_percent": 0.0, "frames": 1000}
                for s, t, r in (("host_bypassing", "switch", "one_fetch"), ("host_bypassing", "intel", "any_fetches"),
                                ("dpdk", "host", "one_fetch"), ("dpdk_fpga", "host", "one_fetch"))
                for rate in (0.1, 9.38)
            ],
            "overload": [
                {"topology": t, "writeback": w, "frames": 1000, "loss_percent": 15.87, "end_to_end_loss_percent": 15.9,
                 "reordered_percent": 0.0, "requests_per_packet": 16.0, "latency_us": 500.0,
                 "published_loss_percent": 15.79 if t == "intel" else None,
                 "mark": "predicted" if w else "fitted"}
                for t in ("intel", "switch") for w in (False, True)
            ],
            "overload_over_time": [
                {"topology": t, "writeback": w} | slices | {"at_us": at}
                for t in ("intel", "switch") for w in (False, True) for at in (0.0, 1000.0)
            ],
            "tcp": [
                {"topology": t, "frames": 1000, "goodput_gbps": 9.41, "latency_us": 10.0, "loss_percent": 0.0,
                 "published_goodput_gbps": 9.29, "published_latency_us": 13.12, "published_loss_percent": 0.0,
                 "mark": "not modelled" if t == "intel" else "predicted"}
                for t in ("intel", "amd", "switch")
            ],
            "batching": [
                {"reading": r, "batch": b, "timeout_ns": 0 if b == 1 else 2500, "frames": 1000, "latency_us": 8.0,
                 "deviation_ns": 3.0, "outgoing": 317.0, "ingoing": 316.0, "packets_per_tail": float(b),
                 "published_latency_us": 9.92, "published_deviation_ns": 65.0, "published_outgoing": 317.0,
                 "published_ingoing": 316.0, "mark": "predicted"}
                for r in ("any_fetches", "one_fetch") for b in (1, 8, 16)
            ],
            "constants": [
                {"name": "rx_ns", "value": 2500.0, "unit": "ns", "mark": "fitted", "source": "3.37 us <one way>"},
                {"name": "ring", "value": 64.0, "unit": "descriptors", "mark": "given", "source": "IV"},
            ],
            "resources": [
                {"name": name, "parameters": "", "lut": 4000, "lutram": 800, "ff": 3000, "bram36": 16.0, "uram": 15,
                 "levels": 8}
                for name in ("bypass_port", "bypass_core")
            ],
            "qemu": [
                {"nic": "e1000e", "qemu": "QEMU emulator version 7.2", "frames": 10_000, "wrong": 0, "lost": 0,
                 "tx_writebacks": 0, "messages_per_frame": 100.0, "tails_per_frame": 1.1, "good": True}
            ],
            "guest": [{"setup_s": 18.0, "frames_while_stopped": 1000, "frames_wrong": 0}],
            "kv": [{"runs": 20, "linearizable": 20, "read_us": 9.0, "kv_read_us": 0.5}],
        },
    }  # fmt: skip
    return json.loads(json.dumps(document))  # type: ignore[no-any-return]


@pytest.fixture
def bypass() -> dict[str, Any]:
    """A benchmark document of bypass that a test may change."""
    return bypass_document()
