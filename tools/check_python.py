# SPDX-License-Identifier: Apache-2.0
"""Checks the layers of python/wherry: only allowed imports, no circles, small folders.

errors < system < session < {move, route, kv, ...} < bench < report < cli. A room is a folder of python/wherry. It may
import only names from the __init__.py of other rooms. bench, report and cli must not import services. A service's
contributions to them (wherry.<service>.bench, .report, .cli) are layers above them and above the service's library.
Services never import each other. wherry/services.py lists them.

An arrow is an import from a module of one room to a module of another. Imports in functions and for type checkers
count.

    tools/check_python.py [--arrows] [PACKAGE]
"""

import ast
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "wherry"
MOST_MODULES, MOST_ARROWS = 14, 60
FACES = ("bench", "report", "cli")
"""Rooms that do not import services, and the names of a service's parts above them."""
LAYERS = ["errors", "system", "session", "service", "bench", "service.bench", "report", "service.report", "cli",
          "service.cli", "top"]  # fmt: skip
BESIDE = ("arguments", "errors", "lazy", "libraries", "registers", "services", "units", "version")
"""Modules outside the rooms. They do not import rooms, and every room may import them."""
COMPILED = "_native"
"""A room without an __init__.py interface: other rooms import its modules directly."""


class House:
    """The modules of the package, and the imports of each."""

    def __init__(self, package: Path) -> None:
        self.package = package
        paths = sorted([*package.rglob("*.py"), *package.rglob("*.pyi")])
        self._modules = {self._name(path): path for path in paths}
        listed = re.search(r"^SERVICES = \(([^)]*)\)", (package / "services.py").read_text(), re.MULTILINE)
        self.services = tuple(re.findall(r'"(\w+)"', listed[1])) if listed else ()
        self.graph = {name: self._imports(name, path) for name, path in self._modules.items()}

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.package.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _imports(self, name: str, path: Path) -> set[str]:
        """The modules of the package that a file imports, at any place in the file."""
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                of = node.module or ""
                if node.level or any(alias.name == "*" for alias in node.names):
                    raise SystemExit(f"{path}, line {node.lineno}: name the module, and what is imported from it")
                found |= {inner if (inner := f"{of}.{alias.name}") in self._modules else of for alias in node.names}
        return {one for one in found if one in self._modules and one != name}

    def room(self, module: str) -> str:
        """The folder of the package that contains the module; empty if it is outside the rooms."""
        parts = module.split(".")
        return parts[1] if len(parts) > 1 and (self.package / parts[1]).is_dir() else ""

    def layer(self, module: str) -> str:
        """The layer of a module in LAYERS, or the name of its room if that has no layer."""
        room = self.room(module)
        if room in self.services:
            part = module.split(".")[2:3]
            return f"service.{part[0]}" if part and part[0] in FACES else "service"
        if not room:
            return "errors" if module.removeprefix("wherry.") in BESIDE else "top"
        return "errors" if room == COMPILED else room

    def arrows(self) -> list[tuple[str, str]]:
        """Imports between modules of different rooms. Modules outside the rooms do not count."""
        return [
            (one, other)
            for one, others in sorted(self.graph.items())
            for other in sorted(others)
            if "" not in (rooms := (self.room(one), self.room(other))) and rooms[0] != rooms[1]
        ]

    def violations(self) -> list[str]:
        """One line for every import that breaks the rule, every circle and every full folder."""
        found = []
        for one, others in self.graph.items():
            if self.layer(one) not in LAYERS:
                found.append(f"{one}: '{self.room(one)}' is neither a room nor in SERVICES of wherry/services.py")
                continue
            found += [f"{one} -> {other}: {why}" for other in sorted(others) if (why := self._forbidden(one, other))]
        found += [f"a circle: {', '.join(group)}" for group in circles(self.graph)]
        for folder in sorted({path.parent for path in self._modules.values()}):
            if (count := len(list(folder.glob("*.py")))) > MOST_MODULES:
                found.append(f"{folder.relative_to(self.package.parent)}: {count} modules, at most {MOST_MODULES}")
        if (count := len(self.arrows())) > MOST_ARROWS:
            found.append(f"{count} arrows between rooms, at most {MOST_ARROWS} (--arrows shows them)")
        return found

    def _forbidden(self, one: str, other: str) -> str:
        """Why `one` must not import `other`; empty if the import is allowed."""
        mine, theirs = self.layer(one), self.layer(other)
        rooms = self.room(one), self.room(other)
        if theirs not in LAYERS:
            return ""  # reported in a separate line
        if rooms[0] != rooms[1] and {*rooms} <= {*self.services}:
            return "services do not import each other"
        if mine in FACES and rooms[1] in self.services:
            return f"{mine} knows no service"
        if LAYERS.index(theirs) > LAYERS.index(mine):
            return f"{mine} lies below {theirs}"
        if "" not in rooms and rooms[0] != rooms[1] and rooms[1] != COMPILED and other.count(".") > 1:
            return f"import it from wherry.{rooms[1]}, which says what the room offers"
        return ""


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


def main(words: list[str]) -> int:
    """Prints a line for each violation; returns 1 if there are any, otherwise 0. `--arrows` prints all arrows."""
    named = [word for word in words if not word.startswith("--")]
    house = House(Path(named[0]) if named else PACKAGE)
    arrows = house.arrows()
    if "--arrows" in words:
        print("\n".join(f"{one} -> {other}" for one, other in arrows))
    pairs = {(house.room(one), house.room(other)) for one, other in arrows}
    lines = house.violations()
    figures = f"{len(house.graph)} modules, {len(arrows)} arrows between rooms ({len(pairs)} pairs of rooms)"
    print("\n".join(lines) or f"imports: {figures}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
