"""Calls of a kernel with and without time stamps around its outermost loops, on the same values."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from time import perf_counter, perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tirlite.driver.build import Version
from tirlite.record import replace
from tirlite.rewrite.loops.time_loops import Clock, ClockKind, TimeLoops, outermost

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.codegen import Callees
    from tirlite.ir import PrimFunc
    from tirlite.rewrite.pipeline import Rewritten
    from tirlite.runtime import Binding

    Array: TypeAlias = npt.NDArray[Any]


class _Timed(Version):
    """A version with time stamps; calls pass it an additional array for them."""

    untimed: PrimFunc

    def _rewrite(self, ahead: Callees | None = None) -> Rewritten:
        found = super()._rewrite(ahead)
        self.untimed = found.func
        return replace(found, func=TimeLoops(_clock())(found.func), facts=None)


class TimedCalls:
    """Calls of one version, with time stamps and without, on the same arguments."""

    def __init__(self, version: Version, binding: Binding) -> None:
        """`ticks`: for each of `loops` the nanoseconds in the last call, and how often it ran; see `TimeLoops`."""
        # An observer keeps the version out of the cache on disk. Plans by shape are replaced by one plan.
        strategy = "auto" if version.options.strategy == "per_shape" else version.options.strategy
        options = replace(version.options, observers=(_watch,), strategy=strategy)
        self.timed = _Timed(version.front, options, version.form)
        self.plain = version
        self.binding = binding
        _ = self.timed.rewritten
        self.loops = outermost(self.timed.untimed.body)
        self.func = self.timed.untimed
        self.ticks: Array = np.zeros(2 * len(self.loops) + 1, np.int64)
        split = len(binding.operands) - len(binding.dims)
        operands = [*binding.operands[:split], self.ticks.ctypes.data, *binding.operands[split:]]
        self._with_ticks = replace(binding, operands=operands)
        written = [each.position for each in version.signature.arrays if each.is_written]
        self._arrays = [array for each in written if isinstance(array := binding.arguments[each], np.ndarray)]
        self._before = [array.copy() for array in self._arrays]

    @classmethod
    def of(cls, version: Version, binding: Binding, in_order: Callable[[], Version]) -> TimedCalls:
        """Timed calls of a version, or of the sequential one if the arguments require it; each was called once."""
        calls = cls(version, binding)
        if calls.seconds(timed=False) is None:
            calls = cls(in_order(), binding)
            calls.seconds(timed=False)
        calls.seconds(timed=True)
        return calls

    def seconds(self, *, timed: bool) -> float | None:
        """The time of a call on the original values; None if the call is for the sequential version."""
        for array, before in zip(self._arrays, self._before, strict=True):
            array[...] = before
        self.ticks[...] = 0
        version, binding = (self.timed, self._with_ticks) if timed else (self.plain, self.binding)
        start = perf_counter()
        return perf_counter() - start if version.run(binding) else None


def _watch(_step: object) -> None:
    """An observer that does nothing."""


@cache
def _clock() -> Clock:
    """The nanosecond clock: CPython's if it can be called from C, else Python's by a callback."""
    older = getattr(ctypes.pythonapi, "_PyTime_GetPerfCounter", None)
    newer = getattr(ctypes.pythonapi, "PyTime_PerfCounterRaw", None)
    if newer is not None:
        return Clock(_address(newer), ClockKind.STORES)
    return Clock(_address(older if older is not None else _CALLED_BACK))


_CALLED_BACK = ctypes.CFUNCTYPE(ctypes.c_int64)(perf_counter_ns)


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
