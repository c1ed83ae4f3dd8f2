"""Runs a function on its arguments: it changes the arrays among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.analysis.array_overlap import meets_itself, share_elements
from tirlite.analysis.integers.extents import known_values
from tirlite.analysis.threads import check_thread_nesting
from tirlite.diag import CallValueError, Message, Span, public
from tirlite.interp.addressing import extents
from tirlite.interp.bfloat import is_bfloat, to_bfloat
from tirlite.interp.code import Code
from tirlite.interp.memory import BufferMemory, on_array
from tirlite.interp.program import Marks, Program, Values
from tirlite.interp.statements import shape_of, statement
from tirlite.interp.team import execute
from tirlite.ir import Allocate, Buffer, IntImm, PrimFunc, Steps, Var, run, statements_of
from tirlite.ir.faults import NegativeExtent, OutOfMemory, OverlappingArguments
from tirlite.ir.size import value_of

# Beyond, sizes are refused without asking for memory; below the other one, memory is taken for granted.
_LARGEST = 1 << 62
_SMALL = 1 << 20


class UnfitArgument(Message):
    """An argument is not what the interpreter can bind to the parameter.

    Example: `interpret(func, {x: array})` with an array of another element type than `x`.
    Fix: Give what the message asks for; `kernel.interpret(...)` checks with more words.
    """

    raises = CallValueError
    title = "`{name}` must be {wanted}, and is {given}"
    label = "interpreted with an unfit argument"


@public
def interpret(func: PrimFunc, arguments: Mapping[Var | Buffer, object]) -> None:
    """Run `func`; the arrays among `arguments` are changed in place.

    This is the reference: what it does is what a function means, and every pass and the compiled code must keep it.
    `arguments` binds each parameter (buffers to arrays of their type and shape, C-contiguous or with the strides of the
    parameter, variables to numbers) and each of `func.dims` to an integer. Loops run in order; the threads of a block
    run from barrier to barrier, one after the other. Slow: for tests and for finding errors.

    Raises KernelRunError for what a kernel must not do: an index out of bounds, an assert that fails, a use of memory
    that was never written, an integer division by zero or overflow, a shift too far, a conflict of threads, a barrier
    that some of them miss; CallValueError for arguments that do not fit, before anything is written.
    """
    interpreter(func)(arguments)


def interpreter(func: PrimFunc) -> Callable[[Mapping[Var | Buffer, object]], None]:
    """What interprets `func` at given arguments: `func` is translated once for all of its calls."""
    program = translate(func)
    return lambda arguments: _interpret(func, program, arguments)


def _interpret(func: PrimFunc, program: Program, arguments: Mapping[Var | Buffer, object]) -> None:
    values = list(program.values)
    arrays: dict[Buffer, npt.NDArray[Any]] = {}
    for name in (*func.dims, *func.params):
        values[program.registers[name]] = bound = _bound(name, arguments.get(name), func.span)
        if isinstance(bound, BufferMemory) and isinstance(name, Buffer):
            given = arguments[name]
            assert isinstance(given, np.ndarray)
            arrays[name] = given
    _demand_strides(program, arrays, values, func.span)
    _refuse_overlap(program, arrays, func.span)
    given = ((name, values[program.registers[name]]) for name in (*func.dims, *func.params) if isinstance(name, Var))
    _demand_room(func, {name: int(value) for name, value in given if name.dtype.is_integer})
    try:
        with np.errstate(all="ignore"):
            execute(program, values)
    finally:
        for param in program.written:
            if param.strides and param in arrays:
                memory = values[program.registers[param]]
                arrays[param][...] = memory.raw.view(arrays[param].dtype).reshape(memory.shape)


def translate(func: PrimFunc) -> Program:
    """`func` as a program; it first makes sure that the arrays have the shapes of their parameters."""
    check_thread_nesting(func)
    code = Code(span=func.span)
    for name in (*func.dims, *func.params):
        code.program.register_of(name)
    for param in func.params:
        if isinstance(param, Buffer):
            run(_parameter(code, param))
    run(statement(code, func.body))
    return code.program


def _parameter(code: Code, buffer: Buffer) -> Steps[None]:
    registers = yield shape_of(code, buffer)
    register, span = code.program.register_of(buffer), code.span

    def step(values: Values, marks: Marks) -> None:
        wanted, given = extents(buffer, registers, values, marks, span), values[register].shape
        if given != wanted:
            raise UnfitArgument(buffer.name, f"of shape {wanted}", f"of shape {given}", span=span).error()

    code.emit(step)


def _bound(name: Var | Buffer, given: object, span: Span | None) -> object:
    """What the register of a parameter or dim holds."""
    if isinstance(name, Buffer):
        if isinstance(given, np.ndarray) and given.dtype.name == "bfloat16" and is_bfloat(name.dtype):
            given = given.view(_dtype(name))  # as a library has it that gives NumPy this type
        fits = isinstance(given, np.ndarray) and given.dtype == _dtype(name)
        if not fits or not isinstance(given, np.ndarray) or not (name.strides or given.flags.c_contiguous):
            raise _unfit(name, f"a{'' if name.strides else ' C-contiguous'} array of {_dtype(name)}", given, span)
        return on_array(name, _copy(name, given, span) if name.strides else given)
    if not isinstance(given, (bool, int, float, np.generic)):
        raise _unfit(name, f"a number of type {name.dtype}", given, span)
    try:
        return to_bfloat(np.asarray(given)) if is_bfloat(name.dtype) else name.dtype.numpy.type(given)
    except OverflowError:
        raise _unfit(name, f"a number of type {name.dtype}", given, span) from None


def _copy(buffer: Buffer, given: npt.NDArray[Any], span: Span | None) -> npt.NDArray[Any]:
    """What has strides is copied, and copied back: the elements of one that is written lie apart from each other.

    One element may be seen at as many places as there are in no memory.
    """
    try:
        return given.copy()
    except (MemoryError, ValueError):
        raise OutOfMemory(given.size * given.itemsize, buffer.name, span=span).error() from None


def _dtype(buffer: Buffer) -> np.dtype[np.generic]:
    return buffer.dtype.stored


def _unfit(name: Var | Buffer, wanted: str, given: object, span: Span | None) -> Exception:
    if isinstance(given, np.ndarray):
        text = f"an array of {given.dtype}" + ("" if given.flags.c_contiguous else " that is not")
    else:
        text = "not given" if given is None else repr(given)
    return UnfitArgument(name.name, wanted, text, span=span).error()


def _demand_strides(
    program: Program, arrays: Mapping[Buffer, npt.NDArray[Any]], values: Values, span: Span | None
) -> None:
    """Makes sure that arrays have the strides of their parameters, along the axes where they have any."""
    for param, array in arrays.items():
        own = [step // array.itemsize for step in array.strides]
        wanted = []
        for each in param.strides:
            assert isinstance(each, IntImm | Var)
            wanted.append(each.value if isinstance(each, IntImm) else int(values[program.registers[each]]))
        differ = (a != b and extent > 1 for a, b, extent in zip(own, wanted, array.shape, strict=False))
        if array.size and any(differ):
            raise UnfitArgument(param.name, f"with strides {wanted}", f"an array with {own}", span=span).error()
        if param in program.written and param.strides and meets_itself(array):
            raise UnfitArgument(param.name, "of elements apart from each other", "not", span=span).error()


def _refuse_overlap(program: Program, arrays: Mapping[Buffer, npt.NDArray[Any]], span: Span | None) -> None:
    for first, second in combinations(arrays, 2):
        written = first if first in program.written else second
        if written in program.written and share_elements(arrays[first], arrays[second]):
            other = second if written is first else first
            raise OverlappingArguments(written.name, other.name, span=span).error()


def _demand_room(func: PrimFunc, given: Mapping[Var, int]) -> None:
    """Raises KernelRunError where an allocation has a negative extent, or more bytes than there are.

    Looks at those whose extents are known from what the caller gave, computed without wrapping around. The others are
    checked when they are reached.
    """
    allocations = tuple(statements_of(func.body, Allocate))
    values = known_values(func, given) if allocations else given
    for stmt in allocations:
        buffer, shape = stmt.buffer, stmt.buffer.shape
        extents = [value for extent in shape if (value := value_of(extent, values)) is not None]
        if len(extents) < len(shape):
            continue
        for axis, extent in enumerate(extents):
            if extent < 0:
                raise NegativeExtent(buffer.name, axis, extent, span=stmt.span).error()
        size = prod(extents, start=buffer.dtype.bytes)
        if not _can_have(size):
            raise OutOfMemory(size, buffer.name, span=stmt.span).error()


def _can_have(size: int) -> bool:
    if size <= _SMALL or size > _LARGEST:
        return size <= _SMALL
    try:
        np.empty(size, np.uint8)
    except MemoryError:
        return False
    return True
