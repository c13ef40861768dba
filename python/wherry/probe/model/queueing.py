# SPDX-License-Identifier: Apache-2.0
"""Models several transfers in flight: Little's law, a closed queueing network, a queue of a given depth."""

from __future__ import annotations


def little(in_flight: float, round_trip_ns: float) -> float:
    """The highest rate, in bytes (or transfers) per nanosecond, with `in_flight` bytes (or transfers) outstanding."""
    return in_flight / round_trip_ns


def closed_network(customers: int, think: float, service: float) -> float:
    """The throughput of a station that `customers` share, in customers per unit of time.

    Each customer spends `think` alone and `service` at the station. Both times have the same unit, and refer to one
    byte or one transfer. The result is an exact mean-value analysis (Reiser and Lavenberg 1980) of a delay and a
    station with processor sharing or exponential service.
    """
    waiting = rate = 0.0
    for number in range(1, customers + 1):
        there = service * (1 + waiting)
        rate = number / (think + there)
        waiting = rate * there
    return rate


def channels(count: int, channel: float, link: float) -> float:
    """The rate in GB/s of `count` channels on one link. `channel`: the rate of one channel alone; `link`: the rate of
    the link."""
    return closed_network(count, max(0.0, 1 / channel - 1 / link), 1 / link)


def at_depth(depth: int, call_ns: float, size: int, rate: float) -> float:
    """The rate in GB/s with `depth` transfers of `size` bytes in flight, if their calls overlap. `rate`: the path's, in
    GB/s."""
    return min(depth * size / (call_ns + size / rate), rate)


def serial_at_depth(depth: int, call_ns: float, size: int, rate: float) -> float:
    """The same if one thread makes all calls, so that transfers overlap but calls do not."""
    return min(at_depth(depth, call_ns, size, rate), size / call_ns if call_ns > 0 else rate)
