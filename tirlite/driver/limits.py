"""Functions that do one thing as fast as a machine does it: move bytes, multiply and add, compute a function.

What they take is the least that anything which moves as many bytes, or computes as much, can take.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tirlite.driver.build import Version
from tirlite.driver.front import Front
from tirlite.driver.timed_calls import TimedCalls
from tirlite.dsl import parse
from tirlite.ir import dtype_of
from tirlite.rewrite.options import Options
from tirlite.runtime import Binder
from tirlite.target import Target

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.ir import PrimFunc

    Array: TypeAlias = npt.NDArray[Any]
    # A function and its arguments.
    Call: TypeAlias = tuple[PrimFunc, tuple[object, ...]]

_COPIED = """
n = tl.dim("n")

@tl.kernel
def copied(x: tl.u8[n], y: tl.out[tl.u8[n]]):
    for i in LOOP(n):
        y[i] = x[i]
"""
_READ = """
n, m = tl.dims("n m")

@tl.kernel
def read(x: tl.i32[n, m], y: tl.out[tl.i32[n]]):
    for i in LOOP(n):
        y[i] = 0
        for j in tl.reduce(m):
            y[i] += x[i, j]
"""
_MULTIPLY_ADDS = """
n = tl.dim("n")

@tl.kernel
def multiply_adds(times: tl.i64, x: tl.KIND[n, LANES], y: tl.out[tl.KIND[n, LANES]]):
    for i in tl.parallel(n):
        t = tl.alloc(tl.KIND[LANES], scope="local")
        t[tl.ramp(0, 1, LANES)] = x[i, tl.ramp(0, 1, LANES)]
        for _ in range(times):
            t[tl.ramp(0, 1, LANES)] = tl.fma(
                t[tl.ramp(0, 1, LANES)], x[i, tl.ramp(0, 1, LANES)], tl.broadcast(tl.KIND(0.5), LANES)
            )
        y[i, tl.ramp(0, 1, LANES)] = t[tl.ramp(0, 1, LANES)]
"""
_FUNCTION = """
n, m = tl.dims("n m")

@tl.kernel
def computed(times: tl.i64, x: tl.KIND[n, m], y: tl.out[tl.KIND[n, m]]):
    for i in tl.parallel(n):
        for _ in range(times):
            for j in range(m):
                y[i, j] = VALUE
"""
_KINDS = ("f32", "f64")
# Vectors that stay in registers, and do not wait for each other.
_VECTORS = 8
_ROWS = 64
_COLUMNS = 512
# What is read must be larger by so much than what is written, to count as read alone.
_READ_ALONE = 8
# Of more bytes the time is taken to be in proportion.
_MOST_BYTES = 1 << 28
_OF_TWO = ("/", "pow", "atan2")


def moving(read: int, written: int, loop: str = "tl.parallel") -> Call:
    """What moves as many bytes, in a loop of this kind. (All zeros would be one page of memory.)"""
    if written * _READ_ALONE < read:
        whole: Array = np.ones((max(read // 4096, 1), 1024), np.int32)
        return parse(_READ.replace("LOOP", loop)), (whole, np.zeros(len(whole), np.int32))
    half: Array = np.ones(max((read + written) // 2, 1), np.uint8)
    return parse(_COPIED.replace("LOOP", loop)), (half, half.copy())


def multiplying(count: int, kind: str) -> Call:
    """What does as many multiply-adds of f32 or f64."""
    dtype = _numpy(kind)
    lanes = _VECTORS * Target.host().processor.vector_bytes // dtype.itemsize
    x: Array = np.full((_ROWS, lanes), 0.5, dtype)
    text = _MULTIPLY_ADDS.replace("KIND", kind).replace("LANES", str(lanes))
    return parse(text), (max(count // x.size, 1), x, x.copy())


def computing(count: int, function: str, kind: str) -> Call:
    """What computes a function, a division or a root as often; `exp!` is the fast form of `exp`."""
    x: Array = np.linspace(0.25, 0.75, _ROWS * _COLUMNS).astype(_numpy(kind)).reshape(_ROWS, _COLUMNS)
    name, fast = function.removesuffix("!"), ", fast=True" if function.endswith("!") else ""
    second = ", x[i, j]" if function in _OF_TWO else ""
    value = "x[i, j] / (x[i, j] + 1)" if function == "/" else f"tl.{name}(x[i, j]{second}{fast})"
    text = _FUNCTION.replace("KIND", kind).replace("VALUE", value)
    return parse(text), (max(count // x.size, 1), x, x.copy())


def _numpy(kind: str) -> np.dtype[Any]:
    dtype = dtype_of(kind)
    assert dtype is not None
    return dtype.numpy


class Limits:
    """What a machine needs at least, in seconds, as its processors and memory are now; the same is measured once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[object, float] = {}

    def moving(self, read: int, written: int) -> float:
        """For so many bytes. Those that fit into caches are moved there."""
        total = read + written
        if not total:
            return 0.0
        share = min(1.0, _MOST_BYTES / total)
        parts = int(read * share), int(written * share)
        loops = ("range", "tl.parallel")
        seconds = [self._seconds((each, *parts), partial(moving, *parts, each)) for each in loops]
        return min(seconds) / share

    def multiplying(self, count: int, kind: str) -> float:
        """For so many multiply-adds; those of 16 bits are done as f32."""
        kind = kind if kind in _KINDS else "f32"
        few = 1 << 24
        return count / few * self._seconds(kind, lambda: multiplying(few, kind)) if count else 0.0

    def computing(self, count: int, function: str, kind: str) -> float:
        """For a function computed so often."""
        kind = kind if kind in _KINDS else "f32"
        few = 1 << 20
        seconds = self._seconds((function, kind), lambda: computing(few, function, kind))
        return count / few * seconds if count else 0.0

    def _seconds(self, key: object, make: Callable[[], Call]) -> float:
        if key not in self._known:
            func, arguments = make()
            front = Front(func)
            version = Version(front, Options(target=self._target))
            binding = Binder(front.signature, None, front).bind(arguments, {})
            self._known[key] = _loop_seconds(TimedCalls(version, binding))
        return self._known[key]


def _loop_seconds(calls: TimedCalls, patience: float = 0.2, runs: int = 15) -> float:
    """The least that the loops of a call took, of three calls at least: without what a call takes besides."""
    found: list[float] = []
    while len(found) < 3 or (len(found) < runs and sum(found) < patience):
        calls.seconds(timed=True)
        found.append(float(calls.ticks[:-1:2].sum()) / 1e9)
    return min(found)
