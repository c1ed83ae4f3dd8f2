"""Makes the plan for the shape of a call: an array of i64 that the kernel takes as its hidden last argument.

A planner makes the plans. Each is checked against the demands of the compiled function, and cached by the values that
it depends on.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.analysis import PlanDemands
from tirlite.ir import Var
from tirlite.plan.shape.formulas import evaluator
from tirlite.plan.shape.per_shape import UnsafeShape
from tirlite.runtime.bind import Binding
from tirlite.runtime.messages import WorkspaceTooLarge
from tirlite.runtime.signature import Signature
from tirlite.sizes import Dim

Entries: TypeAlias = npt.NDArray[np.int64]

# The number of cached plans, those of the most recent shapes.
_KEPT = 1024
_LARGEST = 1 << 62
_NO_BYTES = ctypes.c_char * 0


class Planner(Protocol):
    """Makes a plan's entries from the values of some dims; the first entries are the bytes of each arena."""

    @property
    def dims(self) -> tuple[Dim, ...]: ...

    @property
    def arenas(self) -> tuple[str, ...]: ...

    def entries_at(self, values: tuple[int, ...], /) -> tuple[int, ...]: ...


class Planned:
    """The entries of one plan, and their address."""

    __slots__ = ("address", "entries")

    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self.address = ctypes.addressof(_NO_BYTES.from_buffer(entries.data))


class ShapePlans:
    """The plans of one function.

    `variables`: the dims and parameters that the planner depends on. `demands`: the demands of the compiled function.
    """

    def __init__(
        self, planner: Planner, variables: tuple[Var, ...], demands: PlanDemands, signature: Signature
    ) -> None:
        self._planner = planner
        self._signature = signature
        self._demands = demands
        self._sizes = evaluator(demands.sizes, tuple(demands.variables))
        needed = tuple(dict.fromkeys((*variables, *demands.variables.values())))
        self._count = len(variables)
        self._demanded = [needed.index(var) for var in demands.variables.values()]
        self._dims = [(place, signature.dims.index(var)) for place, var in enumerate(needed) if var in signature.dims]
        positions = {scalar.var: scalar.position for scalar in signature.scalars}
        self._scalars = [(place, positions[var]) for place, var in enumerate(needed) if var in positions]
        self._names = [var.name for var in needed]
        self._plans = lru_cache(maxsize=_KEPT)(self._made)

    def of(self, binding: Binding) -> Planned:
        """The plan for a call. Raises CallValueError if its arenas exceed 2^62 bytes."""
        values = [0] * len(self._names)
        for place, slot in self._dims:
            values[place] = binding.dims[slot]
        for place, position in self._scalars:
            values[place] = int(binding.operands[position])
        return self._plans(tuple(values))

    def _made(self, values: tuple[int, ...]) -> Planned:
        entries = self._planner.entries_at(values[: self._count])
        binding = ", ".join(f"{name} = {value}" for name, value in zip(self._names, values, strict=True))
        arenas = sum(entries[: len(self._planner.arenas)])
        if arenas > _LARGEST:
            raise WorkspaceTooLarge(self._signature.name, str(arenas), "arena", binding).error()
        sizes = self._sizes(tuple(values[place] for place in self._demanded))
        fault = self._demands.conditions.fault(entries, sizes)
        if fault:
            raise UnsafeShape(binding, fault).error()
        return Planned(np.array(entries, np.int64))

    @property
    def kept(self) -> tuple[int, int]:
        """How many calls found a cached plan, and how many had to make one."""
        info = self._plans.cache_info()
        return info.hits, info.misses
