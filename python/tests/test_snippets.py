# SPDX-License-Identifier: Apache-2.0
"""Runs every block of README and docs, and every example of --help, without changes. python/tests/snippets.py describes
the exceptions. The examples in the public headers compile without a warning."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import snippets
import typer.main
from snippets import HOW, Snippet

from wherry import cli
from wherry.kv import cluster_file, running
from wherry.system import paths
from wherry.system.ports import free_ports

# ruff: noqa: E501 - examples stand in one line
pytestmark = pytest.mark.agent

ROOT = paths.PACKAGE.parent.parent
RELEASE = ROOT / "build" / "release"
SURROUNDINGS = Path(__file__).parent / "surroundings"
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

STAYS = re.compile(r"^wherry (kv up(?!.*--detach)|agent start --foreground|bypass demo$)")
"""Commands that run until Ctrl-C."""
READY = ("end   Ctrl-C", "listens", "ready")
NEEDS_ROOT = re.compile(r"--netns|--xdp|--tap|^ip |kv exec|bypass demo")

EXPECTED = {
    "wherry kv delete greeting --if-version 4": 1,  # it has another version
    **dict.fromkeys(
        ("wherry bypass probe", "wherry bypass probe --move", "wherry bypass up", "wherry bypass status"), 3
    ),
    "wherry bypass status --json": 3,  # no such hardware
}
"""Expected exit statuses that are not 0."""

BEFORE = {
    "wherry kv down --cluster ~/lab/cluster.toml": "wherry kv up --detach --dir ~/lab",
    "wherry kv load lab.kv": "wherry kv dump lab.kv",
    "wherry top --interval 5 --cluster ~/lab/cluster.toml": "wherry kv up --detach --dir ~/lab",
    "wherry kv exec python program.py": "wherry kv down; wherry kv up --xdp --nodes 2 --detach; echo 'print(1)' >program.py",
    "wherry probe profile --from build/probe.json --output build/profile.json": (
        "wherry probe run --only wake --rounds 3 --seconds 2 --json build/probe.json"
    ),
    "wherryd --profile build/profile.json --dump-config": (
        "wherry probe profile --from build/probe.json --output build/profile.json"
    ),
}
"""Commands that must run before an example."""

EXAMPLES_NOT_RUN = {
    "wherry kv bench --xdp eth0 --spin": "beside `wherry kv up --xdp`; test_kv_xdp.py has it",
    "wherry advise --calibrate --json here.json": "it measures for a minute; test_advise.py has it shorter",
    "wherry bench move --json build/bench-move.json": "ten minutes; test_bench_move.py runs it with --quick",
    "wherry bench move --json /tmp/quick.json --quick --only initiate --only bandwidth": "see bench move",
    "wherry bench route --json build/bench-route.json": "ten minutes; test_bench_route.py runs it with --quick",
    "wherry bench route --json /tmp/quick.json --quick --only histogram --only latency": "see bench route",
    'wherry bench route --json b.json --only histogram --peer "other:4=./other-histogram {lg} {n}"': "a program of the reader",
    "wherry bench kv --json build/bench-kv.json": "twenty minutes; test_bench_kv.py runs its parts",
    "wherry bench kv --json /tmp/quick.json --quick --only software --only failover": "see bench kv",
    "wherry bench bypass --json build/bench-bypass.json": "many minutes; test_bench_bypass.py runs its parts",
    "wherry bench bypass --json /tmp/quick.json --quick --only batching --only resources": "see bench bypass",
    "wherry probe profile": "it measures for a minute; test_profile.py has it shorter",
    "wherry probe run --quick": "it measures for 20 seconds; test_probe_cli.py has it shorter",
    "wherry probe run --only ipc.cma": "two minutes and a half; test_probe_cli.py has it shorter",
    "wherry probe run --only ipc --bytes 4096 --depth 1 --depth 16": "likewise",
    "wherry probe run --json a.json": "three minutes; test_probe_cli.py has it shorter",
    "wherry probe run --json build/probe.json": "likewise",
    "wherry probe compare a.json b.json": "files of the reader; docs/guide/probe.md has it with some",
    "wherry probe compare build/before.json build/after.json": "files of the reader; test_probe_cli.py has some",
    "wherry probe compare build/twice.json --all": "likewise",
    "wherry bench probe --json build/bench-probe.json": "four minutes; test_bench_probe.py has a stand-in for the program",
    "wherry bench probe --json /tmp/quick.json --quick --only spoiled": "see bench probe; test_probe_cli.py spoils every path",
    "wherry bench probe --json /tmp/cache.json --only cache": "a minute; test_bench_cache.py runs its programs",
    "wherry report build/bench-move.json": "draws what `wherry bench move` wrote; test_report.py has it",
    "wherry report build/bench-move.json build/bench-route.json build/lammps-lj.json --out build/report.html": "likewise",
    "wherry agent start --foreground --config /etc/wherry.toml": "a file of the machine's; test_agent_cli.py has it",
    "wherry agent announce etcd:http://127.0.0.1:2379/wherry/lab": "an etcd of the reader's; test_discovery.py has one",
    "wherry agent announce etcd:http://10.0.0.9:2379/wherry/lab --name node0 --of 4": "likewise",
    "wherry kv up --etcd http://127.0.0.1:2379": "an etcd of the reader's; test_kv_cli.py has one",
    "wherry kv resp": "runs until Ctrl-C, at Redis' own port; test_kv_resp.py has it",
    "wherry kv resp --listen 0.0.0.0:6379 --password-file secret.txt": "likewise",
    "wherry kv metrics": "runs until Ctrl-C, at a port of its own; test_kv_metrics.py has it",
    "wherry kv metrics --cluster lab.toml --listen 0.0.0.0:9466": "likewise",
    "wherry run --hosts node1,node2 --ranks-per-node 8 --placement host -- build/release/apps/histogram": (
        "machines of the reader; test_hosts.py has a stand-in for ssh, and OpenSSH"
    ),
}  # fmt: skip
"""Examples of --help that are not run, with the reason."""


class Workspace:
    """A directory that looks like the checkout, with a private user environment."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "build").mkdir()
        for name in ("release", "linearizable"):
            (directory / "build" / name).symlink_to(ROOT / "build" / name)
        for name in ("src", "docs", "tools", "examples", "deploy", "include", "hdl", "LICENSE", "Makefile"):
            (directory / name).symlink_to(ROOT / name)
        (directory / ".venv").symlink_to(sys.prefix)
        self.mark = f"MARK_OF_TEST={uuid.uuid4()}"
        runtime = Path(tempfile.mkdtemp(prefix="wsn-"))  # sockets' paths are short
        self.runtime = runtime
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("WHERRY_", "PMI_", "SLURM_"))}
        self.environment |= dict([self.mark.split("=", 1)])
        places = [RELEASE / "src", RELEASE / "sim", Path(sys.prefix) / "bin"]
        self.environment |= {
            "PATH": os.pathsep.join([*map(str, places), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT / "python"),
            "HOME": str(directory),
            "XDG_RUNTIME_DIR": str(runtime),
            "LD_LIBRARY_PATH": str(RELEASE / "src"),
            "UCX_LOG_LEVEL": "fatal",
            "COLUMNS": "200",
            "PYTHONUNBUFFERED": "1",
        }

    def run(self, command: list[str] | str) -> str:
        """Runs a command, which must end with status 0; returns its output."""
        words = ["bash", "-ec", command] if isinstance(command, str) else command
        done = subprocess.run(
            words, cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=300, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\nexit status {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run_until_ready(self, command: str, ready: tuple[str, ...] = READY) -> None:
        """Runs a command that does not end by itself until its output has a word of `ready`. Ctrl-C must end it."""
        with subprocess.Popen(
            shlex.split(command), cwd=self.directory, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        ) as process:  # fmt: skip
            said = ""
            assert process.stdout
            while not any(word in said for word in ready):
                line = process.stdout.readline()
                assert line, f"{command}\nended with {process.wait()}\n{said}"
                said += line
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=300)
        assert process.returncode in (0, 130), f"{command}: {process.returncode}"

    def shell(self, line: str) -> None:
        """One line of a block."""
        command = re.sub(r"\s{2,}#.*$", "", line).strip()
        if not command or command.startswith("#"):
            return
        if NEEDS_ROOT.search(command) and os.geteuid() != 0:
            print(f"not run, since it takes root: {command}")
        elif command.startswith("make "):
            self.run(["make", "-n", *shlex.split(command)[1:]])
            print(f"planned, not run, since it takes minutes: {command}")
        elif STAYS.match(command):
            self.run_until_ready(command)
        else:
            self.run(command)

    def agent(self) -> None:
        """Starts the user's agent."""
        self.run(["wherry", "agent", "start", "--budget", "256MiB"])

    def cluster(self) -> Path:
        """Starts a kv cluster. lab.toml is a copy of its cluster file."""
        self.run(["wherry", "kv", "up", "--detach", "--name", "lab"])
        file = running.read_up(self.runtime / "wherry" / "kv-up.json").cluster
        (self.directory / "lab.toml").write_text(file.read_text())
        return file

    def end(self) -> None:
        """Ends processes that a block left running, in the background or otherwise."""
        deadline = time.monotonic() + 300
        number = signal.SIGTERM
        while found := self._processes():
            for pid in found:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
            if time.monotonic() > deadline:
                number = signal.SIGKILL
            time.sleep(0.05)
        subprocess.run(["rm", "-rf", str(self.runtime)], check=True)

    def _processes(self) -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


@pytest.fixture
def workspace(tmp_path: Path, wherryd: Path) -> Iterator[Workspace]:
    one = Workspace(tmp_path)
    try:
        yield one
    finally:
        one.end()


def blocks() -> list[Snippet]:
    return [snippet for file in FILES for snippet in snippets.snippets(file)]


def with_surroundings(snippet: Snippet) -> str:
    """The block, inserted into its surroundings file. Lines at file scope replace @HEAD@."""
    suffix = {"python": "py"}.get(snippet.language, snippet.language)
    if not snippet.around:
        return snippet.to_run
    around = (SURROUNDINGS / f"{snippet.around}.{suffix}.in").read_text()
    head, body = "", snippet.to_run
    if "@HEAD@" in around:
        head, _, body = body.partition("\n\n")
    return around.replace("@HEAD@", head).replace("@SNIPPET@", body)


def build(workspace: Workspace, snippet: Snippet) -> str:
    """The block as a program."""
    source = workspace.directory / f"snippet.{snippet.language}"
    source.write_text(with_surroundings(snippet))
    compiler = ["g++", "-std=c++20"] if snippet.language == "cpp" else ["gcc", "-std=c99"]
    library = ["-L", str(RELEASE / "src"), "-lwherry"]
    words = [*compiler, "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-Wno-unused-variable"]
    workspace.run([*words, "-I", str(ROOT / "include"), str(source), "-o", "snippet", *library])
    return "./snippet"


@pytest.mark.parametrize("snippet", blocks(), ids=str)
@pytest.mark.parametrize("agent", ["embedded agent", "running agent"])
def test_block(workspace: Workspace, snippet: Snippet, agent: str, capsys: pytest.CaptureFixture[str]) -> None:
    running = agent == "running agent"
    if snippet.language in snippets.SHOWN:
        return
    assert snippet.language in snippets.RUN, f"{snippet}: '{snippet.language}' is not a language. {HOW}"
    if snippet.not_run:
        with capsys.disabled():
            print(f"\n{snippet}: not run: {snippet.not_run}" if not running else "", end="")
        return
    code = snippet.to_run
    offloads = any(word in code for word in ("Session", "wherry.open"))
    if running and not offloads:
        return  # the block does not use an agent
    if running:
        workspace.agent()
    try:
        if snippet.around == "kv":
            workspace.cluster()
        match snippet.language:
            case "python":
                (workspace.directory / "snippet.py").write_text(with_surroundings(snippet))
                workspace.run([sys.executable, "snippet.py"])
            case "cpp" | "c":
                workspace.run([build(workspace, snippet)])
            case "sh":
                for line in code.replace("\\\n", " ").splitlines():
                    workspace.shell(line)
            case "json":
                json.loads(code)
            case "toml":
                tomllib.loads(code)
                if "[cluster]" in code:
                    (workspace.directory / "c.toml").write_text(code)
                    cluster_file.load(workspace.directory / "c.toml")
    except AssertionError as error:
        pytest.fail(f"the block at {snippet} does not work as it stands.\n{error}\n{HOW}", pytrace=False)


def header_blocks() -> list[Snippet]:
    headers = sorted((ROOT / "include" / "wherry").rglob("*.h*"))
    return [example for header in headers for example in snippets.header_examples(header)]


def test_headers_of_every_language_have_examples() -> None:
    names = {example.file.name for example in header_blocks()}
    assert names >= {"kv.hpp", "kv.h", "move.hpp", "wherry.h", "route.hpp", "route.h", "convey.h"}


@pytest.mark.parametrize("example", header_blocks(), ids=str)
def test_example_in_a_header_compiles_without_a_warning(example: Snippet, tmp_path: Path) -> None:
    source = tmp_path / f"example.{example.language}"
    source.write_text(with_surroundings(example))
    compiler = ["g++", "-std=c++20"] if example.language == "cpp" else ["gcc", "-std=c99"]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
    words = [*compiler, *warnings, "-fsyntax-only", "-I", str(ROOT / "include"), str(source)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"the example at {example} does not compile as it stands\n{done.stderr}"


def examples() -> dict[str, list[str]]:
    """For each command, the lines of its help that begin with `wherry`, or with a variable for it."""

    def below(command: object, words: list[str]) -> Iterator[tuple[str, list[str]]]:
        text = str(getattr(command, "help", "") or "").replace("\\[", "[")
        lines = [line.strip() for line in text.split("\n") if re.match(r" +(wherry |[A-Z_]+=\S+ wherry )", line)]
        lines = [re.sub(r"\s{2,}[^ -].*$", "", line) for line in lines]  # drops the explanation beside it
        yield " ".join(words), lines
        for name, child in getattr(command, "commands", {}).items():
            yield from below(child, [*words, name])

    return {name: lines for name, lines in below(typer.main.get_command(cli.app), ["wherry"]) if lines}


PREPARED = {
    "agent": ("wherry agent status", "wherry agent stop", "wherry streams", "wherry cat", "wherry top"),
    "cluster": ("wherry kv",),
}
FILL = """
import time, numpy as np, wherry
with wherry.Session() as session, session.stream("particles", {"x": np.zeros((100, 3))}) as stream:
    stream.offload({"x": np.zeros((100, 3))}).wait()
"""


@pytest.mark.parametrize("command", list(examples()))
def test_examples_of_help(workspace: Workspace, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    if command in PREPARED["agent"]:
        workspace.agent()
        workspace.run([sys.executable, "-c", FILL])
    prepared = command.startswith(PREPARED["cluster"]) and command not in ("wherry kv", "wherry kv up")
    if prepared:
        workspace.cluster()
        workspace.run("printf bytes >value.bin; wherry kv put greeting hello; wherry kv put 42 @value.bin")
    for line in examples()[command]:
        if line in EXAMPLES_NOT_RUN:
            with capsys.disabled():
                print(f"\n{line}: not run: {EXAMPLES_NOT_RUN[line]}", end="")
            continue
        try:
            if line in BEFORE and not (NEEDS_ROOT.search(line) and os.geteuid() != 0):
                workspace.run(BEFORE[line])
            if command == "wherry agent start":
                subprocess.run(["wherry", "agent", "stop"], env=workspace.environment, capture_output=True, check=False)
            if line == "wherry agent stop" or "| jq" in line:
                workspace.run(re.sub(r" \| jq .*", " | python3 -m json.tool", line))
            elif line in EXPECTED:
                workspace.run(f"{line} || [[ $? == {EXPECTED[line]} ]]")
            elif line == "wherry agent start":
                workspace.run(line)
                workspace.run([sys.executable, "-c", FILL])
            elif line.startswith("wherry kv up"):
                workspace.run("wherry kv down || true")
                workspace.shell(line)
            else:
                workspace.shell(line)
        except AssertionError as error:
            where = "mend it, or name it in EXAMPLES_NOT_RUN with a reason"
            pytest.fail(f"an example of `{command} --help` does not work as it stands: {where}\n{error}", pytrace=False)


COMMAND_IN_TEXT = re.compile(r"`((?:make|wherry|mpiexec|build/release/\\S+) [^`]+)`")
RUN_FROM_TEXT = (
    "wherry run --nodes 2 --ranks-per-node 2 --placement host -- build/release/apps/histogram",
    "mpiexec -n 8 build/release/apps/histogram",
)


def commands_in_text() -> list[tuple[str, str]]:
    """(place, command) for each command between backticks in running text."""
    found = []
    for file in FILES:
        text = re.sub(r"^```.*?^```$", "", file.read_text(), flags=re.M | re.S)
        found += [(file.name, re.sub(r"\s+", " ", match[1])) for match in COMMAND_IN_TEXT.finditer(text)]
    return found


def test_commands_in_running_text_exist_with_their_options() -> None:
    """`wherry agent start|stop` means two commands, and NAME means any name."""
    wrong = []
    for place, line in commands_in_text():
        words = line.partition(" -- ")[0].split()
        if words[0] == "make":
            done = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
            wrong += [(place, line, done.stderr)] if done.returncode != 0 else []
        if words[0] != "wherry":
            continue
        commands = [typer.main.get_command(cli.app)]
        for word in itertools.takewhile(lambda word: not re.fullmatch(r"[A-Z]+", word), words[1:]):
            children = [getattr(one, "commands", {}).get(name) for one in commands for name in word.split("|")]
            if word.startswith("--"):
                known = {name for one in commands for option in one.params for name in [*option.opts, "--help"]}
                wrong += [(place, line, word)] if word not in known else []
            elif all(children):
                commands = [one for one in children if one is not None]
            elif any(getattr(one, "commands", {}) for one in commands):
                wrong.append((place, line, word))
    assert wrong == []


@pytest.mark.parametrize("line", RUN_FROM_TEXT)
def test_commands_in_running_text_that_start_jobs(workspace: Workspace, line: str) -> None:
    assert line in {one for _, one in commands_in_text()}
    assert '"app":"histogram"' in workspace.run(line)


PROGRAMS = [*(f"apps/{name}" for name in ("histogram", "sssp", "transport", "transpose", "triangle"))]
PROGRAMS += ["src/wherryd", "src/wherry-kv"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_examples_of_the_help_of_programs(workspace: Workspace, program: str) -> None:
    name = program.partition("/")[2]
    said = workspace.run([f"build/release/{program}", "--help"])
    lines = [line.strip() for line in said.split("\n") if re.match(r"  (wherry run|wherryd|wherry-kv) ", line)]
    lines = [re.sub(r"\s{2,}[^ -].*$", "", line) for line in lines]
    assert lines, said
    if name == "wherryd":
        workspace.run("wherryd --dump-config >wherryd.toml")
        for line in lines:  # only checks that settings are valid: cores and addresses are another machine's
            workspace.run(line if "--dump-config" in line else f"{line} --dump-config")
    elif name == "wherry-kv":
        keeper, node = (f"127.0.0.1:{port}" for port in free_ports(2))
        head = f'[cluster]\nname = "lab"\nmode = "keeper"\nkeeper = "{keeper}"\n'
        (workspace.directory / "lab.toml").write_text(f'{head}[[node]]\nnumber = 0\nudp = "{node}"\n')
        for line in lines:
            workspace.run_until_ready(line.replace("/var/lib/wherry/", ""), ("of cluster lab at",))
    else:
        for line in lines:
            workspace.run(line)


def test_nothing_is_excused_that_is_not_there() -> None:
    assert set(EXAMPLES_NOT_RUN) <= {line for lines in examples().values() for line in lines}
    used = {snippet.around for snippet in [*blocks(), *header_blocks()]}
    assert {path.name.split(".")[0] for path in SURROUNDINGS.iterdir()} <= used, "surroundings of no block"


def test_the_slurm_script_names_programs_that_are_there() -> None:
    text = (ROOT / "deploy" / "slurm" / "route_job.sh").read_text()
    named = re.findall(r"route_job\.sh (\S+)(.*)", text)
    assert named
    for program, arguments in named:
        done = subprocess.run(
            [ROOT / program, *shlex.split(arguments)], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
