# SPDX-License-Identifier: Apache-2.0
"""Teaches: reading with stock tools only. The agent serves its frames by plain Arrow Flight, so SQL takes two lines."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

import wherry


def read(session_file: str, stream: str) -> pa.Table:
    """All frames of a stream as one table. This function does not need Wherry: it finds the address and the token in
    the session file."""
    at = json.loads(Path(session_file).read_text())
    client = flight.FlightClient(at["flight"], generic_options=[("grpc.enable_http_proxy", 0)])
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer " + at["token"].encode())])
    return client.do_get(flight.Ticket(stream.encode()), options).read_all()


def main() -> None:
    """Offloads four frames and queries them in SQL."""
    with wherry.Session() as session:
        kind = np.arange(10_000, dtype=np.int32) % 3
        energy = np.ones(10_000)
        stream = session.stream("atoms", {"kind": kind, "energy": energy})
        for step in range(4):
            stream.offload({"kind": kind, "energy": energy}, tag=step).wait(10)
        stream.close()

        atoms = read(session.info.session_file, "atoms")
        answer = duckdb.sql("SELECT kind, count(*) AS n, sum(energy) AS e FROM atoms GROUP BY kind ORDER BY kind")
        print(answer)
        assert atoms.num_rows == 40_000
        assert answer.fetchall() == [(0, 13336, 13336.0), (1, 13332, 13332.0), (2, 13332, 13332.0)]


if __name__ == "__main__":
    main()
