"""Binds a function's parameters to the arguments of a call: converts them to arrays and determines the dims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tirlite.diag import CallTypeError, CallValueError, Message
from tirlite.diag.error import an
from tirlite.graph.demand import demand_function
from tirlite.graph.demands import Demand
from tirlite.graph.expr import FunctionNode
from tirlite.graph.types import Array, TensorType, TupleType, Type, structured, tensors
from tirlite.ir import TypeCode
from tirlite.ir.faults import AssertFailed
from tirlite.runtime.foreign import as_array
from tirlite.show import counted
from tirlite.sizes import Dim, dims_of, evaluate
from tirlite.sizes.poly import atom_of


class GraphArgumentCount(Message):
    """A graph was called with too few or too many values.

    Example: `evaluate(f, x)` where `f` takes `x` and `y`.
    Fix: Give one value for each parameter, in order.
    """

    raises = CallTypeError
    title = "`{function}` takes {wanted}, here are {given}"


class GraphArgumentType(Message):
    """A value for a parameter of a graph has another element type, or another number of parts.

    Example: `evaluate(f, np.zeros(4))` where the parameter is `f32[4]`.
    Fix: Convert the array: `x.astype(np.float32)`; for a tuple give one value for each of its parts.
    """

    raises = CallTypeError
    title = "`{name}` is {wanted} and was given {given}"


class GraphArgumentShape(Message):
    """A value for a parameter of a graph has another shape, or gives a dim another value than one before.

    Example: `evaluate(f, np.zeros((4, 5)))` where the parameter is `f64[n, n]`.
    Fix: Give an array of the shape that the message says.
    """

    raises = CallValueError
    title = "`{name}` is {wanted} and was given an array of shape {given}{where}"

    name: str
    wanted: str
    given: str
    where: str = ""


class GraphArgumentFact(Message):
    """The shape of a value gives a dim a value that it was declared not to have.

    Example: `evaluate(f, np.zeros(9))` where the parameter is `f64[n]` and `n` is `tl.dim("n", max=8)`.
    Fix: Give an array that obeys the facts of the dim, or declare it with other facts.
    """

    raises = CallValueError
    title = "`{name}` of shape {given} makes {dim} = {value}, which its facts exclude: {facts}"


def bind(function: FunctionNode, given: Sequence[Any]) -> tuple[list[Any], dict[Dim, int]]:
    """The arguments as arrays, and the values of the dims in the parameters' types.

    Raises CallError if an argument does not fit its type, KernelAssertionError if a demand of the function is violated.
    """
    demand_function(function)
    if len(given) != len(function.params):
        raise GraphArgumentCount(function.name, counted(len(function.params), "value"), len(given)).error()
    leaves = [
        (param.name, of, _typed(param.name, of, array))
        for param, value in zip(function.params, given, strict=True)
        for of, array in zip(tensors(param.type), arrays_of(param.name, param.type, value), strict=True)
    ]
    check_demands(function, [array for *_, array in leaves])
    binding: dict[Dim, int] = {}
    for name, of, array in leaves:
        for extent, actual in zip(of.shape, array.shape, strict=True):
            for dim in atom_of(extent, Dim):
                if dim not in binding:
                    _check_facts(name, array, dim, actual)
                    binding[dim] = actual
    for name, of, array in leaves:
        wanted = tuple(evaluate(extent, binding) for extent in of.shape)
        if wanted != array.shape:
            where = ", ".join(f"{dim} = {value}" for dim, value in binding.items())
            where = f", where {where}" if where else ""
            raise GraphArgumentShape(name, str(of), str(array.shape), where).error()
    arrays = (array for *_, array in leaves)
    return [structured(param.type, arrays) for param in function.params], binding


class ArgumentBinder:
    """Binds the arguments of one function's calls. Arrays with the shapes of the last call are not examined again."""

    def __init__(self, function: FunctionNode) -> None:
        self._function = function
        types = (param.type for param in function.params)
        self._dtypes = [of.dtype.stored if isinstance(of, TensorType) else None for of in types]
        # The shape of each argument, None for a tuple, and the dims.
        self._last: tuple[list[tuple[int, ...] | None], dict[Dim, int]] | None = None

    def bind(self, given: Sequence[Any]) -> tuple[Sequence[Any], dict[Dim, int]]:
        """As the function `bind`."""
        if self._last is not None and len(given) == len(self._dtypes):
            shapes, binding = self._last
            for value, shape, dtype in zip(given, shapes, self._dtypes, strict=True):
                if type(value) is not np.ndarray or value.shape != shape:
                    break
                if value.dtype != dtype or not value.flags.c_contiguous:
                    break
            else:
                return given, binding.copy()
        arrays, binding = bind(self._function, given)
        self._last = [None if isinstance(each, tuple) else each.shape for each in arrays], binding
        return arrays, binding.copy()


def check_demands(function: FunctionNode, arrays: Sequence[Array]) -> None:
    """Raises KernelAssertionError if the arrays, one per tensor of the parameters, violate a demand.

    Demands that the parameters' types already express are checked too, as the error then names the operator.
    """
    if not function.demands:
        return
    sizes: dict[str, int] = {}
    leaves = (of for each in function.declared or [param.type for param in function.params] for of in tensors(each))
    for of, array in zip(leaves, arrays, strict=True):
        for extent, actual in zip(of.shape, array.shape, strict=False):
            sizes |= {dim.name: sizes.get(dim.name, actual) for dim in atom_of(extent, Dim)}
    for demand in function.demands:
        binding = {dim: sizes.get(dim.name) for dim in (*dims_of(demand.left), *dims_of(demand.right))}
        known = {dim: value for dim, value in binding.items() if value is not None}
        if len(known) == len(binding) and not demand.holds(known):
            raise AssertFailed(demand.message, f" ({_values(demand, known)})", span=demand.span).error()


def _values(demand: Demand, known: Mapping[Dim, int]) -> str:
    """The values of both sides of a demand, unless its text is given, and of its other dims, for the message."""
    sides = () if demand.said or not demand.values(known) else (demand.left, demand.right)
    found = " and ".join(map(str, demand.values(known))) if sides else ""
    where = ", ".join(f"{dim} = {value}" for dim, value in known.items() if dim not in sides)
    return f"{found}, where {where}" if found and where else found or where


def arrays_of(name: str, of: Type, value: Any) -> Iterator[Array]:
    """The arrays in an argument for a parameter of this type, C-contiguous, from left to right.

    Raises CallTypeError if the argument's structure differs from the type's.
    """
    if isinstance(of, TensorType):
        yield _array(name, of, value)
    else:
        for kind, each in zip(of.fields, _fields(name, of, value), strict=True):
            yield from arrays_of(name, kind, each)


def _fields(name: str, of: TupleType, value: Any) -> Sequence[Any]:
    if not isinstance(value, tuple | list):
        raise GraphArgumentType(name, str(of), f"a value of type {type(value).__name__}").error()
    if len(value) != len(of.fields):
        raise GraphArgumentType(name, str(of), f"a tuple of {len(value)}").error()
    return value


def _array(name: str, of: TensorType, value: Any) -> Array:
    if isinstance(value, np.ma.MaskedArray):
        raise GraphArgumentType(name, str(of), "a MaskedArray, whose mask would be lost").error()
    if not isinstance(value, np.ndarray | np.generic):
        seen = as_array(value, is_written=False, is_bfloat=of.dtype.code is TypeCode.BFLOAT)
        if isinstance(seen, str) and seen:
            given = f"{an(type(value).__name__)}, whose library says: {seen[:200]}"
            raise GraphArgumentType(name, str(of), given).error()
        value = value if isinstance(seen, str) else seen
    try:
        array = np.asarray(value, order="C")
    except ValueError:
        # Ragged nested lists.
        raise GraphArgumentType(name, str(of), f"a value of type {type(value).__name__}").error() from None
    # Libraries such as ml_dtypes add a bfloat16 type to NumPy.
    is_brain = of.dtype.code is TypeCode.BFLOAT and array.dtype.name == "bfloat16"
    return array.view(of.dtype.stored) if is_brain else array


def _typed(name: str, of: TensorType, array: Array) -> Array:
    if array.dtype != of.dtype.stored:
        raise GraphArgumentType(name, str(of), str(array.dtype)).error()
    if array.ndim != of.rank:
        raise GraphArgumentShape(name, str(of), str(array.shape)).error()
    return array


def _check_facts(name: str, array: Array, dim: Dim, actual: int) -> None:
    # A minimum of 1 is the default, and does not exclude empty arrays.
    if actual == 0 and dim.min == 1:
        return
    if actual < dim.min or (dim.max is not None and actual > dim.max) or actual % dim.multiple_of:
        facts = f"min={dim.min}, max={dim.max}, multiple_of={dim.multiple_of}"
        raise GraphArgumentFact(name, str(array.shape), dim.name, actual, facts).error()
