# SPDX-License-Identifier: Apache-2.0
"""Streams in parts: several sessions post parts of the same steps. Readers see a whole step or none of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest
from agents import Agent
from inputs import STRATEGIES, WAIT, Bench
from jobs import eventually
from parts_rank import values

import wherry
from wherry.session.metrics import read_metrics

pytestmark = pytest.mark.agent

MPIEXEC = Path(sys.prefix) / "bin" / "mpiexec"


@contextmanager
def parts_of(file: Path, name: str, data: list[dict[str, Any]], **options: Any) -> Iterator[list[wherry.Stream]]:
    """Opens a session with a stream for each element of `data`."""
    with ExitStack() as stack:
        sessions = [stack.enter_context(wherry.Session(str(file), name=f"rank{part}")) for part in range(len(data))]
        yield [
            session.stream(name, one, part=part, parts=len(data), **options)
            for part, (session, one) in enumerate(zip(sessions, data, strict=True))
        ]


def numbers(part: int, tag: int, rows: int = 100) -> dict[str, np.ndarray[Any, Any]]:
    return {"x": np.arange(rows + part, dtype=np.float64) + 1000 * tag + 0.1 * part}


def status(bench: Bench, name: str) -> wherry.move.StreamStatus:
    (found,) = [stream for stream in wherry.streams(bench.file) if stream.name == name]
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_step_is_read_as_one_table_or_part_by_part(bench: Bench, strategy: str) -> None:
    name = bench.name()
    with parts_of(bench.file, name, [numbers(part, 0) for part in range(3)], strategy=strategy) as streams:
        for tag in (5, 6):
            for part in (2, 0, 1):
                assert [f.tag for f in wherry.open(name, bench.file, follow=False)] == list(range(5, tag))
                streams[part].offload(numbers(part, tag), tag=tag).wait(WAIT)
        assert (status(bench, name).parts, status(bench, name).open_parts) == (3, 3)
    with wherry.open(name, bench.file, timeout=WAIT) as reader:
        frames = list(reader)
    assert [(frame.sequence, frame.tag, frame.rows) for frame in frames] == [(0, 5, 303), (1, 6, 303)]
    for frame in frames:
        wanted = np.concatenate([numbers(part, frame.tag)["x"] for part in range(3)])
        assert np.array_equal(frame.table["x"].to_numpy(), wanted)
        assert [batch.num_rows for batch in frame.batches] == [100, 101, 102]
        with pytest.raises(wherry.FailedPrecondition, match="3 parts is not one batch"):
            _ = frame.batch
    with wherry.open(name, bench.file, follow=False, part=1) as reader:
        for frame in reader:
            assert np.array_equal(frame.batch["x"], numbers(1, frame.tag)["x"])
    with pytest.raises(wherry.Error, match="no part 3"), wherry.open(name, bench.file, part=3) as reader:
        next(reader)


def test_flight_has_an_endpoint_for_each_part_or_one_stream(bench: Bench) -> None:
    name = bench.name()
    with parts_of(bench.file, name, [numbers(part, 0) for part in range(4)]) as streams:
        for tag in range(3):
            for part, stream in enumerate(streams):
                stream.offload(numbers(part, tag), tag=tag).wait(WAIT)
        whole = list(wherry.flight_frames(bench.client, bench.options, name, follow=False))
        assert [(about["tag"], about["part"], about["parts"]) for about, _ in whole] == [
            (tag, part, 4) for tag in range(3) for part in range(4)
        ]
        for about, batch in whole:
            assert about["rows"] == batch.num_rows
            assert np.array_equal(batch["x"], numbers(about["part"], about["tag"])["x"])
        one = list(wherry.flight_frames(bench.client, bench.options, name, follow=False, part=2, from_sequence=1))
        assert [(about["tag"], about["part"]) for about, _ in one] == [(1, 2), (2, 2)]
        info = bench.client.get_flight_info(flight.FlightDescriptor.for_path(name), bench.options)
        streams[0].offload(numbers(0, 3), tag=3).wait(WAIT)  # no endpoint has later steps
    assert len(info.endpoints) == 4
    assert info.total_records == 3 * (100 + 101 + 102 + 103)
    for part, endpoint in enumerate(info.endpoints):
        table = bench.client.do_get(endpoint.ticket, bench.options).read_all()
        assert np.array_equal(table["x"], np.concatenate([numbers(part, tag)["x"] for tag in range(3)]))
    with pytest.raises(pa.ArrowInvalid, match="no part 4"):
        list(bench.client.do_get(flight.Ticket(f'{{"stream":"{name}","part":4}}'.encode()), bench.options))


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_a_step_becomes_one_file(bench: Bench, tmp_path: Path, kind: str) -> None:
    data = [{"w": pa.array([f"{part}{i}" for i in range(5)]).dictionary_encode()} for part in range(3)]
    options = {"sink_dir": str(tmp_path), "sink_format": kind}
    with parts_of(bench.file, bench.name(), data, **options) as streams:
        for tag in range(2):
            for part, stream in enumerate(streams):
                stream.offload(data[part], tag=tag).wait(WAIT)
        streams[0].offload(data[0], tag=2).wait(WAIT)  # never complete
    wanted = [f"{part}{i}" for part in range(3) for i in range(5)]
    assert eventually(lambda: len([f for f in tmp_path.iterdir() if f.suffix in (".arrow", ".parquet")]) == 2)
    for file in sorted(tmp_path.iterdir()):
        table = pq.read_table(file) if kind == "parquet" else pa.ipc.open_file(file).read_all()
        assert table["w"].to_pylist() == wanted


def test_parts_must_agree(bench: Bench) -> None:
    name = bench.name()
    x = {"x": np.zeros(3)}
    session = bench.session
    with pytest.raises(wherry.InvalidArgument, match="go together"):
        session.stream(name, x, part=1)
    with pytest.raises(wherry.InvalidArgument, match="parts is 0"):
        session.stream(name, x, part=0, parts=0)
    with pytest.raises(wherry.InvalidArgument, match="numbered from 0 to 1"):
        session.stream(name, x, part=2, parts=2)
    with pytest.raises(wherry.InvalidArgument, match="want 4096 at most"):
        session.stream(name, x, part=2, parts=4097)
    with session.stream(name, x, part=0, parts=2):
        with pytest.raises(wherry.AlreadyExists, match=f'part 0 of stream "{name}" is open already, by .*pid'):
            session.stream(name, x, part=0, parts=2)
        cases: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
            ("number of parts is 3 here, and 2", x, {"part": 1, "parts": 3}),
            ("number of parts is 0 here, and 2", x, {}),
            ("retention", x, {"part": 1, "parts": 2, "keep_frames": 3}),
            ("strategy is arrays", x, {"part": 1, "parts": 2, "strategy": "arrays"}),
            ("type of column 'x' is 'f' here, and 'g'", {"x": np.zeros(3, "f4")}, {"part": 1, "parts": 2}),
            ("column 0 is 'y' here, and 'x'", {"y": np.zeros(3)}, {"part": 1, "parts": 2}),
        ]
        for what, other, options in cases:
            with pytest.raises(wherry.InvalidArgument, match=what):
                session.stream(name, other, **options)
        session.stream(name, x, part=1, parts=2).close()


def test_the_tags_of_a_part_rise(bench: Bench) -> None:
    x = {"x": np.zeros(3)}
    with bench.session.stream(bench.name(), x, part=0, parts=1) as stream:
        stream.offload(x, tag=7).wait(WAIT)
        step = stream.bind(x)
        with pytest.raises(wherry.InvalidArgument, match="tag 7 after tag 7: a part posts each step once"):
            stream.offload(x, tag=7)
        with pytest.raises(wherry.InvalidArgument, match="tag 3 after tag 7: a part posts each step once"):
            step.post(3)
        step.post(8).wait(WAIT)


def test_a_part_that_leaves_is_an_error_for_the_others_until_it_is_back(bench: Bench) -> None:
    name = bench.name()
    x = {"x": np.zeros(10)}
    with wherry.Session(str(bench.file)) as stays:
        stream = stays.stream(name, x, part=0, parts=2)
        leaves = wherry.Session(str(bench.file))
        other = leaves.stream(name, x, part=1, parts=2)
        for tag in (1, 2):
            stream.offload(x, tag=tag).wait(WAIT)
        other.offload(x, tag=1).wait(WAIT)
        assert (status(bench, name).incomplete_steps, status(bench, name).next) == (1, 1)
        leaves.close()
        assert eventually(lambda: status(bench, name).discarded_steps == 1)
        assert status(bench, name).incomplete_steps == 0
        with pytest.raises(wherry.Unavailable, match="part 1 of the stream has gone or was closed"):
            stream.offload(x, tag=3).wait(WAIT)
        again = stays.stream(name, x, part=1, parts=2)
        again.offload(x, tag=4)
        stream.offload(x, tag=4).wait(WAIT)
        again.offload(x, tag=6).wait(WAIT)  # without 5
        with pytest.raises(wherry.FailedPrecondition, match="part 1 of the stream has gone on to a later tag"):
            stream.offload(x, tag=5).wait(WAIT)
        stays.drain(WAIT)
    assert [(frame.sequence, frame.tag) for frame in wherry.open(name, bench.file, follow=False)] == [(0, 1), (1, 4)]
    assert read_metrics(bench.agent.session)["wherry_move_discarded_steps_total"] >= 2


def test_nothing_is_lost_when_full_means_wait(bench: Bench) -> None:
    name = bench.name()
    options = {"keep_frames": 1, "when_full": "wait"}
    with parts_of(bench.file, name, [numbers(part, 0) for part in range(2)], **options) as streams:
        tickets = [
            stream.offload(numbers(part, tag), tag=tag) for tag in range(6) for part, stream in enumerate(streams)
        ]
        tickets[0].wait(WAIT)
        tickets[1].wait(WAIT)
        assert status(bench, name).held_frames == 1
        assert not any(ticket.ready() for ticket in tickets[2:])
        seen = []
        with wherry.open(name, bench.file, timeout=WAIT) as reader:
            for frame in reader:
                seen.append((frame.tag, frame.skipped, frame.rows))
                assert status(bench, name).held_frames == 1
                del frame
                if len(seen) == 6:
                    break
        assert seen == [(tag, 0, 201) for tag in range(6)]


def test_parts_that_run_ahead_leave_room_for_the_others(make_agent: Any) -> None:
    agent: Agent = make_agent("--budget", "8MiB")
    large = {"x": np.zeros(1 << 17)}  # 1 MiB
    with parts_of(agent.session_file, "s", [large] * 2, keep_frames=0) as streams:
        ahead = [streams[0].offload(large, tag=tag) for tag in range(20)]
        ahead[0].wait(WAIT)
        assert not ahead[-1].ready()
        for tag in range(20):
            streams[1].offload(large, tag=tag).wait(WAIT)
        for ticket in ahead:
            ticket.wait(WAIT)
    (found,) = wherry.streams(agent.session_file)
    assert (found.total_frames, found.discarded_steps) == (20, 0)


STEPS, RANKS, AT = 100, 4, 60


def ranks_of(launcher: str, agent: Agent, victim: int) -> tuple[int, str]:
    """Runs the ranks; returns the exit status and their output. MPICH's launcher kills all ranks when one dies. Ranks
    that are started separately continue."""
    script = Path(__file__).with_name("parts_rank.py")
    rank = [sys.executable, str(script), str(agent.session_file), "particles", str(STEPS), str(victim), str(AT)]
    lines = [[str(MPIEXEC), "-n", str(RANKS), *rank]] if launcher == "mpiexec" else [rank] * RANKS
    processes = []
    for number, line in enumerate(lines):
        environment = dict(os.environ)
        if launcher != "mpiexec":
            environment |= {"PMI_RANK": str(number), "PMI_SIZE": str(RANKS)}
        processes.append(
            subprocess.Popen(
                line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                text=True,
            )
        )  # fmt: skip
    said = [process.communicate(timeout=300)[0] for process in processes]
    return max(abs(process.returncode) for process in processes), "".join(said)


@pytest.mark.parametrize(("launcher", "victim"), [("mpiexec", -1), ("mpiexec", 2), ("one by one", 2)])
def test_four_ranks_post_a_hundred_steps(make_agent: Any, launcher: str, victim: int) -> None:
    agent: Agent = make_agent("--budget", "512MiB")
    status, said = ranks_of(launcher, agent, victim)
    tags = []
    with wherry.open("particles", agent.session_file, follow=False) as reader:
        for frame in reader:
            assert len(frame.batches) == RANKS, "half a step"
            for rank, batch in enumerate(frame.batches):
                ids, pairs = values(rank, frame.tag)
                assert np.array_equal(batch["id"], ids)
                assert np.array_equal(batch["pair"].values, pairs.reshape(-1)), (frame.tag, rank)
            total = frame.table["pair"].combine_chunks().values.to_numpy().sum()
            wanted = sum(values(rank, frame.tag)[1].sum() for rank in range(RANKS))
            assert abs(total - wanted) <= 1e-12 * frame.rows
            tags.append(frame.tag)
    (found,) = wherry.streams(agent.session_file)
    assert (found.incomplete_steps, found.open) == (0, False)
    assert tags == list(range(1, len(tags) + 1))
    if victim < 0:
        assert (status, len(tags), found.discarded_steps) == (0, STEPS, 0), said
        return
    assert status != 0, said
    # mpiexec kills the other ranks, too, and the agent may notice the loss of one of those first.
    lost = set(re.findall(r"part (\d) \(rank\d, pid", agent.log.read_text()))
    assert (lost if launcher == "mpiexec" else str(victim) in lost) or found.discarded_steps == 0
    if launcher == "mpiexec":
        assert len(tags) <= AT
    else:
        assert AT - 1 <= len(tags) <= AT, said
        # The error names the victim, or a rank that left because of it.
        told = len(re.findall(r"part \d of the stream has gone or was closed", said))
        assert f"part {victim} of the stream has gone or was closed" in said or told == 0
        assert told + said.count(f": {STEPS} steps") == RANKS - 1, said  # fast ranks had posted all their steps
