# SPDX-License-Identifier: Apache-2.0
"""The Spack recipe, loaded with substitutes for Spack's directives. It passes valid options to CMake, and names every
library that the build looks for. These tests do not run Spack."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import util
from types import ModuleType
from typing import Any

import pytest
from deployed import DEPLOY

ROOT = DEPLOY.parent
REPOSITORY = DEPLOY / "spack"
RECIPE = REPOSITORY / "packages" / "wherry" / "package.py"
VERSION = r"(@[\w.:]+)?"
SPEC = re.compile(rf"[a-z][\w-]*{VERSION}( ?[+~]\w+)*|[+~]\w+|%\w+{VERSION}|\w+=\w+")


class Recipe:
    """Records the arguments of a recipe's directives. Each directive takes exactly the arguments of Spack's own
    directive."""

    def __init__(self) -> None:
        self.variants: dict[str, bool | str] = {}
        self.depends: dict[str, tuple[str, str | None]] = {}
        self.conflicting: list[tuple[str, str | None]] = []
        self.versions: list[str] = []

    def variant(
        self, name: str, *, default: bool | str, description: str, values: Any = None, multi: bool | None = None
    ) -> None:
        assert name not in self.variants
        assert description
        self.variants[name] = default

    def depends_on(
        self, spec: str, *, when: str | None = None, type: str | tuple[str, ...] = ("build", "link")
    ) -> None:
        for text in (spec, when or spec):
            assert SPEC.fullmatch(text), text
        assert {*([type] if isinstance(type, str) else type)} <= {"build", "link", "run", "test"}
        name = re.split("[@ +~]", spec)[0]
        assert name not in self.depends
        self.depends[name] = (spec, when)

    def conflicts(self, spec: str, *, when: str | None = None, msg: str | None = None) -> None:
        for text in (spec, when or spec):
            assert SPEC.fullmatch(text), text
        self.conflicting.append((spec, when))

    def version(self, number: str, *, branch: str) -> None:
        assert number == branch
        self.versions.append(number)

    def license(self, name: str) -> None:
        assert name == "Apache-2.0"

    def generator(self, name: str) -> None:
        assert name == "ninja"


class Variants:
    """`spec.variants` of an install with the variants `chosen`."""

    def __init__(self, chosen: dict[str, bool | str]) -> None:
        self._chosen = chosen

    def __getitem__(self, name: str) -> Any:
        value = self._chosen[name]
        return type("Variant", (), {"value": value})


class CMakePackage:
    """The part of Spack's class that recipes call. Its definitions have the form that Spack's documentation
    describes."""

    def __init__(self, chosen: dict[str, bool | str]) -> None:
        self.spec = type("Spec", (), {"variants": Variants(chosen)})
        self._chosen = chosen

    @staticmethod
    def define(name: str, value: bool | str) -> str:
        if isinstance(value, bool):
            return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
        return f"-D{name}:STRING={value}"

    def define_from_variant(self, name: str, variant: str) -> str:
        return self.define(name, self._chosen[variant])


@pytest.fixture(scope="module")
def loaded() -> Iterator[tuple[Recipe, Any]]:
    """The recorded directives of the recipe, and the recipe's class."""
    recipe = Recipe()
    api = ModuleType("spack.package")
    names = ("variant", "depends_on", "conflicts", "version", "license", "generator")
    vars(api).update({name: getattr(recipe, name) for name in names})
    cmake = ModuleType("spack_repo.builtin.build_systems.cmake")
    vars(cmake)["CMakePackage"] = CMakePackage
    stand_ins = {"spack.package": api, "spack_repo.builtin.build_systems.cmake": cmake}
    for name in [*stand_ins]:
        for end in range(1, name.count(".") + 1):
            parent = ".".join(name.split(".")[:end])
            stand_ins.setdefault(parent, ModuleType(parent))
    with pytest.MonkeyPatch.context() as patch:
        for name, module in stand_ins.items():
            patch.setitem(sys.modules, name, module)
        where = util.spec_from_file_location("recipe_of_wherry", RECIPE)
        assert where is not None
        assert where.loader is not None
        module = util.module_from_spec(where)
        where.loader.exec_module(module)
        yield recipe, vars(module)["Wherry"]


def test_its_options_are_those_of_the_build(loaded: tuple[Recipe, Any]) -> None:
    recipe, package = loaded
    build = "".join(file.read_text() for file in (ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")))
    known = set(re.findall(r"(?:option|set)\((WHERRY_\w+)", build))
    for chosen in (recipe.variants, recipe.variants | {"agent": True, "python": True, "wheels": "/opt/venv"}):
        arguments = package(chosen).cmake_args()
        said = dict(re.findall(r"^-D(\w+):\w+=(.*)$", "\n".join(arguments), re.MULTILINE))
        assert len(said) == len(arguments)
        assert {*said} <= known
        assert said["WHERRY_VENV"] == ("" if chosen["wheels"] == "none" else chosen["wheels"])
        # The build refuses these options without the agent (cmake/Dependencies.cmake).
        with_agent = "ON" in (said["WHERRY_TESTS"], said["WHERRY_BENCH"], said["WHERRY_PYTHON"])
        assert said["WHERRY_AGENT"] == "ON" or not with_agent


def test_it_depends_on_every_library_that_the_build_looks_for(loaded: tuple[Recipe, Any]) -> None:
    recipe, _ = loaded
    dependencies = (ROOT / "cmake" / "Dependencies.cmake").read_text()
    wanted = {*re.findall(r"find_package\((\w+)", dependencies)} - {"Threads"}
    wanted -= {"Arrow", "ArrowFlight", "Parquet", "ArrowCompute", "ArrowSubstrait", "ArrowAcero"}  # of wheels=DIR
    names = {"PkgConfig": "pkgconfig", "nlohmann_json": "nlohmann-json", "httplib": "cpp-httplib"}
    assert {names.get(one, one.lower()) for one in wanted} <= {*recipe.depends}
    minimum = re.search(r'"ucx>=([\d.]+)"', dependencies)
    assert minimum
    assert recipe.depends["ucx"][0].startswith(f"ucx@{minimum[1]}:")
    cmake = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", (ROOT / "CMakeLists.txt").read_text())
    assert cmake
    assert recipe.depends["cmake"][0] == f"cmake@{cmake[1]}:"
    assert recipe.depends["python"] == ("python@3.11", "+python")


def test_it_builds_this_checkout_and_its_variants_fit(loaded: tuple[Recipe, Any]) -> None:
    recipe, package = loaded
    assert recipe.versions == ["main"]
    assert package.git == f"file://{ROOT}"
    assert recipe.variants == {"agent": False, "python": False, "wheels": "none"}
    assert ("+agent", "wheels=none") in recipe.conflicting
    assert ("+python", "~agent") in recipe.conflicting
    assert "namespace: wherry" in (REPOSITORY / "repo.yaml").read_text()
