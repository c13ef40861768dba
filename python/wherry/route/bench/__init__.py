# SPDX-License-Identifier: Apache-2.0
"""`wherry bench route`: what it writes, and what its bars are made of."""

from wherry.bench import Benchmark
from wherry.route.bench.basis import basis_of
from wherry.route.bench.schema import RouteBench

BENCHMARK = Benchmark(
    name="route",
    schema=RouteBench,
    basis=basis_of,
    paper="001 (Buddy, which route answers: Intel Xeon Gold 6326, BlueField-3, 100 Gbit/s)",
)
