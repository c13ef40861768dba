# SPDX-License-Identifier: Apache-2.0
"""tools/check_includes.py refuses includes against the order of a service's folders."""

import runpy
from pathlib import Path

import pytest

RULES = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools" / "check_includes.py"))


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        ("kv/net/udp_port.cpp", "kv/message.hpp", ""),
        ("kv/keeper/keeper.cpp", "kv/control/control.hpp", ""),
        ("kv/net/udp_port.cpp", "base/socket.hpp", ""),
        ("kv/net/udp_port.cpp", "kv/control/control.hpp", "kv/net must not include kv/control"),
        ("kv/message.hpp", "kv/net/port.hpp", "kv/. must not include kv/net"),
        ("kv/node/node.cpp", "kv/node/driver/driver.hpp", "kv/node must not include kv/node/driver"),
        ("kv/net/udp_port_test.cpp", "kv/control/control.hpp", ""),
        ("kv/attic/x.cpp", "kv/message.hpp", "does not say what kv/attic may include"),
        ("move/plan.cpp", "move/client/x.hpp", ""),
    ],
)
def test_an_include_of_a_folder_by_another(path: str, name: str, said: str) -> None:
    found = RULES["folder_violations"](Path(path), name)
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_the_project_keeps_to_it() -> None:
    assert RULES["violations"]() == []
