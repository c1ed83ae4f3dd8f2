# mypy: ignore-errors
# Annotations like `tl.i64[1]` are not types to mypy.
"""A kernel that hands loops to workers in which there is nothing to do, so that what is measured is the handing out."""

from __future__ import annotations

import tirlite as tl


@tl.kernel
def forks(nothing: tl.i64[1], times: tl.i64, y: tl.i64[16]):
    """`times` parallel loops, one after the other. That their inner loops are empty is known when they run alone."""
    for _ in range(times):
        for i in tl.parallel(16):
            for a in range(nothing[0]):
                for b in range(nothing[0]):
                    for c in range(nothing[0]):
                        for d in range(nothing[0]):
                            y[i] += a + b + c + d
