"""Functions from the text of their bodies, as tests write them."""

from __future__ import annotations

from textwrap import dedent, indent

import tirlite as tl


def parsed(header: str, body: str) -> tl.PrimFunc:
    """The function that begins with `header`, and has this body, which may be indented as a whole."""
    return tl.parse(header + indent(dedent(body).strip("\n"), "    "))
