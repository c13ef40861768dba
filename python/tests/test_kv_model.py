# SPDX-License-Identifier: Apache-2.0
"""The model of the kv protocol: the unchanged model holds, and each injected fault is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from check_model import CONFIGURATIONS, PLACES, Configuration, search

pytestmark = pytest.mark.timeout(300)

THREE = "-DNODES=3 -DE=2"
THRICE = "-DNODES=3 -DE=3 -DFAILURES=2"
RETURNS = "-DNODES=2 -DE=4 -DRETURNS=3"
THREE_RETURN = "-DNODES=3 -DOUT=4 -DRETURNS=4"

FAULTS = {
    "ACK_EARLY": THREE,  # the leader answers before its followers have the write
    "READ_PENDING": THREE,  # a follower shows uncommitted values
    "NO_FENCE": THREE,  # a follower acknowledges a write of an earlier epoch
    "NO_DEDUP": THREE,  # a duplicate request is executed again
    "NO_LEASE": THREE,  # a node is removed while it may still answer reads
    "LANES_LOCAL": THREE,  # only the leader remembers executed requests
    "NO_REPLAY": THREE,  # a new leader drops writes that may be committed
    "NO_RECONCILE": THREE,  # a follower keeps writes that the new leader lacks
    "ROLLBACK_KEEPS_RECORD": THRICE,  # a rolled back write still counts as executed
    "OLD_REPLY": THREE + " -DCAS",  # a client believes a refusal of an earlier epoch
    "REFUSAL_NOT_RECORDED": THREE + " -DCAS",  # a refused request may succeed when it is repeated
    "SERVE_EARLY": RETURNS,  # a returning node serves before it has everything
    "SYNC_NO_LANES": RETURNS,  # a returning node does not fetch the lane records
    "EQUAL_STAYS_SETTLED": THREE_RETURN + " -DE=3",  # a repeated write does not unsettle its lane's record
    "TELL_LEFTOVERS": THREE_RETURN + " -DE=4 -DS1=0",  # a node reports the earlier state of a leftover's lane
}

# Situations that the searches must reach. Otherwise the protocol might hold only because they never occur.
SITUATIONS = {
    "COMMIT_IN_LAST_EPOCH": THRICE,
    "RETRY_AFTER_FAILOVER": THREE,
    "ROLLBACK": THREE,
}


# Faults with a key that may be in two buckets.
PLACES_FAULTS = {
    "OTHER_FLIGHT": THREE,  # a write ignores writes in flight at the other candidate
    "OWN_VERSIONS": THREE,  # a key added again in another bucket gets a version of that bucket only
    "READ_FIRST_BUCKET": THREE,  # pending writes count only in the first bucket
    "OPEN_EARLY": THRICE + " -DK=2 -DREMOVALS=0",  # a leader accepts writes while members have leftovers
}
PLACES_SITUATIONS = {
    "AGAIN": THREE,  # a key is removed, and added at the other location
    "REPLAY": THREE,  # the next leader replays that write
    "ROLLBACK": THREE,  # or rolls it back
}


@pytest.mark.parametrize("configuration", [c for c in CONFIGURATIONS if c.quick], ids=lambda c: c.name)
def test_the_protocol_holds(configuration: Configuration) -> None:
    outcome = search(configuration)
    assert outcome.violated == ""
    assert outcome.complete


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    assert search(Configuration(fault, f"{FAULTS[fault]} -DBUG_{fault}", optimised="-O0")).violated


@pytest.mark.parametrize("fault", PLACES_FAULTS)
def test_a_fault_with_two_places_is_found(fault: str) -> None:
    assert search(Configuration(fault, f"{PLACES_FAULTS[fault]} -DBUG_{fault}", optimised="-O0", model=PLACES)).violated


@pytest.mark.parametrize("situation", PLACES_SITUATIONS)
def test_a_situation_with_two_places_is_reached(situation: str) -> None:
    switches = f"{PLACES_SITUATIONS[situation]} -DREACH_{situation}"
    assert search(Configuration(situation, switches, model=PLACES)).violated


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_situation_is_reached(situation: str) -> None:
    assert search(Configuration(situation, f"{SITUATIONS[situation]} -DREACH_{situation}", optimised="-O0")).violated
