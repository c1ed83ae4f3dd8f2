"""Makes one whole page of fragments of HTML, which needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.show.html import escaped

_STYLE = (
    "body{font-family:sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color-scheme:light dark}"
    "h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}svg{max-width:100%;height:auto}"
)


def page(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """A page with a heading and a fragment for each section: (heading in plain text, HTML)."""
    parts = [f"<section><h2>{escaped(heading)}</h2>\n{inside}</section>" for heading, inside in sections]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escaped(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escaped(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
