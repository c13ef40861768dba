# SPDX-License-Identifier: Apache-2.0
"""`wherry bench move`: what it writes, and what its bars are made of."""

from wherry.bench import Benchmark
from wherry.move.bench.basis import basis_of
from wherry.move.bench.schema import MoveBench

BENCHMARK = Benchmark(
    name="move",
    schema=MoveBench,
    basis=basis_of,
    paper="004 (SDMS, which move answers: AMD EPYC 7543P, BlueField-2, 100 Gbit/s InfiniBand)",
)
