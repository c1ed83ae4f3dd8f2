"""A pass and kernels before and after it, as text: the text is compared, and what both do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from parsed import parsed

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.interp import interpreter
from tirlite.ir import validate
from tirlite.rewrite import Normalize, Pass, run_pipeline

HEADER = """
n = tl.dim("n", min=0)
m = tl.dim("m")

@tl.kernel
def f(x: tl.f32[n, m], y: tl.f32[n, m]):
"""


def kernel(body: str) -> tl.PrimFunc:
    """The kernel over x, y, n (which may be 0) and m with this body, in normal form."""
    return Normalize()(parsed(HEADER, body))


def native(func: tl.PrimFunc) -> Callable[[dict[object, object]], object]:
    """The function, compiled once for all that it is called with."""
    compiled = tl.compile(func)
    return lambda values: compiled(*(values[param] for param in func.params))


@dataclass(frozen=True)
class ByFacts:
    """A pass that does what is given to a function, by its facts."""

    change: Callable[[Facts], tl.PrimFunc]
    name: str = "by-facts"

    def __call__(self, func: tl.PrimFunc) -> tl.PrimFunc:
        return self.change(Facts(func))


@dataclass(frozen=True)
class BeforeAfter:
    """Passes to be tried. What they make must be valid, and do what was to be done, interpreted and compiled."""

    passes: tuple[Pass, ...]

    def rewritten(self, func: tl.PrimFunc) -> tl.PrimFunc:
        after = run_pipeline(func, self.passes)
        validate(after)
        if after is not func:
            before, runs = interpreter(func), (interpreter(after), native(after))
            for n, m in ((0, 3), (1, 1), (2, 5), (7, 4)):
                wanted = _result(func, before, n, m)
                for run in runs:
                    np.testing.assert_array_equal(_result(after, run, n, m), wanted)
        return after

    def expect(self, before: str, after: str) -> None:
        """That `before` becomes `after`, up to names."""
        found, wanted = self.rewritten(kernel(before)), kernel(after)
        assert tl.structural_equal(found, wanted), f"{found}\nis not\n{wanted}"

    def expect_unchanged(self, body: str) -> None:
        func = kernel(body)
        assert self.rewritten(func) is func


def _result(func: tl.PrimFunc, run: Callable[[dict[object, object]], object], n: int, m: int) -> np.ndarray:
    x, y = (np.random.default_rng(seed).standard_normal((n, m), np.float32) for seed in (1, 2))
    run({**dict(zip(func.params, (x, y), strict=True)), **dict(zip(func.dims, (n, m), strict=True))})
    return y
