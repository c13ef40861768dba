# SPDX-License-Identifier: Apache-2.0
"""A record batch for tests of readers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def batch(seed: int = 0, rows: int = 100) -> pa.RecordBatch:
    """A batch of numbers, fixed-size lists, strings with nulls, and a dictionary."""
    rng = np.random.default_rng(seed)
    points = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(rows * 3)), 3)
    words = pa.array([None if i % 7 == 0 else f"word {i * seed}" for i in range(rows)], pa.string())
    kinds = pa.array([f"kind {i % 3}" for i in range(rows)]).dictionary_encode()
    columns = [pa.array(rng.integers(0, 1 << 40, rows)), points, words, kinds]
    return pa.record_batch(columns, names=["id", "x", "word", "kind"])
