"""Makes of a plan with symbolic offsets a native function from the values of its dims to all offsets."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from tirlite.codegen import compile_module, lower
from tirlite.diag import CallValueError, Message, public
from tirlite.dsl import parse
from tirlite.plan import Plan, offset_evaluator
from tirlite.plan.shape.formulas import Formulas, Values, formulas
from tirlite.runtime.artifact.artifact import library_of
from tirlite.runtime.artifact.build import code_of
from tirlite.sizes import Dim

Offsets = npt.NDArray[np.int64]

# No step of what is compiled may leave this range, so that nothing wraps.
_MOST = 1 << 62
_LARGEST_OFFSET = (1 << 63) - 1


class OffsetTooLarge(Message):
    """An offset at these values of the dims is larger than any address.

    Example: `compiled_offsets(plan)((1 << 62,))`, where an offset is `16*n`.
    Fix: Ask for sizes that some memory could hold.
    """

    raises = CallValueError
    title = "at {values} an offset is {offset}, which is no 64-bit integer"
    help = "no memory is that large"


def compiled_offsets(plan: Plan) -> Callable[[Values], Offsets]:
    """The answers of `plan.offset_evaluator` by native code, in an array of 64-bit integers.

    The function takes the values of `plan.problem.dims`, in their order, fills its array, in the order of the requests,
    and returns it: the same one each time, so that a call costs some hundred nanoseconds. Copy what is to last, and
    make one function for each thread. It raises CallValueError where an offset does not fit into 64 bits: native code
    runs where it is known that nothing wraps, and for all other values the function computes in exact integers.
    """
    exactly = offset_evaluator(plan)
    requests, dims = plan.problem.requests, plan.problem.dims
    made = formulas([plan.placements[request.id].offset for request in requests], dims)
    offsets = np.zeros(len(requests), np.int64)
    slowly = partial(_filled, offsets, exactly, dims)
    if all(isinstance(plan.placements[request.id].offset, int) for request in requests):
        slowly = partial(_refilled, offsets, slowly(tuple([dim.low for dim in dims])).copy(), exactly)
    limits = safe_limits(made, dims)
    return public(slowly) if limits is None else _compiled(made, limits, offsets, public(slowly))


def _filled(offsets: Offsets, exact: Callable[[Values], Values], dims: Sequence[Dim], values: Values) -> Offsets:
    found = exact(values)
    most = max(found, default=0)
    if most > _LARGEST_OFFSET:
        told = ", ".join(f"{dim.name} = {value}" for dim, value in zip(dims, values, strict=True))
        raise OffsetTooLarge(told, str(most)).error()
    offsets[:] = found
    return offsets


def _refilled(offsets: Offsets, kept: Offsets, exact: Callable[[Values], Values], values: Values) -> Offsets:
    """The same offsets for all values: to copy them takes a fifth of the time that numbers of Python's take."""
    exact(values)
    offsets[:] = kept
    return offsets


def _compiled(
    made: Formulas, limits: Sequence[tuple[int, int]], offsets: Offsets, slowly: Callable[[Values], Offsets]
) -> Callable[[Values], Offsets]:
    lowered = lower(parse(_kernel_text(made), "offsets"), 1)
    library = library_of(code_of(compile_module(lowered).objects, [lowered.name]), {})
    native = library.function(lowered.name, "q" * len(made.params) + "P")
    names = ", ".join(made.params)
    inside = [f"{low} <= {name} <= {high}" for name, (low, high) in zip(made.params, limits, strict=True)]
    # Python itself costs more than what is computed: a function of as many names as there are dims is the fastest.
    lines = [
        "def call(values):",
        f"    {names}, = values",
        f"    if {' and '.join(inside)}:",
        f"        native({names}, {offsets.ctypes.data})",
        "        return offsets",
        "    return slowly(values)",
    ]
    scope: dict[str, object] = {"native": native, "offsets": offsets, "slowly": slowly, "library": library}
    exec("\n".join(lines), scope)
    call: Callable[[Values], Offsets] = scope["call"]  # type: ignore[assignment]
    return call


def _kernel_text(made: Formulas) -> str:
    params = "".join(f"{name}: tl.i64, " for name in made.params)
    lines = [*made.lines, *(f"out[{place}] = {result}" for place, result in enumerate(made.results))]
    body = "".join(f"    {line}\n" for line in lines)
    return f"@tl.kernel\ndef offsets({params}out: tl.i64[{len(made.results)}]):\n{body}"


def safe_limits(made: Formulas, dims: Sequence[Dim]) -> list[tuple[int, int]] | None:
    """The least and the greatest value of each dim at which no step of the formulas can wrap; None if there are none.

    None also where there is nothing to compute.
    """
    if not made.params or not made.lines:
        return None
    lines = [ast.parse(line).body[0] for line in made.lines]
    for power in range(62, 0, -1):
        limits = [(dim.low, min(1 << power, dim.high or 1 << power)) for dim in dims]
        if any(low > high for low, high in limits):
            return None
        known: Mapping[str, tuple[int, int]] = dict(zip(made.params, limits, strict=True))
        try:
            if largest(lines, known) < _MOST:
                return limits
        except UnboundedRange:
            continue
    return None


Range = tuple[int, int]


class UnboundedRange(Exception):
    """A divisor may be zero."""


def largest(lines: Sequence[ast.stmt], known: Mapping[str, Range]) -> int:
    """The largest magnitude of all steps of assignments to names, as `plan.shape.formulas` writes them.

    Raises UnboundedRange where a divisor may be zero.
    """
    found = _Ranges(known)
    for line in lines:
        assert isinstance(line, ast.Assign)
        (target,) = line.targets
        assert isinstance(target, ast.Name)
        found.names[target.id] = found.of(line.value)
    return found.largest


class _Ranges:
    """The ranges of names, and the largest magnitude met."""

    def __init__(self, known: Mapping[str, Range]) -> None:
        self.names = dict(known)
        self.largest = 0

    def of(self, expr: ast.expr) -> Range:
        """The range of an expression. A long sum leans to the left, so operands are taken from there in turn."""
        spine: list[ast.BinOp] = []
        while isinstance(expr, ast.BinOp):
            spine.append(expr)
            expr = expr.left
        low, high = self._note(self._leaf(expr))
        for node in reversed(spine):
            low, high = self._note(_combined(node.op, (low, high), self.of(node.right)))
        return low, high

    def _leaf(self, expr: ast.expr) -> Range:
        if isinstance(expr, ast.Name):
            return self.names[expr.id]
        if isinstance(expr, ast.Constant):
            assert isinstance(expr.value, int)
            return expr.value, expr.value
        if isinstance(expr, ast.UnaryOp):
            assert isinstance(expr.op, ast.USub)
            low, high = self.of(expr.operand)
            return -high, -low
        assert isinstance(expr, ast.Call)
        assert isinstance(expr.func, ast.Name)
        pick = {"max": max, "min": min}[expr.func.id]
        lows, highs = zip(*map(self.of, expr.args), strict=True)
        return pick(lows), pick(highs)

    def _note(self, found: Range) -> Range:
        self.largest = max(self.largest, -found[0], found[1])
        return found


def _combined(op: ast.operator, left: Range, right: Range) -> Range:
    if isinstance(op, ast.Add):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(op, ast.Sub):
        return left[0] - right[1], left[1] - right[0]
    if isinstance(op, ast.Mult):
        corners = [a * b for a in left for b in right]
        return min(corners), max(corners)
    if right[0] <= 0 <= right[1]:
        raise UnboundedRange
    if isinstance(op, ast.FloorDiv):
        corners = [a // b for a in left for b in right]
        return min(corners), max(corners)
    assert isinstance(op, ast.Mod)
    return (0, right[1] - 1) if right[0] > 0 else (right[0] + 1, 0)
