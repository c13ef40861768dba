# SPDX-License-Identifier: Apache-2.0
"""Holds python/wherry to its house: what may import what, without circles, in folders that fit into a head.

errors < system < session < {move, route, kv, ...} < bench < report < cli. A room is a folder of python/wherry. bench,
report and cli know no service: what a service brings to them (wherry.<service>.bench, .report, .cli) lies above them,
and above the service's own library. Services never import each other. wherry/services.py names them.

An arrow is a module of one room that imports a module of another one. Imports in functions and for type checkers count.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "wherry"
MOST_MODULES, MOST_ARROWS = 14, 60
FACES = ("bench", "report", "cli")
"""Rooms that know no service, and the parts of a service that lie above them."""
LAYERS = ["errors", "system", "session", "service", "bench", "service.bench", "report", "service.report", "cli",
          "service.cli", "top"]  # fmt: skip
COMMON = {f"wherry.{name}": "errors" for name in ("arguments", "errors", "lazy", "services", "version")}
"""Modules beside the rooms that know no room, and that every room may use."""


def module_of(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def services() -> tuple[str, ...]:
    """Those that wherry/services.py lists."""
    found = re.search(r"^SERVICES = \(([^)]*)\)", (PACKAGE / "services.py").read_text(), re.MULTILINE)
    return tuple(re.findall(r'"(\w+)"', found[1])) if found else ()


def imports(path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise SystemExit(f"{path}: a relative import: name the module")
            of = node.module or ""
            found |= {inner if (inner := f"{of}.{alias.name}") in modules else of for alias in node.names}
    return {name for name in found if name in modules and name != module_of(path)}


def room_of(module: str) -> str:
    """The folder that it lies in, of those in python/wherry; empty: beside them."""
    _, _, inner = module.partition(".")
    room = inner.partition(".")[0]
    return room if (PACKAGE / room).is_dir() and room else ""


def layer_of(module: str, of_services: tuple[str, ...]) -> str:
    """One of LAYERS."""
    room = room_of(module)
    if room in of_services:
        parts = module.split(".")
        return f"service.{parts[2]}" if len(parts) > 2 and parts[2] in FACES else "service"
    return {"": COMMON.get(module, "top"), "_native": "errors"}.get(room, room)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(one: str) -> None:
        index[one] = low[one] = len(index)
        stack.append(one)
        for other in sorted(graph[one]):
            if other not in index:
                visit(other)
            if other in stack:
                low[one] = min(low[one], low[other])
        if low[one] == index[one]:
            group = stack[stack.index(one) :]
            del stack[stack.index(one) :]
            if len(group) > 1:
                found.append(sorted(group))

    for one in sorted(graph):
        if one not in index:
            visit(one)
    return found


def violations(graph: dict[str, set[str]], of_services: tuple[str, ...]) -> list[str]:
    """One line for every import that breaks the rule, every circle and every full folder."""
    found = []
    for one, others in graph.items():
        mine = layer_of(one, of_services)
        if mine not in LAYERS:
            found.append(f"{one}: '{room_of(one)}' is neither a room nor in SERVICES of wherry/services.py")
            continue
        for other in sorted(others):
            theirs = layer_of(other, of_services)
            rooms = room_of(one), room_of(other)
            if theirs not in LAYERS:
                continue  # it has a line of its own
            if rooms[0] != rooms[1] and {*rooms} <= {*of_services}:
                found.append(f"{one} -> {other}: services do not import each other")
            elif mine in FACES and rooms[1] in of_services:
                found.append(f"{one} -> {other}: {mine} knows no service")
            elif LAYERS.index(theirs) > LAYERS.index(mine):
                found.append(f"{one} -> {other}: {mine} lies below {theirs}")
    found += [f"a circle: {', '.join(group)}" for group in circles(graph)]
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        if (count := len(list(folder.glob("*.py")))) > MOST_MODULES:
            found.append(f"{folder.relative_to(ROOT)}: {count} modules, at most {MOST_MODULES} are wanted")
    return found


def arrows(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Between modules of different rooms. What lies beside the rooms (errors, the list of services) is in none."""
    return [
        (one, other)
        for one, others in sorted(graph.items())
        for other in sorted(others)
        if "" not in (rooms := (room_of(one), room_of(other))) and rooms[0] != rooms[1]
    ]


def main(words: list[str]) -> int:
    """0, or 1 with a line for each violation. `--arrows` prints all of them."""
    modules = {module_of(path): path for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")])}
    graph = {name: imports(path, modules) for name, path in modules.items()}
    between = arrows(graph)
    pairs = {(room_of(one), room_of(other)) for one, other in between}
    if "--arrows" in words:
        print("\n".join(f"{one} -> {other}" for one, other in between))
    lines = violations(graph, services())
    if len(between) > MOST_ARROWS:
        lines.append(f"{len(between)} arrows between rooms, at most {MOST_ARROWS} are wanted (--arrows shows them)")
    print(
        "\n".join(lines) or f"python: {len(modules)} modules, {len(between)} arrows between rooms ({len(pairs)} pairs)"
    )
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
