# SPDX-License-Identifier: Apache-2.0
"""One table from a stream that several agents have, for pyarrow, DuckDB and Polars."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow.compute as pc
import pytest
from agents import Agent
from inputs import WAIT

import wherry
from wherry.move.flight import flight_client
from wherry.system import wherryd

pytestmark = pytest.mark.agent


def values(agent: int, tag: int) -> dict[str, np.ndarray[Any, Any]]:
    ids = np.arange(1000) + 1000 * agent
    return {"id": ids, "x": np.sin(ids) * tag, "v": np.stack([ids, ids, ids], axis=1) * 1.0}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Three agents with the stream "field" and tags 1 to 3. The last agent does not have tag 3 yet. The first has two
    parts."""
    agents = [Agent(tmp_path_factory.mktemp("agent"), wherryd()) for _ in range(3)]
    sessions: list[wherry.Session] = []
    try:
        for number, agent in enumerate(agents):
            parts = 2 if number == 0 else 1
            whole = {tag: values(number, tag) for tag in (1, 2, 3)}
            for part in range(parts):
                sessions.append(wherry.Session(str(agent.session_file)))
                first = {name: column[part::parts] for name, column in whole[1].items()}
                options: dict[str, Any] = {"part": part, "parts": parts} if parts > 1 else {}
                stream = sessions[-1].stream("field", first, **options)
                for tag in (1, 2) if number == 2 else (1, 2, 3):
                    mine = {name: np.ascontiguousarray(column[part::parts]) for name, column in whole[tag].items()}
                    stream.offload(mine, tag=tag).wait(WAIT)
        odd = sessions[-1].stream("odd", {"id": np.zeros(1)})
        odd.offload({"id": np.zeros(1)}).wait(WAIT)
        sessions[0].stream("odd", {"id": np.zeros(1, np.int32)})
        yield [str(agent.session_file) for agent in agents]
    finally:
        for session in sessions:
            session.close()
        for agent in agents:
            agent.stop()


def wanted(tag: int) -> dict[str, np.ndarray[Any, Any]]:
    each = [values(agent, tag) for agent in range(3)]
    return {name: np.concatenate([one[name] for one in each]) for name in ("id", "x")}


def test_a_step_of_all_agents_is_one_table(files: list[str]) -> None:
    with wherry.dataset("field", files) as field:
        assert field.tags() == [1, 2]
        assert field.schema.names == ["id", "x", "v"]
        for table in (field.table(), field.reader().read_all()):
            assert table.num_rows == 3000
            ordered = table.sort_by("id")
            for name, column in wanted(2).items():
                assert np.array_equal(ordered[name], column)
        assert field.table(1)["x"].to_pylist() != field.table(2)["x"].to_pylist()
        with pytest.raises(wherry.NotFound, match="no frame of 'field' with tag 3"):
            field.table(3)


def test_columns_and_rows_are_chosen_by_the_agents(files: list[str]) -> None:
    condition = pc.field("x") > 1.9
    with wherry.dataset("field", files, columns=["id"], filter=condition, compression="zstd") as field:
        table = field.table(2)
        assert table.schema.names == ["id"]
        expected = wanted(2)
        assert sorted(table["id"].to_pylist()) == expected["id"][expected["x"] > 1.9].tolist()


def test_duckdb_and_polars_read_it(files: list[str]) -> None:
    with wherry.dataset("field", files, columns=["id", "x"]) as field:
        expected = wanted(1)
        rows = field.reader(1)
        count, total = duckdb.execute("select count(*), sum(x) from rows where id >= 500").fetchall()[0]
        assert count == 2500
        assert rows.schema == field.schema
        assert total == pytest.approx(expected["x"][500:].sum(), rel=1e-12, abs=1e-9)
        frame = pl.from_arrow(field.table(1))
        assert isinstance(frame, pl.DataFrame)
        assert frame.filter(pl.col("id") >= 500)["x"].sum() == pytest.approx(total, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "options", "opened"),
    [
        ("nobody", {}, 3),
        ("odd", {}, 3),
        ("field", {"columns": ["y"]}, 3),
        ("field", {"filter": "x > 3"}, 3),
        ("field", {"missing": True}, 3),
    ],
)
def test_a_refused_dataset_closes_its_connections(
    files: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, options: dict[str, Any], opened: int
) -> None:
    made: list[Any] = []

    class Client:
        def __init__(self, client: Any) -> None:
            self.client, self.closed = client, False

        def __getattr__(self, name: str) -> Any:
            return getattr(self.client, name)

        def close(self) -> None:
            self.closed = True
            self.client.close()

    def recorded(session: Any) -> Any:
        client, call_options = flight_client(session)
        made.append(Client(client))
        return made[-1], call_options

    monkeypatch.setattr("wherry.move.agents.flight_client", recorded)
    known = files if not options.pop("missing", False) else [*files, str(tmp_path / "nobody.json")]
    with pytest.raises(wherry.Error):
        wherry.dataset(name, known, **options)
    assert [one.closed for one in made] == [True] * opened


def test_agents_that_do_not_fit_are_named(files: list[str], tmp_path: Path) -> None:
    with pytest.raises(wherry.NotFound, match="nobody"):
        wherry.dataset("nobody", files)
    with pytest.raises(wherry.InvalidArgument, match="other columns at the agent"):
        wherry.dataset("odd", [files[0], files[2]])
    with pytest.raises(wherry.InvalidArgument, match="one at least"):
        wherry.dataset("field", [])
    with pytest.raises(wherry.InvalidArgument, match="list of agents"):
        wherry.dataset("field", files[0])
    with pytest.raises(wherry.InvalidArgument, match="no 'y'"):
        wherry.dataset("field", files, columns=["y"])
    with pytest.raises(wherry.Error):
        wherry.dataset("field", [*files, str(tmp_path / "none.json")])
