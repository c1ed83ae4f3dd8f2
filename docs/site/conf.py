"""How Sphinx makes a site of these pages: `python -m sphinx -W -c docs/site docs build/site`."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

project = "tirlite"
copyright = "the authors of tirlite"  # noqa: A001 - Sphinx reads it by this name
extensions = ["myst_parser", "reference", "gallery"]
html_theme = "furo"
html_title = "tirlite"
html_show_sphinx = False
html_copy_source = False
exclude_patterns = ["site"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# Words of ours that no lexer knows, such as Halide's and CMake's, stay plain.
suppress_warnings = ["misc.highlighting_failure"]

# The pages in the order of the side bar; index.md has them as links, which are no table of contents for Sphinx.
CHAPTERS = {
    "Learn": "tutorial planners language editors schedules coming-from gallery",
    "Use": "inspecting debugging safety planning sympy processes cluster export cache graphs",
    "Look up": "api errors glossary benchmarks versions security",
    "The house": "architecture extending decisions CHANGELOG photograph",
}


def add_contents(_: Sphinx, page: str, source: list[str]) -> None:
    """Gives the first page its tables of contents. What the site has no page for is led there, or loaded."""
    source[0] = source[0].replace("](../README.md", "](index.md")
    source[0] = re.sub(r"\[([^\]]*)\]\((notebooks/[\w-]+\.ipynb)\)", r"{download}`\1 <\2>`", source[0])
    if page == "index":
        source[0] += "".join(_table(caption, pages.split()) for caption, pages in CHAPTERS.items())


def _table(caption: str, pages: list[str]) -> str:
    folder = Path(__file__).parent.parent
    told = []
    for page in pages:
        told += (
            sorted(f"decisions/{each.stem}" for each in (folder / page).glob("*.md")) if page == "decisions" else [page]
        )
    return "\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(told) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_contents)
