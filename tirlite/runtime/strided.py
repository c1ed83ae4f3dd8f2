"""Checks arrays that are not dense, and computes their strides: the rare path of binding.

Most parameters accept any strides. If a kernel uses the bytes of a parameter as a whole (see `dense_params`), a
read-only array is copied, and a written one is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.analysis.array_overlap import meets_itself, share_elements
from tirlite.ir import Buffer, Function, IntImm, Var
from tirlite.ir.faults import OverlappingArguments
from tirlite.ir.walk import aliased_in
from tirlite.record import cached_property
from tirlite.runtime import explain
from tirlite.runtime.fresh import aligned_array
from tirlite.runtime.signature import ArrayParam, Signature

Array: TypeAlias = npt.NDArray[Any]
# The strides in elements of the array for each parameter that accepts any.
Strides: TypeAlias = "tuple[tuple[int, ...], ...]"


class Layouts:
    """The requirements of a function's parameters on the strides of arrays; `fixed` arrays are dense.

    `signature` must be of a function with its body.
    """

    def __init__(self, signature: Signature, fixed: Mapping[str, Array]) -> None:
        self._signature = signature
        self._fixed = fixed

    @cached_property
    def params(self) -> tuple[ArrayParam, ...]:
        """The parameters that accept any strides."""
        dense = dense_params(self._signature.func)
        arrays = self._signature.arrays
        return tuple(param for param in arrays if param.name not in self._fixed and param.buffer not in dense)

    def admit(self, given: list[object], operands: list[Any], strided: Sequence[ArrayParam]) -> bool:
        """Checks the arrays of the parameters `strided`, copies some, and returns whether any remain with strides.

        Raises CallValueError for strides that the function cannot take, and for overlapping arrays that are written.
        """
        positions = {param.position for param in strided}
        strided = [param for param in self._signature.arrays if param.position in positions]
        for param in strided:
            array = given[param.position]
            assert isinstance(array, np.ndarray)
            if param.is_written and self._takes_dense(param):
                explain.refuse_strides(param)
            if param.is_written and meets_itself(array):
                explain.refuse_repeats(param)
        self._refuse_overlap(given)
        for param in strided:
            if self._takes_dense(param):
                array = given[param.position]
                assert isinstance(array, np.ndarray)
                given[param.position] = copy = aligned_array(array.shape, param)
                copy[...] = array
                operands[param.position] = int(copy.ctypes.data)
        return any(param in self.params for param in strided)

    def demand_declared(self, given: Sequence[object], operands: Sequence[Any]) -> None:
        """Raises CallValueError for an array whose strides differ from the declared ones."""
        numbers = {scalar.var: operands[scalar.position] for scalar in self._signature.scalars}
        for param in self._signature.arrays:
            array = given[param.position]
            if not param.buffer.strides or not isinstance(array, np.ndarray) or not array.size:
                continue
            for axis, stride in enumerate(param.buffer.strides):
                assert isinstance(stride, IntImm | Var)
                wanted = stride.value if isinstance(stride, IntImm) else int(numbers[stride])
                if array.shape[axis] > 1 and array.strides[axis] != wanted * array.itemsize:
                    explain.refuse_declared(param, axis, array.strides[axis] // array.itemsize, wanted)

    def _takes_dense(self, param: ArrayParam) -> bool:
        return param not in self.params and not param.buffer.strides

    def strides(self, given: Sequence[object]) -> Strides:
        """The strides of the arrays whose parameters accept any; along an axis of extent 1, 0, or 1 if the last."""
        found = []
        for param in self.params:
            array = given[param.position]
            assert isinstance(array, np.ndarray)
            own = [
                step // array.itemsize if extent > 1 else int(axis == array.ndim - 1)
                for axis, (step, extent) in enumerate(zip(array.strides, array.shape, strict=True))
            ]
            found.append(tuple(own))
        return tuple(found)

    def _refuse_overlap(self, given: Sequence[object]) -> None:
        arrays = [(p, a) for p in self._signature.arrays if isinstance(a := given[p.position], np.ndarray)]
        for (first, one), (second, other) in combinations(arrays, 2):
            if (first.is_written or second.is_written) and share_elements(one, other):
                written, beside = (first, second) if first.is_written else (second, first)
                raise OverlappingArguments(written.name, beside.name).error()


def dense_params(func: Function) -> frozenset[Buffer]:
    """The arrays that must be dense: viewed, passed to calls, of vector elements, or with an address taken."""
    found = aliased_in(func.body)
    arrays = func.arrays
    return frozenset(param for param in arrays if param in found or param.dtype.lanes > 1 or param.strides)
