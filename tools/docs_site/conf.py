# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for the site that tools/docs_site/build.py makes."""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]

from docs_site import pydocs  # noqa: E402

project = "Wherry"
copyright = "the authors of Wherry. Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
html_theme = "furo"
html_title = "Wherry"
html_copy_source = False
html_show_sourcelink = False
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["wherry.css"]
highlight_language = "text"
smartquotes = False  # "" is an empty text
nitpicky = True
# Names of other libraries, and internal names that users never write.
nitpick_ignore_regex = [
    ("cpp:.*", r"std(::.*)?|u?int\d+_t|size_t|wherry"),
    ("cpp:.*", r"(wherry::)?(route::)?(detail(::.*)?|Decoder)"),
    ("c:.*", r"u?int\d+_t|size_t|conveyor|mpp_alltoall|ArrowSchema|ArrowArray"),
    ("py:.*", r"(?!wherry\.|_core\.).*"),
    ("py:.*", r"wherry\.(_native|session)\..*"),
]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
autodoc_mock_imports = ["wherry._native"]  # so that the site does not need a build
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": True}
python_use_unqualified_type_names = True


def setup(app: Any) -> None:
    """Converts our docstrings, which have a simple format of their own."""
    app.connect("autodoc-process-docstring", pydocs.on_docstring)
    app.connect("autodoc-process-signature", pydocs.on_signature)
