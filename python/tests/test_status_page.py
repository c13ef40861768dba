# SPDX-License-Identifier: Apache-2.0
"""The agent's page for browsers: access control, and its content in a real browser."""

from __future__ import annotations

import html.parser
import json
import re
import subprocess
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest
import report_picture
from agents import Agent

CHROMIUM = report_picture.chromium()


def root(agent: Agent) -> str:
    assert agent.session.metrics is not None
    return agent.session.metrics.removesuffix("/metrics")


def get(agent: Agent, path: str, authorization: str | None) -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(root(agent) + path)
    if authorization is not None:
        request.add_header("Authorization", authorization)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def basic(who: str) -> str:
    return "Basic " + b64encode(who.encode()).decode()


class Links(html.parser.HTMLParser):
    """Collects the addresses that a page loads or links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {value for name, value in attrs if name in ("src", "href") and value}


def test_the_token_is_the_password(agent: Agent) -> None:
    token = agent.session.token
    for right in (f"Bearer {token}", basic(f"wherry:{token}")):
        for path in ("/", "/metrics"):
            assert get(agent, path, right)[0] == 200
    for wrong in (None, token, "Bearer", f"Bearer {token[:-1]}", basic("wherry:"), basic(f":{token}"), basic(token)):
        for path in ("/", "/status.js", "/metrics"):
            status, headers, text = get(agent, path, wrong)
            assert (status, "wherry_agent" in text) == (401, False), (path, wrong)
            assert headers["WWW-Authenticate"].startswith("Bearer" if path == "/metrics" else "Basic")
            assert token not in text


def test_all_that_the_page_needs_is_the_agents(agent: Agent) -> None:
    known = basic(f"wherry:{agent.session.token}")
    _, headers, text = get(agent, "/", known)
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    links = Links()
    links.feed(text)
    assert links.found == {"status.css", "status.js", "metrics"}
    for link in links.found:
        assert get(agent, f"/{link}", known)[0] == 200
    assert get(agent, "/nothing", known)[0] == 404


def test_its_metrics_exist(agent: Agent) -> None:
    """A counter with another name would always show 0."""
    import wherry

    known = basic(f"wherry:{agent.session.token}")
    with wherry.Session(agent=str(agent.session_file)) as session:
        session.stream("s", {"x": np.arange(4.0)}).offload({"x": np.arange(4.0)}).wait(timeout=300)
        metrics = get(agent, "/metrics", known)[2]
    script = get(agent, "/status.js", known)[2]
    names = set(re.findall(r'"(wherry_\w+)"', script))
    assert len(names) > 10
    for name in names:
        assert re.search(rf"^{name}(_bucket)?[ {{]", metrics, re.MULTILINE), name


def test_the_dashboard_asks_for_metrics_that_exist(agent: Agent) -> None:
    file = Path(__file__).parents[2] / "deploy" / "grafana" / "wherry.json"
    dashboard = json.loads(file.read_text())
    metrics = get(agent, "/metrics", f"Bearer {agent.session.token}")[2]
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    names = {name for expression in expressions for name in re.findall(r"wherry_\w+", expression)}
    assert len(names) > 12
    for name in names:
        assert re.search(rf"^{name}[ {{]", metrics, re.MULTILINE), name
    for expression in expressions:
        assert expression.count("(") == expression.count(")")
        assert expression.count("{") == expression.count("}") > 0


@pytest.mark.may_lack
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: no browser shows the page")
def test_a_browser_shows_the_numbers(agent: Agent, tmp_path: Path) -> None:
    import wherry

    address = root(agent)
    with wherry.Session(agent=str(agent.session_file), name="<b>writer</b>") as session:
        stream = session.stream("particles", {"x": np.arange(1000.0)})
        for _ in range(3):
            stream.offload({"x": np.arange(1000.0)}).wait(timeout=300)
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={tmp_path}",
        ]
        url = address.replace("http://", f"http://wherry:{agent.session.token}@") + "/"
        shown = subprocess.run(
            [str(CHROMIUM), *flags, "--timeout=10000", "--virtual-time-budget=4000", "--dump-dom", url],
            capture_output=True, text=True, timeout=600, check=True,
        ).stdout  # fmt: skip
    assert "&lt;b&gt;writer&lt;/b&gt;" in shown, "a name is a text, whatever it says"
    assert re.search(r"<td>offloads</td><td>[^<]+</td><td>3</td>", shown), shown
    assert re.search(r"<td>bytes</td><td>[^<]+</td><td>23.4 KiB</td>", shown)
    assert "half of the transfers took at most" in shown
    assert re.search(r'<p id="state" role="status"[^>]*>read at \d\d:', shown)
