# SPDX-License-Identifier: Apache-2.0
"""Arrow arrays of every type that Wherry moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest


def values_of(kind: pa.DataType, rows: int, rng: np.random.Generator, nulls: bool = True) -> list[Any]:
    """Values that pa.array() accepts for that type."""

    def one() -> Any:
        n = int(rng.integers(0, 100))
        if nulls and rng.random() < 0.2:
            return None
        if pa.types.is_dictionary(kind):
            return values_of(kind.value_type, 1, rng, False)[0]
        if pa.types.is_boolean(kind):
            return n % 2 == 0
        if pa.types.is_integer(kind):
            return n
        if pa.types.is_floating(kind):
            return np.float16(n / 2) if kind == pa.float16() else n / 2
        if pa.types.is_decimal(kind):
            return __import__("decimal").Decimal(n).scaleb(-kind.scale) if kind.scale >= 0 else n * 1000
        if pa.types.is_date64(kind):
            return n * 86_400_000
        if kind == pa.month_day_nano_interval():
            return (n, n + 1, n + 2)
        if pa.types.is_temporal(kind):
            return n
        if pa.types.is_fixed_size_binary(kind):
            return bytes([n]) * kind.byte_width
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return "ü" * (n % 5)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return bytes([n]) * (n % 5)
        if pa.types.is_fixed_size_list(kind):
            return values_of(kind.value_type, kind.list_size, rng)
        if pa.types.is_map(kind):
            keys = range(n % 3)
            return [(str(k), values_of(kind.item_type, 1, rng)[0]) for k in keys]
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return values_of(kind.value_type, n % 4, rng)
        if pa.types.is_struct(kind):
            return {field.name: values_of(field.type, 1, rng)[0] for field in kind}
        assert pa.types.is_null(kind), kind
        return None

    return [one() for _ in range(rows)]


def array_of(kind: pa.DataType, rows: int, seed: int = 0, nulls: bool = True) -> pa.Array:
    rng = np.random.default_rng(seed)
    if pa.types.is_dictionary(kind):
        return pa.array(values_of(kind.value_type, rows, rng, nulls), kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values_of(kind, rows, rng, nulls), kind)


PLAIN = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null(),
    pa.decimal32(7, 2), pa.decimal64(15, 3), pa.decimal128(30, 4), pa.decimal256(60, 10),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Zurich"), pa.timestamp("ns", "+02:00"),
    pa.duration("s"), pa.duration("ns"), pa.month_day_nano_interval(),
    pa.binary(7), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(),
]  # fmt: skip
NESTED = [
    pa.list_(pa.int32()),
    pa.large_list(pa.string()),
    pa.list_(pa.list_(pa.bool_())),
    pa.list_(pa.float64(), 3),
    pa.list_(pa.bool_(), 5),
    pa.list_(pa.list_(pa.string(), 2)),
    pa.struct([]),
    pa.struct({"a": pa.int8(), "b": pa.bool_(), "c": pa.string()}),
    pa.struct({"a": pa.struct({"b": pa.list_(pa.struct({"c": pa.float64()}))})}),
    pa.map_(pa.string(), pa.float64()),
    pa.map_(pa.string(), pa.map_(pa.string(), pa.bool_())),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.int64()),
    pa.list_(pa.null()),
]
EVERY = [pytest.param(kind, id=str(kind)[:60]) for kind in PLAIN + NESTED]
