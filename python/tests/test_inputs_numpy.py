# SPDX-License-Identifier: Apache-2.0
"""numpy arrays through a real agent and back: by wherry.open and by Flight."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from inputs import NUMBERS, STRATEGIES, Bench, back, numbers

import wherry

pytestmark = pytest.mark.agent


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numpy_numbers_of_one_and_two_dimensions(bench: Bench, dtype: str) -> None:
    data = {"x": numbers(dtype, 1000), "y": numbers(dtype, 1000, 3), "z": numbers(dtype, 1000, 1)}
    got = bench.deliver(data)
    kind = pa.from_numpy_dtype(np.dtype(dtype))
    assert got.schema.types == [kind, pa.list_(kind, 3), pa.list_(kind, 1)]
    assert not any(field.nullable for field in got.schema)
    for name, wanted in data.items():
        np.testing.assert_array_equal(back(got[name], wanted), wanted)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("rows", [0, 1, 7, 4096])
def test_numpy_rows_by_strategy(bench: Bench, strategy: str, rows: int) -> None:
    data = {"x": numbers("f8", rows), "y": numbers("i4", rows, 2)}
    got = bench.deliver(data, strategy=strategy)
    assert got.num_rows == rows
    for name, wanted in data.items():
        np.testing.assert_array_equal(back(got[name], wanted), wanted)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_numpy_datetimes_keep_their_unit_and_their_nat(bench: Bench, unit: str) -> None:
    moments = np.array(["2026-11-20T12:34:56", "1969-12-31T23:59:59", "NaT"], f"M8[{unit}]")
    spans = np.array([1, -5, "NaT"], f"m8[{unit}]")
    pairs = np.stack([moments, moments[::-1]], axis=1)
    got = bench.deliver({"t": moments, "d": spans, "p": pairs})
    assert got.schema.types == [pa.timestamp(unit), pa.duration(unit), pa.list_(pa.timestamp(unit), 2)]
    np.testing.assert_array_equal(back(got["t"], moments), moments)
    np.testing.assert_array_equal(back(got["d"], spans), spans)
    np.testing.assert_array_equal(back(got["p"], pairs), pairs)
    assert [got["t"].null_count, got["d"].null_count] == [0, 0]
    assert got["t"].cast(pa.int64())[2].as_py() == got["d"].cast(pa.int64())[2].as_py() == -(2**63)
    nulls = bench.deliver({"t": pa.array(moments), "d": pa.array(spans)})
    assert [nulls["t"].null_count, nulls["d"].null_count] == [1, 1]
    assert nulls["t"][2].as_py() is None


def test_numpy_days_become_dates(bench: Bench) -> None:
    days = np.array(["2026-11-20", "1900-01-01", "NaT"], "M8[D]")
    got = bench.deliver({"d": days, "p": np.stack([days, days], axis=1)})
    assert got.schema.types == [pa.date32(), pa.list_(pa.date32(), 2)]
    assert got["d"].null_count == 1
    np.testing.assert_array_equal(got["d"].to_numpy(zero_copy_only=False), days)
    np.testing.assert_array_equal(got["p"].flatten().to_numpy(zero_copy_only=False)[::2], days)


@pytest.mark.parametrize("dtype", ["M8[h]", "M8[Y]", "M8[W]", "m8[D]", "M8", "c16", "longdouble", "V3", "i4,f8"])
def test_numpy_types_without_an_arrow_type_are_refused_by_name(bench: Bench, dtype: str) -> None:
    values = np.zeros(3, dtype)
    with pytest.raises(wherry.Unsupported, match="column 'x': no Arrow type for numpy's"):
        bench.session.stream(bench.name(), {"x": values})
    with (
        bench.session.stream(bench.name(), {"x": np.zeros(3)}) as stream,
        pytest.raises(wherry.Unsupported, match="column 'x'"),
    ):
        stream.offload({"x": values})


def test_numpy_booleans_are_packed(bench: Bench) -> None:
    flags = np.arange(101) % 3 == 0
    pairs = (np.arange(202) % 5 == 1).reshape(101, 2)
    got = bench.deliver({"f": flags, "p": pairs})
    assert got.schema.types == [pa.bool_(), pa.list_(pa.bool_(), 2)]
    np.testing.assert_array_equal(back(got["f"], flags), flags)
    np.testing.assert_array_equal(back(got["p"], pairs), pairs)


def test_numpy_strings(bench: Bench) -> None:
    words = ["", "Grüße", "a" * 100, "x\0y"]
    data = {
        "u": np.array(words),
        "s": np.array([b"ab", b"", b"\xff\x00c", b"d"]),
        "o": np.array(["a", None, "ccc", ""], dtype=object),
        "t": np.array(words, dtype=np.dtypes.StringDType()),
        "p": np.array([words[:2], words[2:], words[1:3], words[:2]]),
    }
    got = bench.deliver(data)
    assert got.schema.types == [pa.string(), pa.binary(), pa.string(), pa.string(), pa.list_(pa.string(), 2)]
    assert got["u"].to_pylist() == words
    assert got["s"].to_pylist() == [b"ab", b"", b"\xff\x00c", b"d"]
    assert got["o"].to_pylist() == ["a", None, "ccc", ""]
    assert got["t"].to_pylist() == words
    assert got["p"].to_pylist() == [words[:2], words[2:], words[1:3], words[:2]]
    large = bench.deliver({"u": data["u"]}, pa.schema({"u": pa.large_string()}))
    assert large["u"].to_pylist() == words


def test_numpy_objects_that_are_no_texts(bench: Bench) -> None:
    assert bench.deliver({"o": np.array([1, None, 3], dtype=object)})["o"].to_pylist() == [1, None, 3]
    with pytest.raises(wherry.InvalidArgument, match="column 'o'"):
        bench.session.stream(bench.name(), {"o": np.array([object(), 1], dtype=object)})


def test_numpy_layouts_that_are_copied_first(bench: Bench) -> None:
    base = numbers("f8", 60, 4)
    data = {
        "strided": base[::2, 1],
        "reversed": base[::-2, 0],
        "columns": base[:30, 1:3],
        "fortran": np.asfortranarray(base[:30]),
        "swapped": base[:30, 3].astype(">f8"),
        "swapped_pairs": base[:30, :2].astype(">f4"),
        "transposed": numbers("i4", 2, 30).T,
        "repeated": np.broadcast_to(np.int16(5), 30),
    }
    got = bench.deliver(data)
    for name, wanted in data.items():
        np.testing.assert_array_equal(back(got[name], wanted), wanted)


def test_numpy_masked_arrays_have_nulls(bench: Bench) -> None:
    got = bench.deliver({"x": np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])})
    assert got["x"].to_pylist() == [1.0, None, 3.0]


def test_numpy_read_only_arrays_and_rows_without_values(bench: Bench) -> None:
    fixed = numbers("f4", 50)
    fixed.flags.writeable = False
    got = bench.deliver({"x": fixed, "none": np.zeros((50, 0))})
    np.testing.assert_array_equal(back(got["x"], fixed), fixed)
    assert got["none"].to_pylist() == [[]] * 50


@pytest.mark.parametrize("shape", [(), (2, 3, 4), (2, 1, 1, 1)])
def test_numpy_other_dimensions_are_refused(bench: Bench, shape: tuple[int, ...]) -> None:
    for kind in ("f8", "bool", "U3", "M8[ns]", "M8[D]"):
        values = np.zeros(shape, kind)
        with pytest.raises(wherry.InvalidArgument, match=f"column 'x': {len(shape)} dimensions"):
            bench.session.stream(bench.name(), {"x": values})
        with (
            bench.session.stream(bench.name(), {"x": np.zeros(3, kind)}) as stream,
            pytest.raises(wherry.InvalidArgument, match=f"column 'x': {len(shape)} dimensions"),
        ):
            stream.offload({"x": values})
