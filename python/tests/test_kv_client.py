# SPDX-License-Identifier: Apache-2.0
"""wherry.kv over sockets, against a Python store that was written from docs/reference/kv-frame.md."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from kvstore import Store

from wherry.errors import (
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from wherry.kv import Client


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as one:
        yield one


def test_a_closed_client_refuses_calls(store: Store) -> None:
    with Client([store.name], first_lane=0) as client:
        client.put(1, b"one")
        client.close()
        with pytest.raises(FailedPrecondition, match="closed"):
            client.get(1)
    with pytest.raises(FailedPrecondition, match="closed"):
        client.put(1, b"two")
    with Client([store.name], first_lane=0) as another:
        assert another.get(1)[0] == b"one"


@pytest.mark.parametrize("deadline", [0, -1, float("nan")])
def test_a_deadline_that_is_none(store: Store, deadline: float) -> None:
    client = Client([store.name], first_lane=0)
    with pytest.raises(InvalidArgument, match="deadline"):
        client.get(1, deadline=deadline)


def test_a_client_without_lanes_says_so(store: Store) -> None:
    with pytest.raises(InvalidArgument, match="lanes = 0"):
        Client([store.name], lanes=0).put(1, b"x")


def test_every_call_does_what_it_says(store: Store) -> None:
    client = Client([store.name], first_lane=0)
    with pytest.raises(NotFound):
        client.get(1)
    version = client.put(1, b"one")
    assert client.get(1) == (b"one", version)
    with pytest.raises(FailedPrecondition) as caught:
        client.put_if(1, b"x", version + 1)
    assert caught.value.version == version
    with pytest.raises(FailedPrecondition):
        client.put_if(1, b"x", 0)
    second = client.put_if(1, bytearray(b"two"), version)
    assert client.get(1) == (b"two", second)
    with pytest.raises(FailedPrecondition):
        client.remove_if(1, version)
    client.remove_if(1, second)
    with pytest.raises(NotFound):
        client.remove(1)
    third = client.put_if(1, b"", 0)
    assert client.get(1) == (b"", third)
    client.remove(1)
    largest, long = 2**64 - 1, bytes(range(256)) * 4
    client.put(largest, long)
    assert client.get(largest)[0] == long


def test_no_room_resource_exhausted(store: Store) -> None:
    client = Client([store.name], first_lane=0)
    store.full = True
    with pytest.raises(ResourceExhausted, match="bucket is full"):
        client.put(1, b"x")


def test_wrong_arguments_named(store: Store) -> None:
    client = Client([store.name], first_lane=0)
    with pytest.raises(InvalidArgument, match="1025 bytes"):
        client.put(1, b"x" * 1025)
    with pytest.raises(InvalidArgument, match="not str"):
        client.put(1, "text")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"key is -1: want 0 to 2\*\*64 - 1"):
        client.get(-1)
    with pytest.raises(InvalidArgument, match="version"):
        client.put_if(1, b"", 2**32)
    with pytest.raises(InvalidArgument, match="want a list"):
        Client(store.name)
    with pytest.raises(InvalidArgument, match="none given"):
        Client([])
    with pytest.raises(InvalidArgument, match="'nearest'"):
        Client([store.name], reads="best", first_lane=0)
    with pytest.raises(InvalidArgument, match="first_lane is 70000"):
        Client([store.name], first_lane=70000)
    with pytest.raises(InvalidArgument, match="name the cluster file or the keepers"):
        Client([store.name])
    with pytest.raises(InvalidArgument, match="want a list"):
        Client(keepers="127.0.0.1:1")


def test_two_clients_on_one_lane_lose_nothing_and_both_are_told(store: Store) -> None:
    clients = [Client([store.name], first_lane=7), Client([store.name], first_lane=7)]
    acknowledged: set[int] = set()
    told = [0, 0]
    for i in range(20):
        for who, client in enumerate(clients):
            key = (who + 1) * 1000 + i
            try:
                client.put(key, str(key).encode())
                acknowledged.add(key)
            except Cancelled:
                told[who] += 1
    assert min(told) > 0
    with pytest.raises(Cancelled, match="another client writes through this client's lane"):
        clients[0].put(1, b"x")
    assert acknowledged == {key for key in acknowledged if store.table[key][1] == str(key).encode()}


def test_lost_datagrams_each_write_once() -> None:
    with Store(loss=0.2, seed=3) as store:
        client = Client([store.name], reads="leader", seed=5, first_lane=0)
        version = 0
        for i in range(100):
            version = client.put_if(9, str(i).encode(), version, deadline=20)
            assert client.get(9, deadline=20) == (str(i).encode(), version)
        assert store.executed == 100


def test_new_epoch_client_follows(store: Store) -> None:
    client = Client([store.name], first_lane=0)
    for epoch in (1, 30000, 60000, 3):
        store.epoch = epoch
        client.put(1, b"y")
    client.put(1, b"z")
    assert client.get(1)[0] == b"z"


def test_nobody_answers_writes_unknown_reads_unavailable(store: Store) -> None:
    client = Client([store.name], first_lane=0)
    store.silent = True
    with pytest.raises(DeadlineExceeded, match="may have taken effect"):
        client.put(1, b"x", deadline=0.1)
    with pytest.raises(Unavailable, match="nothing was changed"):
        client.get(1, deadline=0.1)
    with pytest.raises(Unavailable, match=store.name):
        Client([store.name], connect_timeout=0.1, first_lane=0)
    store.silent = False
    client.put(1, b"y")
    assert client.get(1)[0] == b"y"


def test_several_threads_take_turns(store: Store) -> None:
    client = Client([store.name], first_lane=0)

    def work(key: int) -> None:
        for _ in range(30):
            client.put(key, str(key).encode())

    threads = [threading.Thread(target=work, args=(key,)) for key in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key: value for key, (_, value) in store.table.items()} == {key: str(key).encode() for key in range(4)}


def test_waiting_lets_other_threads_run(store: Store) -> None:
    client = Client([store.name], first_lane=0)
    store.silent = True
    seen: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            seen.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(Unavailable):
        client.get(1, deadline=0.3)
    done.set()
    thread.join()
    assert len(seen) > 5
