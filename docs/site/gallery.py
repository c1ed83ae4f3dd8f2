"""The directive `gallery`: each kernel of the library with its source, its plan before and after, and its time here."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import perf_counter

import numpy as np
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import tirlite as tl
from tirlite.kernels.case import Case
from tirlite.kernels.gallery import CASES

ROUNDS = 7
PICTURE = (760, 300)
FITTED = '<svg style="max-width: 100%; height: auto" '


class Gallery(SphinxDirective):
    """`{gallery}`: a section for each kernel of `tirlite.kernels`."""

    def run(self) -> list[nodes.Node]:
        box = nodes.section()
        for case in CASES:
            lines = StringList(list(told(case)), case.kernel.name)
            self.state.nested_parse(lines, self.content_offset, box, match_titles=True)
        return box.children


def told(case: Case) -> Iterator[str]:
    """The section of one kernel, as Markdown."""
    kernel = case.kernel
    yield f"## {kernel.name}"
    yield from (kernel.__doc__ or "").splitlines()
    yield from ("", "```python", *str(kernel.ir).splitlines(), "```", "")
    if kernel.plan.problem.requests:
        before = tl.compile(kernel.ir, strategy="none").plan
        yield f"Storage: `{before.total}` bytes with a place for each temporary, `{kernel.plan.total}` as planned."
        picture = tl.plan.beside(kernel.plan, before).to_svg(*PICTURE)
        yield from ("", "```{raw} html", picture.replace("<svg ", FITTED, 1), "```", "")
    yield from ("Schedule:", "", "```text", *str(kernel.schedule).splitlines(), "```", "")
    size = case.sizes[-1]
    yield f"Size {' x '.join(map(str, size))}: {seconds(case, size) * 1e6:.1f} µs a call where this page was made."
    yield ""


def seconds(case: Case, size: tuple[int, ...]) -> float:
    """The median of some calls."""
    inputs = case.inputs(np.random.default_rng(0), *size)
    taken = []
    for _ in range(ROUNDS):
        start = perf_counter()
        case.kernel(*inputs)
        taken.append(perf_counter() - start)
    return median(taken)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True}
