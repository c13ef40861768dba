# SPDX-License-Identifier: Apache-2.0
"""Spack's recipe for Wherry, for Spack 1.0 and newer (docs/start/install.md)."""

from pathlib import Path

from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage


class Wherry(CMakePackage):
    """Converts arrays of HPC processes to Arrow, routes small messages, and keeps a replicated store in memory."""

    homepage = "https://arxiv.org/abs/2507.04001"  # move follows this paper
    git = f"file://{Path(__file__).resolve().parents[4]}"  # the checkout that contains this file

    license("Apache-2.0")

    version("main", branch="main")

    # Spack's arrow is built without Flight and Substrait. So the variants that need Arrow take it from a virtual
    # environment.
    variant("agent", default=False, description="wherryd, the agent; needs wheels=DIR")
    variant("python", default=False, description="the Python package and the command wherry; needs wheels=DIR")
    variant(
        "wheels",
        default="none",
        values=str,
        multi=False,
        description="virtual environment with the packages of requirements-run.lock",
    )
    conflicts("+agent", when="wheels=none", msg="the agent takes Arrow from wheels=DIR")
    conflicts("+python", when="~agent", msg="the Python package starts agents")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("ucx@1.18:1")  # older versions emulate one-sided reads in software
    depends_on("asio@1.22:1")
    depends_on("cli11@2.1:2")
    depends_on("cpp-httplib@0.11:0.15")
    depends_on("fmt@9:")
    depends_on("nlohmann-json@3.11:3")
    depends_on("openssl@3:3")
    depends_on("spdlog@1.10:1 +fmt_external")
    depends_on("tomlplusplus@3.3:3")
    depends_on("python@3.11", type=("build", "run"), when="+python")

    conflicts("%gcc@:11", msg="it is C++20, as GCC 12 and Clang 16 have it")
    conflicts("%clang@:15", msg="it is C++20, as GCC 12 and Clang 16 have it")

    generator("ninja")

    def cmake_args(self):
        """Builds without tests, benchmarks and simulated RTL. They are not installed; they run in a checkout."""
        wheels = self.spec.variants["wheels"].value
        return [
            self.define("WHERRY_VENV", "" if wheels == "none" else wheels),
            self.define_from_variant("WHERRY_AGENT", "agent"),
            self.define_from_variant("WHERRY_PYTHON", "python"),
            self.define("WHERRY_TESTS", False),
            self.define("WHERRY_BENCH", False),
            self.define("WHERRY_WERROR", False),
        ]
