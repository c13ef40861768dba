# SPDX-License-Identifier: Apache-2.0
"""The compiler warns, in C++ and C, if the caller ignores a result that may mean "not accepted"."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from wherry.system import paths

CPP = """
#include <wherry/kv.hpp>
#include <wherry/move.hpp>
#include <wherry/route_codec.hpp>
using namespace wherry;
void f(route::Runtime& r, kv::Client& kv, Stream& stream, Ticket& ticket, Session& session) {
  route::Handler<int> plain{16};
  route::Handler<route::ByteView> bytes{17};
  route::Handler<std::string> coded{18};
  route::Service<int, int> service{19};
  (void)r, (void)kv, (void)stream, (void)ticket, (void)session, (void)plain, (void)bytes, (void)coded, (void)service;
  CALL;
}
"""
CPP_CALLS = [
    "r.send(0, plain, 1)",
    "r.send(0, bytes, route::ByteView())",
    "r.send(0, coded, std::string())",
    "r.try_send(0, plain, 1)",
    "r.try_send(0, bytes, route::ByteView())",
    "r.try_send(0, coded, std::string())",
    "r.request<int, int>(0, service, 1, [](const int&) {})",
    "r.try_buffer(0, 64)",
    "r.quiesce()",
    "r.try_quiesce()",
    "r.reduce(1.0)",
    "stream.post({})",
    "stream.post_raw({})",
    "stream.close()",
    "ticket.wait(std::chrono::seconds(1))",
    "session.drain(std::chrono::seconds(1))",
    "kv.put(1, {})",
    "kv.put_if(1, 1, {})",
    "kv.remove(1)",
    "kv.post_get(1, 1)",
    "kv.post_put(1, {}, 1)",
    "kv.post_remove(1, 1)",
    "kv.wait(std::chrono::seconds(1))",
]

C = """
#include <wherry/convey.h>
#include <wherry/kv.h>
#include <wherry/route.h>
wherry_ticket ticket;
void f(void) { CALL; }
"""
C_CALLS = [
    "wherry_route_send(0, 0, 0, 0, 0, 0)",
    "wherry_route_try_send(0, 0, 0, 0, 0, 0)",
    "wherry_route_quiesce(0, 0, 0)",
    "wherry_route_try_quiesce(0, 0)",
    "wherry_route_reduce_u64(0, 0, 0, 0, 0)",
    "wherry_stream_post(0, 0, 0, 0, 0, 0)",
    "wherry_stream_post_raw(0, 0, 0, 0, 0, 0)",
    "wherry_stream_close(0, 0)",
    "wherry_ticket_wait(ticket, 0, 0)",
    "wherry_session_drain(0, 0, 0)",
    "wherry_kv_put(0, 0, 0, 0, 0, 0, 0)",
    "wherry_kv_remove(0, 0, 0, 0, 0)",
    "wherry_kv_post_put(0, 0, 0, 0, 0, 0, 0)",
    "convey_push(0, 0, 0)",
    "convey_epush(0, 0, 0, 0)",
    "convey_advance(0, 1)",
]
C_STATEMENTS = ["convey_begin(0, 8, 0)", "convey_reset(0)", "convey_free(0)"]
"""Programs written for bale make these calls as plain statements."""


def warnings(language: str, source: str) -> list[str]:
    root = paths.repository()
    assert root is not None
    words = ["c++", "-std=c++20"] if language == "c++" else ["cc", "-std=c99"]
    done = subprocess.run(
        [*words, "-x", language, "-S", "-o", "/dev/null", "-Wall", "-I", str(Path(root) / "include"), "-"],
        input=source,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return re.findall(r"warning: .*", done.stderr)


@pytest.mark.parametrize(("language", "frame", "calls"), [("c++", CPP, CPP_CALLS), ("c", C, C_CALLS)], ids=["c++", "c"])
def test_ignored_results_expect_a_warning_for_each_call(language: str, frame: str, calls: list[str]) -> None:
    """Compiles all calls at once, because a compilation takes seconds. Each call gives a warning; calls whose result is
    used give none."""
    found = warnings(language, frame.replace("CALL", ";\n  ".join(calls)))
    ignored = [text for text in found if "unused" in text or "ignoring return value" in text]
    assert len(ignored) == len(calls), "\n".join(found)
    used = ";\n  ".join(f"auto&& r{i} = {call}; (void)r{i}" for i, call in enumerate(calls))
    if language == "c":
        used = ";\n  ".join(f"int r{i} = {call}; (void)r{i}" for i, call in enumerate(calls))
    assert warnings(language, frame.replace("CALL", used)) == []


def test_calls_that_programs_for_bale_make_as_statements_expect_no_warning() -> None:
    assert warnings("c", C.replace("CALL", ";\n  ".join(C_STATEMENTS))) == []
