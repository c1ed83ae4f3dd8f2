"""Checks the arguments of a call, and converts them to what the kernel takes and what the caller gets back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from tirlite.diag import TirliteError
from tirlite.ir import Expr, Var
from tirlite.ir.walk import variables_in
from tirlite.late import LateModule
from tirlite.record import cached_property, record
from tirlite.runtime.fresh import address_of, aligned_array, fresh_array
from tirlite.runtime.signature import ArrayParam, Signature

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.runtime import explain, extents, scalars
    from tirlite.runtime.strided import Layouts, Strides

    Array: TypeAlias = npt.NDArray[Any]
else:
    explain = LateModule("tirlite.runtime.explain")
    extents = LateModule("tirlite.runtime.extents")
    scalars = LateModule("tirlite.runtime.scalars")


class _Omitted:
    """Stands for an output that the caller left out."""


OMITTED = _Omitted()


@record
class Binding:
    """A call whose arguments have passed all checks.
    `operands`: addresses and numbers for the parameters in order, then the dims. `arguments`: the arrays and numbers
    themselves, which must outlive the addresses. `results`: the outputs that the caller left out. `is_empty`: a dim
    declared as at least 1 is 0. `strides`: those of arrays that are not dense, see `runtime.strided`.
    """

    operands: list[int | float]
    dims: list[int]
    arguments: list[object]
    results: tuple[Array, ...]
    is_empty: bool
    strides: Strides | None = None

    @property
    def bytes(self) -> int:
        """The bytes of all arrays together."""
        return sum(each.nbytes for each in self.arguments if isinstance(each, np.ndarray))


class Body(Protocol):
    """Facts about a function's body, which binding seldom needs."""

    @property
    def whole(self) -> Signature:
        """The signature of the function with its body."""

    @property
    def unfit(self) -> Sequence[int]:
        """The positions of outputs that cannot be left out."""

    @property
    def partial(self) -> Sequence[int]:
        """The positions of outputs of which not all elements may be stored: if left out, they are filled with 0."""


class Binder:
    """Binds the arguments of calls of one function.

    `fixed`: arrays for some parameters, by name, which are checked once here and used for all calls. The function only
    reads them, and none of their extents is computed. `constants`: the same arrays as passed to the function.
    """

    def __init__(self, signature: Signature, fixed: Mapping[str, Array] | None, body: Body) -> None:
        """`signature` may be that of a head without a body; `body` supplies the rest."""
        self.signature = signature
        self._body = body
        self._count = len(signature.names)
        self._unbound = [-1] * len(signature.dims)
        self._slots = {dim.name: slot for slot, dim in enumerate(signature.dims) if dim.name not in signature.names}
        self._fix(fixed or {})
        self._defaults = {each.position: each.default for each in signature.scalars if each.default is not None}
        self._outputs = {array.position for array in signature.arrays if array.is_output}
        self._inputs = [position for position in self._free if position not in self._outputs]
        # The input extents and the output shapes of the last call with inputs alone.
        self._last_shapes: tuple[list[int] | None, list[tuple[int, ...]]] = (None, [])
        self._has_computed = any(array.computed for array in signature.arrays)
        self._has_declared = any(array.buffer.strides for array in signature.arrays)
        self._facts = tuple(
            (slot, var.dim.min, var.dim.max, var.dim.multiple_of)
            for slot, var in enumerate(signature.dims)
            if var.dim is not None
        )

    def _fix(self, fixed: Mapping[str, Array]) -> None:
        """Computes what is known before any call: arguments, operands, dims, and bytes that no output may overlap."""
        signature = self.signature
        self._fixed = fixed
        self._given: list[object] = [OMITTED] * self._count
        self._operands: list[Any] = [OMITTED] * self._count
        self._fixed_extents: list[tuple[int, int, bool, str]] = []
        self.constants: dict[str, Array] = {}
        by_name = {param.name: param for param in signature.arrays}
        for name, array in fixed.items():
            param = by_name[name]
            # Quick calls compare dtype objects by identity, and NumPy has several for a type, as for arrays in files.
            array = array if array.dtype is param.dtype or array.dtype != param.dtype else array.view(param.dtype)
            assert not param.is_written
            assert not param.computed
            strided: list[ArrayParam] = []
            self._given[param.position] = array
            self._operands[param.position] = start = self._bound(param, self._given, self._unbound, strided)
            assert not strided
            self._fixed_extents.append((start, start + array.nbytes, False, name))
            kept: Any = self._given[param.position]
            self.constants[name] = kept
        self._arrays = tuple(param for param in signature.arrays if param.name not in fixed)
        self._free = [position for position, value in enumerate(self._given) if value is OMITTED]

    def bind(self, args: Sequence[object], named: Mapping[str, object]) -> Binding:
        """Checks the arguments. Raises CallTypeError or CallValueError before anything is written."""
        whole = len(args) == self._count and not named and not self._fixed_extents
        by_name: Mapping[str, object] = {}
        if named:
            by_name = {name: value for name, value in named.items() if name in self._slots}
            named = {name: value for name, value in named.items() if name not in by_name}
        given: list[Any] = list(args) if whole else self._arranged(args, named)
        strided: list[ArrayParam] = []
        dims = self._unbound.copy()
        operands = self._operands.copy()
        extents: list[tuple[int, int, bool, str]] = []
        omitted = []
        for param in self._arrays:
            if (array := given[param.position]) is OMITTED:
                omitted.append(param)
                continue
            if type(array) is not np.ndarray:
                given[param.position] = explain.require_array(param, array)
            operands[param.position] = start = self._bound(param, given, dims, strided)
            array = given[param.position]
            extents.append((start, start + array.nbytes, param.is_written, param.buffer.name))
        for scalar in self.signature.scalars:
            number = scalars.scalar_value(scalar.name, scalar.var.dtype, given[scalar.position])
            operands[scalar.position] = given[scalar.position] = number
        for name, value in by_name.items():
            slot = self._slots[name]
            dims[slot] = explain.dim_by_name(self.signature, slot, value, dims[slot])
        if -1 in dims and self._has_computed:
            self._solve(given, operands, dims)
        is_empty = self._check_facts(dims, omitted)
        if self._has_computed:
            self._check_computed(given, operands, dims)
        if strided:
            has_strides = self.layouts.admit(given, operands, strided)
        else:
            if self._fixed_extents and any(is_written for _, _, is_written, _ in extents):
                extents += self._fixed_extents
            _refuse_overlap(extents)
        results = self._allocate(omitted, given, operands, dims, is_empty=is_empty) if omitted else ()
        if self._has_declared:
            self.layouts.demand_declared(given, operands)
        strides = self.layouts.strides(given) if strided and has_strides else None
        return Binding(operands + dims, dims, given, results, is_empty, strides)

    @cached_property
    def layouts(self) -> Layouts:
        """The requirements on arrays that are not dense."""
        from tirlite.runtime.strided import Layouts

        return Layouts(self._body.whole, self._fixed)

    def values(self, operands: Sequence[int | float], dims: Sequence[int]) -> dict[Var, int]:
        """The scalar parameters and dims by variable, to evaluate extents with."""
        values = dict(zip(self.signature.dims, dims, strict=True))
        for scalar in self.signature.scalars:
            values[scalar.var] = int(operands[scalar.position]) if not scalar.var.dtype.is_float else 0
        return values

    def _bound(self, param: ArrayParam, given: list[Any], dims: list[int], strided: list[ArrayParam]) -> int:
        """Checks an array against its parameter, and returns its address; sets the dims that its shape defines.
        Adds the parameter to `strided` if the array is not dense. A read-only array that is not aligned for its type,
        from a message or a packed record, is replaced by a copy.
        """
        array = given[param.position]
        if type(array) is not np.ndarray or array.dtype != param.dtype:
            array = explain.require_array(param, array)
        if not (array.flags.aligned or param.is_written):
            given[param.position] = copy = aligned_array(array.shape, param)
            copy[...] = array
            array = copy
        flags = array.flags
        has_buffer = flags.writeable
        if not (flags.carray if param.is_written else flags.c_contiguous):
            explain.require_layout(param, array)
            if not flags.c_contiguous:
                strided.append(param)
                has_buffer = False
        shape = array.shape
        if len(shape) != param.rank:
            explain.refuse_rank(param, array)
        for axis, slot in param.bare:
            if dims[slot] < 0:
                dims[slot] = shape[axis]
            elif dims[slot] != shape[axis]:
                explain.refuse_dim(self.signature, param, axis, shape[axis], dims[slot])
        for axis, extent in param.fixed:
            if shape[axis] != extent:
                explain.refuse_extent(param, axis, shape[axis], extent)
        address = address_of(array) if has_buffer else int(array.ctypes.data)
        if address % param.align:
            explain.refuse_alignment(param)
        return address

    def _check_facts(self, dims: list[int], omitted: list[ArrayParam]) -> bool:
        if omitted and -1 in dims:
            explain.refuse_unbound(self.signature, omitted, dims)
        is_empty = False
        for slot, least, most, multiple in self._facts:
            value = dims[slot]
            if value < least:
                if least != 1:
                    explain.refuse_fact(self.signature, slot, value, f"to be at least {least}")
                is_empty = True
            if most is not None and value > most:
                explain.refuse_fact(self.signature, slot, value, f"to be at most {most}")
            if value % multiple:
                explain.refuse_fact(self.signature, slot, value, f"to be a multiple of {multiple}")
        return is_empty

    def _solve(self, given: list[object], operands: list[Any], dims: list[int]) -> None:
        """Solves extents such as `h + 2` for dims that are no extent by themselves."""
        from tirlite.runtime.extents import solved

        places = [
            (param, axis, extent, array.shape[axis])
            for param in self._arrays
            if isinstance(array := given[param.position], np.ndarray)
            for axis, extent in param.computed
        ]
        values = self.values(operands, dims)
        unknown = [var for slot, var in enumerate(self.signature.dims) if dims[slot] < 0]
        known = {var: value for var, value in values.items() if var not in unknown}
        found = solved([place[2:] for place in places], known, unknown)
        if not isinstance(found, dict):
            param, axis, _, actual = places[found.place]
            explain.refuse_unsolved(param, axis, actual)
        for slot, var in enumerate(self.signature.dims):
            dims[slot] = found.get(var, dims[slot])

    def _check_computed(self, given: list[object], operands: list[Any], dims: list[int]) -> None:
        values = self.values(operands, dims)
        for param in self._arrays:
            array = given[param.position]
            if isinstance(array, np.ndarray):
                for axis, extent in param.computed:
                    wanted = extents.extent_at(extent, values)
                    if array.shape[axis] != wanted:
                        explain.refuse_extent(param, axis, array.shape[axis], wanted)

    def _allocate(
        self, omitted: list[ArrayParam], given: list[object], operands: list[Any], dims: list[int], *, is_empty: bool
    ) -> tuple[Array, ...]:
        unfit, partial = self._body.unfit, self._body.partial
        values = self.values(operands, dims) if self._has_computed else {}
        results = []
        for param in omitted:
            if param.position in unfit:
                explain.refuse_without_value(self.signature, param)
            shape = [0] * param.rank
            for axis, extent in param.fixed:
                shape[axis] = extent
            for axis, slot in param.bare:
                shape[axis] = dims[slot]
            for axis, computed in param.computed:
                shape[axis] = extents.extent_at(computed, values)
            array = fresh_array(self.signature, param, tuple(shape), zeros=is_empty or param.position in partial)
            given[param.position] = array
            operands[param.position] = address_of(array)
            results.append(array)
        return tuple(results)

    def completed(self, args: Sequence[Any]) -> tuple[list[object], tuple[Array, ...]] | None:
        """The arguments with fresh outputs, and the outputs, for a call with inputs only; nothing is checked.

        None if there are no outputs, or if `bind` has to look at the call.
        """
        if len(args) != len(self._inputs) or not self._fresh:
            return None
        given, results = list(args), []
        try:
            sizes = [args[number].shape[axis] for number, axis in self._defining.values()]
            before, shapes = self._last_shapes
            if sizes != before:
                shapes = self._shapes(sizes)
                self._last_shapes = sizes, shapes
            for (param, place, zeros), shape in zip(self._fresh, shapes, strict=True):
                given.insert(place, array := aligned_array(shape, param, zeros=zeros))
                results.append(array)
        except (AttributeError, IndexError, TypeError, ValueError, OverflowError, MemoryError):
            return None
        return given, tuple(results)

    @cached_property
    def _defining(self) -> dict[int, tuple[int, int]]:
        """For each dim that an input's axis defines, by slot: the number of that input and the axis."""
        inputs = [each for each in self._arrays if not each.is_output]
        return {slot: (self._inputs.index(each.position), axis) for each in inputs for axis, slot in each.bare}

    @cached_property
    def _fresh(self) -> tuple[tuple[ArrayParam, int, bool], ...]:
        """The outputs, with their places among the given arguments and whether they are filled with 0.

        Empty if an output cannot be left out, or has an extent that no input defines.
        """
        defined = {self.signature.dims[slot] for slot in self._defining}
        outputs = [param for param in self._arrays if param.is_output]
        used = variables_in(*(extent for param in outputs for extent in param.buffer.shape))
        if any(param.position in self._body.unfit for param in outputs) or not defined.issuperset(used):
            return ()
        # Overlap of written inputs with constants is checked by `bind`.
        if self._fixed and any(param.is_written and not param.is_output for param in self._arrays):
            return ()
        return tuple((e, self._free.index(e.position), e.position in self._body.partial) for e in outputs)

    @cached_property
    def _rules(self) -> list[list[int | tuple[int, int, int] | Expr]]:
        """For each axis of each output: its extent, or the number of an input extent, a factor and what is added to it.

        An expression where the extent is another one.
        """
        from tirlite.ir.size import times_and_plus

        numbers = {self.signature.dims[slot]: number for number, slot in enumerate(self._defining)}

        def rule(extent: int | Expr) -> int | tuple[int, int, int] | Expr:
            if isinstance(extent, int):
                return extent
            if isinstance(extent, Var):
                return numbers[extent], 1, 0
            found = times_and_plus(extent, self.signature.dims)
            return extent if found is None else (numbers[found[0]], *found[1:])

        return [[rule(extent) for extent in param.extents] for param, *_ in self._fresh]

    def _shapes(self, sizes: Sequence[int]) -> list[tuple[int, ...]]:
        """The shapes of the outputs for these input extents."""
        dims = (self.signature.dims[slot] for slot in self._defining)
        values = dict(zip(dims, sizes, strict=True)) if self._has_computed else {}
        shapes = []
        for rules in self._rules:
            shape = []
            for rule in rules:
                if isinstance(rule, tuple):
                    number, factor, added = rule
                    shape.append(factor * sizes[number] + added)
                else:
                    shape.append(rule if isinstance(rule, int) else extents.extent_at(rule, values))
            shapes.append(tuple(shape))
        return shapes

    def _arranged(self, args: Sequence[object], named: Mapping[str, object]) -> list[object]:
        """The arguments in the order of the parameters.

        If there are fewer positional arguments than parameters, they are the inputs, as far as these go.
        """
        signature, outputs = self.signature, self._outputs
        order = self._inputs if len(args) <= len(self._inputs) else self._free
        if len(args) > len(self._free):
            explain.refuse_count(signature, len(args))
        given = self._given.copy()
        for position, value in zip(order, args, strict=False):
            given[position] = value
        for name, value in named.items():
            position = explain.position_of(signature, name)
            if given[position] is not OMITTED:
                explain.refuse_repeated(signature, name)
            given[position] = value
        for position, value in self._defaults.items():
            if given[position] is OMITTED:
                given[position] = value
        for position, value in enumerate(given):
            if value is OMITTED and position not in outputs:
                explain.refuse_missing(signature, position)
        return given


def _refuse_overlap(extents: list[tuple[int, int, bool, str]]) -> None:
    """Raises CallValueError if bytes that the kernel writes belong to two arguments."""
    reach, written_reach = (0, ""), (0, "")
    for start, end, is_written, name in sorted(extents):
        if start == end:
            continue
        if start < written_reach[0]:
            raise _overlap(written_reach[1], name)
        if is_written and start < reach[0]:
            raise _overlap(name, reach[1])
        reach = max(reach, (end, name))
        if is_written:
            written_reach = max(written_reach, (end, name))


def _overlap(written: str, other: str) -> TirliteError:
    from tirlite.ir.faults import OverlappingArguments

    return OverlappingArguments(written, other).error()
