# SPDX-License-Identifier: Apache-2.0
"""Teaches: letting the agent write files. The agent encodes and compresses; the application only posts."""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import wherry


def main() -> None:
    """Three frames become three Parquet files, and pyarrow reads them."""
    with tempfile.TemporaryDirectory(prefix="wherry-files-") as directory:
        batch = pa.record_batch({"city": ["Aix", "Bonn", None], "size": np.array([1.5, 2.5, 3.5])})
        with wherry.Session() as session:
            # With when_full="wait", the agent keeps each frame until it has written its file.
            stream = session.stream("cities", batch, sink_dir=directory, sink_format="parquet", when_full="wait")
            for step in range(3):
                stream.offload(batch, tag=step)
        # An embedded agent has now written all files and ended. A shared agent may still write. Files
        # appear complete or not at all.
        wanted = [f"cities-{step:08d}.parquet" for step in range(3)]
        deadline = time.monotonic() + 30
        while not all((Path(directory) / name).exists() for name in wanted):
            assert time.monotonic() < deadline, "the agent wrote no files within 30 s: its log says why"
            time.sleep(0.01)
        files = sorted(Path(directory).iterdir())
        print(*(f"{file.name}: {file.stat().st_size} bytes" for file in files), sep="\n")
        assert [file.name for file in files] == wanted
        for file in files:
            assert pq.read_table(file).equals(pa.Table.from_batches([batch]))


if __name__ == "__main__":
    main()
