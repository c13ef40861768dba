# SPDX-License-Identifier: Apache-2.0
"""Checks spec/kv.pml and spec/kv_places.pml with Spin: all configurations, with `--quick` the fast ones, or those
named.

Exact searches visit every reachable state. A bitstate search stores a few bits instead of each state, so it may miss
states. It is used if the exact search does not fit into memory. Faults and situations, for which
python/tests/test_kv_model.py searches, are also configurations. In these an assertion must be violated.
"""

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SPEC = Path(__file__).resolve().parent.parent / "spec"
SECONDS = 3600  # time limit of a search; all searches are far faster


@dataclass(frozen=True)
class Configuration:
    """A size of the model, and the memory limit of its search."""

    name: str
    switches: str
    megabytes: int = 2000
    bitstate: int = 0  # log2 of the bits; 0: exact
    quick: bool = False
    model: str = "kv.pml"
    # -O0 compiles in 0.7 s of CPU time, -O1 in 1.9 s, -O2 in 3.8 s. A search with -O0 takes twice as long.
    optimised: str = "-O2"


@dataclass(frozen=True)
class Outcome:
    """What a search found."""

    violated: str  # the assertion, or nothing
    complete: bool  # the search did not exceed memory, depth or time
    states: int
    seconds: float
    megabytes: float


PLACES = "kv_places.pml"
CONFIGURATIONS = [
    Configuration("three_nodes", "-DNODES=3 -DE=2", quick=True, optimised="-O1"),
    Configuration("conditional", "-DNODES=3 -DE=2 -DCAS", quick=True, optimised="-O1"),
    Configuration("moves", "-DNODES=3 -DE=2 -DMOVES", quick=True),
    Configuration("two_nodes", "-DNODES=2 -DE=2 -DS0=2 -DCAS -DGIVE_UP", quick=True, optimised="-O1"),
    Configuration("give_up", "-DNODES=3 -DE=2 -DS0=2 -DGIVE_UP", 6000),
    Configuration("two_failures", "-DNODES=3 -DE=3 -DFAILURES=2", 6000),
    Configuration("conditional_moves", "-DNODES=3 -DE=3 -DCAS -DMOVES", bitstate=34),
    Configuration("returning", "-DNODES=2 -DE=4 -DRETURNS=3", 7000),
    Configuration("returning_of_three", "-DNODES=3 -DE=3 -DFAILURES=0 -DOUT=4 -DRETURNS=4", 3000),
    Configuration("return_and_failure", "-DNODES=3 -DE=4 -DS1=0 -DOUT=4 -DRETURNS=4", 5000),
    Configuration("two_places", "-DNODES=3 -DE=2", quick=True, optimised="-O1", model=PLACES),
    Configuration(
        "two_places_failures",
        "-DNODES=3 -DE=3 -DFAILURES=2 -DK=2 -DREMOVALS=0",
        quick=True,
        optimised="-O1",
        model=PLACES,
    ),
    Configuration("two_places_moves", "-DNODES=3 -DE=2 -DMOVES", model=PLACES),
    Configuration("two_places_removal", "-DNODES=3 -DE=3 -DFAILURES=2", 3000, model=PLACES),
    Configuration("two_places_long", "-DNODES=2 -DE=3 -DMOVES -DK=4", 3000, model=PLACES),
]


def search(configuration: Configuration) -> Outcome:
    """Builds and runs one search. Raises RuntimeError if Spin or the compiler fails."""
    with tempfile.TemporaryDirectory() as place:
        keep = ["-DBITSTATE"] if configuration.bitstate else [f"-DMEMLIM={configuration.megabytes}"]
        for command in (
            ["spin", "-a", *configuration.switches.split(), str(SPEC / configuration.model)],
            ["gcc", configuration.optimised, "-DSAFETY", "-DNOREDUCE", *keep, "-o", "pan", "pan.c"],
        ):
            made = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
            if made.returncode:
                raise RuntimeError(f"{' '.join(command)}: {made.stdout}{made.stderr}")
        size = [f"-w{configuration.bitstate}"] if configuration.bitstate else []
        command = ["timeout", str(SECONDS), "./pan", "-m100000", "-n", *size]
        text = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False).stdout
    violated = re.search(r"assertion violated (.*) \(at depth", text)
    states = re.search(r"(\S+) states, stored", text)
    seconds = re.search(r"elapsed time (\S+) seconds", text)
    memory = re.search(r"(\S+)\s+total actual memory usage", text)
    cut = "Search not completed" in text or "max search depth too small" in text or "reached -DMEMLIM" in text
    return Outcome(
        violated[1].strip() if violated else "",
        bool(states) and not cut and not violated,
        int(float(states[1])) if states else 0,
        float(seconds[1]) if seconds else 0.0,
        float(memory[1]) if memory else 0.0,
    )


def main(arguments: list[str]) -> int:
    """Runs the searches; returns 0 if each was complete and did not find a violation."""
    names = [a for a in arguments if not a.startswith("--")]
    unknown = set(names) - {c.name for c in CONFIGURATIONS}
    if unknown:
        print(f"check_model: no configuration {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [c for c in CONFIGURATIONS if (c.name in names if names else c.quick or "--quick" not in arguments)]
    failed = False
    print(f"{'configuration':20} {'search':9} {'states':>11} {'seconds':>8} {'MB':>7}", flush=True)
    for c in chosen:
        o = search(c)
        verdict = o.violated or ("holds" if o.complete else "NOT COMPLETE")
        how = "bitstate" if c.bitstate else "exact"
        print(f"{c.name:20} {how:9} {o.states:11} {o.seconds:8.1f} {o.megabytes:7.0f}  {verdict}", flush=True)
        failed |= not o.complete
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
