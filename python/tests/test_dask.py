# SPDX-License-Identifier: Apache-2.0
"""A dataset as Dask's partitions: values, types and errors. Also a real cluster beside a LAMMPS run that loses a
rank."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from agents import Agent
from inputs import WAIT
from test_agents_dataset import files, values  # noqa: F401 (files is a fixture)
from test_lammps_fix import APPS, plugin  # noqa: F401 (plugin is a fixture)
from test_lammps_ranks import INPUT, RANKS, check_frames

import wherry
from wherry.system import paths

pytestmark = pytest.mark.agent

VICTIM, AT = 2, 60
PATIENT = {
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1h",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "1h",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1h",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}
"""The cluster's settings: time limits that only end hangs, and little background work."""


@pytest.fixture(autouse=True)
def in_this_process() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def expected(*tags: int) -> pd.DataFrame:
    """The rows of the three agents in `files`, in the form that Dask returns."""
    rows = []
    for tag in tags:
        for agent in range(3):
            columns = values(agent, tag)
            parts = 2 if agent == 0 else 1
            for part in range(parts):
                mine = {name: column[part::parts] for name, column in columns.items()}
                vectors = {f"v_{i}": mine["v"][:, i] for i in range(3)}
                tag_column = np.full(len(mine["id"]), tag, np.uint64)
                rows.append(pd.DataFrame({"tag": tag_column, "id": mine["id"], "x": mine["x"], **vectors}))
    return pd.concat(rows)


def test_a_partition_is_a_frame_or_part_at_an_agent(files: list[str]) -> None:  # noqa: F811
    with wherry.dataset("field", files) as field:
        frame = field.to_dask()
        assert frame.npartitions == 2 * 4
        pd.testing.assert_frame_equal(frame.compute(), expected(1, 2))
        assert frame.dtypes.equals(frame.compute().dtypes)
        pd.testing.assert_frame_equal(field.to_dask([2]).compute(), expected(2))
        tables = dask.compute(*field.to_delayed([1]))
        assert [table.num_rows for table in tables] == [500, 500, 1000, 1000]
        assert pa.concat_tables(tables).equals(field.table(1))
        assert len(frame) == 2 * 3000
        with pytest.raises(wherry.NotFound, match="no frame of 'field' with tag 3"):
            field.to_dask([1, 3])
        assert len(field.to_dask([]).compute()) == 0


def test_columns_and_rows_are_chosen_by_the_agents(
    files: list[str],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The columns that Dask selects are also selected in the requests to the agents."""
    asked: list[list[str]] = []

    def spy(*arguments: Any, **named: Any) -> Any:
        asked.append(named["columns"])
        return wherry.flight_frames(*arguments, **named)

    monkeypatch.setattr("wherry.move.dask_source.flight_frames", spy)
    with wherry.dataset("field", files, filter=pc.field("x") > 1.9, compression="lz4") as field:
        hot = expected(2)[lambda f: f.x > 1.9]
        frame = field.to_dask([2])
        assert frame.v_1.sum().compute() == hot.v_1.sum()
        assert asked == [["v"]] * 4
        assert frame.tag.count().compute() == len(hot)
        pd.testing.assert_frame_equal(frame.compute(), hot.set_index(frame.compute().index))


def test_the_graph_holds_no_token(files: list[str]) -> None:  # noqa: F811
    with wherry.dataset("field", files) as field:
        graph = pickle.dumps((field.to_dask().dask, field.to_delayed()[0].dask))
    for file in files:
        assert str(file).encode() in graph
        assert json.loads(Path(file).read_text())["token"].encode() not in graph


def test_types_do_not_depend_on_values(agent: Agent) -> None:
    table = pa.table(
        {
            "whole": pa.array([1, None, 3], pa.int32()),
            "name": pa.array(["a", None, "c"]),
            "tags": pa.array([[1], [], None], pa.list_(pa.int8())),
            "yes": pa.array([True, False, None]),
        }
    )
    with wherry.Session(str(agent.session_file)) as session, session.stream("odd", table, keep_frames=0) as stream:
        stream.offload(table, tag=1).wait(WAIT)
        whole = table.slice(0, 1)
        stream.offload(whole, tag=2).wait(WAIT)
        with wherry.dataset("odd", [session]) as odd:
            frame = odd.to_dask()
            one, two = (frame.partitions[i].compute() for i in range(2))
            assert one.dtypes.equals(two.dtypes)
            assert one.dtypes.equals(frame.dtypes)
            assert pa.Table.from_pandas(one.drop(columns="tag"), preserve_index=False).to_pydict() == table.to_pydict()
            with pytest.raises(wherry.InvalidArgument, match="has a column 'name'"):
                odd.to_dask(tag="name")
            assert list(odd.to_dask(tag=None).columns) == table.column_names


def test_names_that_would_be_there_twice_are_refused(agent: Agent) -> None:
    data = {"v": np.zeros((4, 2)), "v_1": np.zeros(4)}
    with wherry.Session(str(agent.session_file)) as session, session.stream("twice", data) as stream:
        stream.offload(data, tag=1).wait(WAIT)
        with wherry.dataset("twice", [agent.session_file]) as twice:
            with pytest.raises(wherry.InvalidArgument, match="two columns would be named 'v_1'"):
                twice.to_dask()
            assert twice.to_delayed()[0].compute().column_names == ["v", "v_1"]


def test_a_frame_that_has_gone_is_an_error(agent: Agent) -> None:
    with wherry.Session(str(agent.session_file)) as session:
        data = {"x": np.zeros(10)}
        stream = session.stream("short", data, keep_frames=1)
        stream.offload(data, tag=1).wait(WAIT)
        with wherry.dataset("short", [agent.session_file]) as short:
            planned = short.to_dask()
            stream.offload(data, tag=2).wait(WAIT)
            with pytest.raises(wherry.NotFound, match=r"no longer holds frame 0 of 'short' \(tag 1\)"):
                planned.compute()
            planned = short.to_dask()
            stream.close()
            with session.stream("short", {"x": np.zeros(20)}) as again:
                for tag in (1, 2):
                    again.offload({"x": np.zeros(20)}, tag=tag).wait(WAIT)
                with pytest.raises(wherry.NotFound, match="was opened anew"):
                    planned.compute()
                planned = short.to_dask()
            # The new stream has the same columns, rows, tag and sequence number.
            with session.stream("short", {"x": np.ones(20)}) as last:
                for tag in (1, 2):
                    last.offload({"x": np.ones(20)}, tag=tag).wait(WAIT)
                with pytest.raises(wherry.NotFound, match="was opened anew"):
                    planned.compute()
                assert short.to_dask().x.sum().compute() == 40


@pytest.mark.usefixtures("mpich_segments")
@pytest.mark.timeout(200)
def test_a_cluster_reads_the_complete_steps_of_a_run_that_lost_a_rank(
    tmp_path: Path,
    plugin: Path,  # noqa: F811
    agent: Agent,
) -> None:
    """Four MPICH ranks, 100 steps. Rank 2 dies in step 60, after it posted the positions and before it posts the
    velocities."""
    options = f"agent {agent.session_file} keep 0"
    truth = tmp_path / "truth.txt"
    text = INPUT.format(plugin=plugin, truth=truth, options=options, steps=100, every=1)
    script = tmp_path / "in.melt"
    script.write_text(text.replace("fix w all", "fix death all external pf/callback 1 1\nfix w all"))
    site = Path(np.__file__).resolve().parents[1]
    environment = os.environ | {
        "LD_LIBRARY_PATH": f"{site}/libucx/lib:{sys.prefix}/lib",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{paths.PACKAGE.parent}{os.pathsep}{APPS}",
    }
    rank = [sys.executable, str(Path(__file__).parent / "lammps_rank.py"), str(script), str(VICTIM), str(AT)]
    job = subprocess.run(
        [f"{sys.prefix}/bin/mpiexec", "-n", str(RANKS), *rank],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert job.returncode != 0, job.stdout
    assert "KILLED" in (job.stdout + job.stderr).upper(), job.stdout + job.stderr
    steps = check_frames(agent, truth)

    done = subprocess.run(
        [sys.executable, str(APPS / "lammps_dask.py"), "--agent", str(agent.session_file), "--workers", "2"],
        env=environment | PATIENT,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["step"] for one in found] == steps == list(range(1, len(steps) + 1))
    assert AT - 3 <= steps[-1] < AT, "its last complete frames may not have been fetched yet when it died"
    wanted = {
        int(line.split()[0]): [float(word) for word in line.split()[1:]]
        for line in truth.read_text().splitlines(keepends=True)
        if line.endswith("\n") and not line.startswith("#")
    }
    for one in found:
        assert one["atoms"] == 4000, "half a step"
        assert [one["kinetic_energy"], *one["position_sum"]] == pytest.approx(wanted[one["step"]], rel=1e-12)


def test_dask_is_optional(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    with wherry.Session(str(agent.session_file)) as session, session.stream("s", {"x": np.zeros(1)}):
        monkeypatch.setitem(sys.modules, "dask", None)
        monkeypatch.setitem(sys.modules, "dask.dataframe", None)
        with wherry.dataset("s", [session]) as s:
            for call in (s.to_dask, s.to_delayed):
                with pytest.raises(wherry.Unsupported, match=r"pip install 'wherry\[dask\]'"):
                    call()
    assert dd.DataFrame is not None
