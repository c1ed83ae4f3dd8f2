"""A function and its arguments in; the function's effect on the arrays among them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tirlite.analysis.threads.nesting import check_thread_nesting
from tirlite.diag import CallValueError, Message, Span, public
from tirlite.interp.bfloat import is_bfloat, to_bfloat
from tirlite.interp.code import Code
from tirlite.interp.memory import Window, on_array
from tirlite.interp.place import extents
from tirlite.interp.program import Marks, Program, Values
from tirlite.interp.room import demand_room
from tirlite.interp.statements import shape_of, statement
from tirlite.interp.team import execute
from tirlite.ir import Buffer, PrimFunc, Steps, Var, run
from tirlite.ir.faults import OverlappingArguments


class UnfitArgument(Message):
    """An argument is not what the interpreter can bind to the parameter.

    Example: `interpret(func, {x: array})` with an array of another element type than `x`.
    Fix: Give what the message asks for; `kernel.interpret(...)` checks with more words.
    """

    code = "unfit-argument"
    raises = CallValueError
    title = "`{name}` must be {wanted}, and is {given}"
    label = "interpreted with an unfit argument"

    name: str
    wanted: str
    given: str


@public
def interpret(func: PrimFunc, arguments: Mapping[Var | Buffer, object]) -> None:
    """Run `func`; the arrays among `arguments` are changed in place.

    This is the reference: what it does is what a function means, and every pass and the compiled code must keep it.
    `arguments` binds each parameter (buffers to C-contiguous arrays of their type and shape, variables to numbers)
    and each of `func.dims` to an integer. Loops run in order; the threads of a block run from barrier to barrier, one
    after the other. Slow: for tests and for finding errors.

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
    for name in (*func.dims, *func.params):
        values[program.registers[name]] = _bound(name, arguments.get(name), func.span)
    _refuse_overlap(program, [each for each in func.params if isinstance(each, Buffer)], values, func.span)
    given = ((name, values[program.registers[name]]) for name in (*func.dims, *func.params) if isinstance(name, Var))
    demand_room(func, {name: int(value) for name, value in given if name.dtype.is_integer})
    with np.errstate(all="ignore"):
        execute(program, values)


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
        fits = isinstance(given, np.ndarray) and given.dtype == _dtype(name) and given.flags.c_contiguous
        if not fits or not isinstance(given, np.ndarray):
            raise _unfit(name, f"a C-contiguous array of {_dtype(name)}", given, span)
        return on_array(name, given)
    if not isinstance(given, (bool, int, float, np.generic)):
        raise _unfit(name, f"a number of type {name.dtype}", given, span)
    try:
        return to_bfloat(np.asarray(given)) if is_bfloat(name.dtype) else name.dtype.numpy.type(given)
    except OverflowError:
        raise _unfit(name, f"a number of type {name.dtype}", given, span) from None


def _dtype(buffer: Buffer) -> np.dtype[np.generic]:
    return buffer.dtype.stored


def _unfit(name: Var | Buffer, wanted: str, given: object, span: Span | None) -> Exception:
    if isinstance(given, np.ndarray):
        text = f"an array of {given.dtype}" + ("" if given.flags.c_contiguous else " that is not")
    else:
        text = "not given" if given is None else repr(given)
    return UnfitArgument(name.name, wanted, text, span=span).error()


def _refuse_overlap(program: Program, params: Iterable[Buffer], values: Values, span: Span | None) -> None:
    for first, second in combinations(params, 2):
        written = first if first in program.written else second
        if written not in program.written:
            continue
        other = second if written is first else first
        # Both are contiguous, so that comparing their bounds is exact.
        if np.may_share_memory(_bytes(program, values, written), _bytes(program, values, other)):
            raise OverlappingArguments(written.name, other.name, span=span).error()


def _bytes(program: Program, values: Values, param: Buffer) -> npt.NDArray[np.uint8]:
    window = values[program.registers[param]]
    assert isinstance(window, Window)
    return window.raw
