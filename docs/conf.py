"""The documentation site: `make docs` builds it into docs/_build/html; every warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "bench")]

project = "Margent"
author = "The Margent authors"
copyright = "the Margent authors; Apache-2.0"  # noqa: A001  (Sphinx's own name)
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "myst_parser",
    "outside",  # proofs and project pages, which live beside this folder
    "commands",  # the command reference, from the commands' own help
    "names",  # docstrings of the Python reference
    "choosing",  # the pictures and tables of "Choosing"
    "signs",  # the theme's signs, for those who listen
]
exclude_patterns = ["_build", "extensions", "conftest.py"]
html_theme = "furo"
html_title = "Margent"
html_static_path = ["assets"]
html_css_files = ["margent.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"source_edit_link": "", "top_of_page_buttons": []}

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90

nitpicky = True
# Types of other packages and of the standard library have no page here; ours must (see extensions/names.py).
nitpick_ignore_regex = [("py:.*", r"(?!margent\.).*")]


def setup(app: object) -> None:
    """Fences that are shown as they are."""
    from pygments.lexers.special import TextLexer

    app.add_lexer("csv", TextLexer)  # type: ignore[attr-defined]
