"""Importers of elementwise operators, matrix products and einsum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from tirlite.graph.builder.builder import Builder
from tirlite.graph.demands import proof_of_most
from tirlite.graph.expr import Constant, Expr
from tirlite.graph.extents import is_equal, product
from tirlite.graph.onnx.contents import contents
from tirlite.graph.onnx.importers.declared import aligned
from tirlite.graph.onnx.narrow import DTYPES, NARROW, NUMBERS, NarrowValue, dtype_name, narrowed, widened
from tirlite.graph.onnx.node import OnnxNode, Unsupported, wide
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.run_dims import run_dims
from tirlite.graph.types import TensorType
from tirlite.ir import DType, f64
from tirlite.sizes import Proof, Size, is_at_most, prove_eq


def _shrink(t: Translation, node: OnnxNode) -> Expr:
    x, bias, limit = node.first, node.number("bias", 0.0), node.number("lambd", 0.5)
    wide = x if x.dtype.is_float else t.b.cast(x, f64)
    shrunk = t.b.where(t.b.greater(wide, limit), t.b.subtract(wide, bias), 0.0)
    made = t.b.where(t.b.less(wide, -limit), t.b.add(wide, bias), shrunk)
    return made if x.dtype.is_float else t.b.cast(made, x.dtype)


def _isinf(t: Translation, node: OnnxNode) -> Expr:
    signs = node.integer("detect_negative", 1), node.integer("detect_positive", 1)
    if not any(signs):
        return t.b.logical_and(t.b.isinf(node.first), False)
    found = t.b.isinf(node.first)
    if signs == (1, 1):
        return found
    side = t.b.less(node.first, 0.0) if signs[0] else t.b.greater(node.first, 0.0)
    return t.b.logical_and(found, side)


def _cast(t: Translation, node: OnnxNode) -> Expr | NarrowValue:
    return _converted(t, node, node.integer("to"))


def _cast_like(t: Translation, node: OnnxNode) -> Expr | NarrowValue:
    kind = node.kind(1)
    numbers = {each: number for number, each in NARROW.items()}
    return _converted(t, node, NUMBERS[node.x(1).dtype] if kind is None else numbers[kind])


def _converted(t: Translation, node: OnnxNode, to: int) -> Expr | NarrowValue:
    """The first operand converted to the element type with ONNX's number `to`."""
    x, of = node.first, node.kind(0)
    target = NARROW.get(to)
    if target is not None and target == of:
        return NarrowValue(x, target)
    if of is not None:
        x = widened(t.b, x, of)
    if target is None:
        return t.b.cast(x, _type(to))
    if x.dtype.is_float and x.dtype.bits == 64:
        raise Unsupported(f"elements of f64 would be rounded twice on the way to {target.name}")
    how = node.text("round_mode", "up")
    return NarrowValue(narrowed(t.b, x, target, saturate=node.flag("saturate", 1), rounding=how), target)


def _bit_cast(t: Translation, node: OnnxNode) -> Expr | NarrowValue:
    x, to = node.first, node.integer("to")
    if node.kind(0) is None and to not in NARROW:
        return t.b.bitcast(x, _type(to))
    raise Unsupported("the bits of elements of less than 8 bits, and of floats of 8 bits, are not told")


def _type(number: int) -> DType:
    if number not in DTYPES:
        raise Unsupported(f"there is no element type {dtype_name(number)} here")
    return DTYPES[number]


def _clip(t: Translation, node: OnnxNode) -> Expr:
    x = node.first
    if node.version < 11:
        low, high = node.attributes.get("min"), node.attributes.get("max")
        return t.b.clip(x, _limit(low, x.dtype), _limit(high, x.dtype))
    limits = node.maybe(1), node.maybe(2)
    if all(each is None or isinstance(each, Constant) for each in limits):
        low, high = (wide(each).reshape(-1)[0].item() if isinstance(each, Constant) else None for each in limits)
        return t.b.clip(x, low, high)
    for limit, pick in zip(limits, (t.b.maximum, t.b.minimum), strict=True):
        x = x if limit is None else pick(x, t.b.reshape(limit, ()))
    return x


def _limit(given: object, dtype: DType) -> float | int | None:
    if given is None:
        return None
    assert isinstance(given, float)
    if dtype.is_float:
        info = np.finfo(np.float32)
        return None if given <= info.min or given >= info.max else given
    return int(given)


def _dropout(t: Translation, node: OnnxNode) -> list[Expr]:
    if node.has(2) and bool(node.array(2).reshape(-1)[0]):
        ratio = float(node.array(1).reshape(-1)[0]) if node.has(1) else 0.5
        if ratio:
            raise Unsupported("it drops elements, as in training")
    x = t.b.identity(node.first)
    if not node.wants(1):
        return [x]
    kept = t.b.constant(np.array(True))
    mask = t.b.broadcast_to(kept, x.shape)
    return [x, mask if node.version >= 10 else t.b.cast(mask, x.dtype)]


ELEMENTWISE: Mapping[str, Importer] = {
    "Shrink": _shrink,
    "IsInf": _isinf,
    "BitCast": _bit_cast,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Clip": _clip,
    "Dropout": _dropout,
}


def _refuse_zero(t: Translation, node: OnnxNode, divisor: Expr) -> None:
    """Demands that divisors which are extents are positive. Raises Unsupported if a divisor is 0."""
    known = contents(divisor)
    for each in () if known is None else known.reshape(-1):
        if each == 0:
            raise Unsupported("it divides integers by 0")
        # Divisions of sizes assume a positive divisor, but a dim's default minimum of 1 does not exclude 0.
        if is_at_most(1, each) and proof_of_most(1, each) is not Proof.YES and not run_dims((each,)):
            t.b.demands.assume(1, each, f"{node.outputs[0]} = {node.op}", node.span, is_most=True)


def _div(t: Translation, node: OnnxNode) -> Expr:
    x, y = aligned(t, node)
    _refuse_zero(t, node, y)
    return t.b.divide(x, y) if x.dtype.is_float else t.b.trunc_divide(x, y)


def _mod(t: Translation, node: OnnxNode) -> Expr:
    x, y = node.x(0), node.x(1)
    _refuse_zero(t, node, y)
    return t.b.trunc_mod(x, y) if node.flag("fmod") else t.b.floor_mod(x, y)


def _pow(t: Translation, node: OnnxNode) -> Expr:
    x, y = aligned(t, node)
    if isinstance(y, Constant) and y.value.size == 1 and y.tensor.rank <= x.tensor.rank:
        # Products are much faster than powers, and as exact, or nearly.
        factors = [x] * next((count for count in (2, 3) if y.value.item() == count), 0)
        if factors:
            return reduce(t.b.multiply, factors)
    if x.dtype == y.dtype:
        return t.b.power(x, y)
    if x.dtype.is_float:
        return t.b.power(x, t.b.cast(y, x.dtype))
    if y.dtype.is_float:
        return t.b.cast(t.b.power(t.b.cast(x, y.dtype), y), x.dtype)
    return t.b.power(x, t.b.cast(y, x.dtype))


def _shift(t: Translation, node: OnnxNode) -> Expr:
    shift = t.b.shift_left if node.text("direction") == "LEFT" else t.b.shift_right
    return shift(node.x(0), node.x(1))


def _folded(name: str) -> Callable[[Translation, OnnxNode], Expr]:
    """The importer of an operator of any number of operands, as a chain of binary ones."""

    def importer(t: Translation, node: OnnxNode) -> Expr:
        first, *rest = node.all()
        return reduce(lambda a, b: t.b.call(name, a, b), rest, first)

    return importer


def _mean(t: Translation, node: OnnxNode) -> Expr:
    operands = node.all()
    total = reduce(t.b.add, operands)
    return t.b.divide(total, float(len(operands)))


def _prelu(t: Translation, node: OnnxNode) -> Expr:
    x, slope = node.x(0), node.x(1)
    if node.version < 7 and slope.tensor.rank == 1:
        slope = t.b.reshape(slope, (*slope.shape, *(1 for _ in x.shape[2:])))
    if not x.dtype.is_float:
        return t.b.where(t.b.less(x, 0), t.b.multiply(x, slope), x)
    return t.b.prelu(x, slope)


def _einsum(t: Translation, node: OnnxNode) -> Expr:
    return einsum(t.b, node.text("equation"), node.all())


BINARY: Mapping[str, Importer] = {
    "Div": _div,
    "Mod": _mod,
    "Pow": _pow,
    "BitShift": _shift,
    "Sum": _folded("add"),
    "Max": _folded("maximum"),
    "Min": _folded("minimum"),
    "Mean": _mean,
    "PRelu": _prelu,
    "MatMul": lambda t, node: t.b.matmul(node.x(0), node.x(1)),
    "Einsum": _einsum,
}


def einsum(b: Builder, equation: str, operands: Sequence[Expr]) -> Expr:
    """The result of einsum; extents of 1 broadcast. Raises Unsupported if the operands do not fit the equation."""
    of = f"equation '{equation}'"
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not all(each.isascii() and (each.isalpha() or each in ".,") for each in left + right):
        raise Unsupported(f"{of} has something else than letters, commas, dots and an arrow")
    if len(terms) != len(operands):
        raise Unsupported(f"{of} has terms for {len(terms)} operands, and there are {len(operands)}")
    written = [_without_dots(of, term, each.tensor) for term, each in zip(terms, operands, strict=True)]
    dots = max(_dots(term, each) for term, each in zip(terms, operands, strict=True))
    target = _target(written, right if arrow else None, dots)
    if len(set(target)) < len(target) or not set(target) <= set("".join(written)):
        raise Unsupported(f"{of} has a letter in its result twice, or one that no term has")
    pairs = [_diagonal(b, of, each, term) for each, term in zip(operands, written, strict=True)]
    (value, have), *rest = _broadcast(_alike(b, of, pairs), b)
    for number, (operand, letters) in enumerate(rest, 1):
        later = {letter for _, term in rest[number:] for letter in term} | set(target)
        value, have = _multiplied(b, value, have, operand, letters, later)
    value, have = _reduced(b, value, have, set(target))
    return _ordered(b, value, have, list(target))


def _alike(b: Builder, of: str, pairs: Sequence[tuple[Expr, str]]) -> list[tuple[Expr, str]]:
    """Demands that each letter has one extent, besides extents of 1. Raises Unsupported if two extents differ."""
    extents: dict[str, Size] = {}
    made = []
    for x, have in pairs:
        for axis, letter in enumerate(have):
            known, extent = extents.setdefault(letter, x.shape[axis]), x.shape[axis]
            if is_equal(known, 1):
                extents[letter] = extent
            elif not is_equal(extent, 1):
                what = f"`{letter}` of {of} is {known} in one operand, and {extent} in another"
                x = _with_extent(b, x, axis, known, what)
        made.append((x, have))
    return made if b.renewal is None else [(b.renewal.value(x), have) for x, have in made]


def _with_extent(b: Builder, x: Expr, axis: int, extent: Size, otherwise: str) -> Expr:
    """The operand with this extent along an axis, which becomes a demand. Raises Unsupported if it is another one."""
    given = x.shape[axis]
    if prove_eq(extent, given) is Proof.NO:
        raise Unsupported(otherwise)
    return x if is_equal(extent, given) else b.assume(x, (*x.shape[:axis], extent, *x.shape[axis + 1 :]))


def _broadcast(pairs: Sequence[tuple[Expr, str]], b: Builder) -> list[tuple[Expr, str]]:
    """Removes axes of extent 1 along which other operands have more, since these broadcast."""
    extents: dict[str, Size] = {}
    for x, have in pairs:
        extents |= {
            letter: extent
            for letter, extent in zip(have, x.shape, strict=True)
            if letter not in extents or is_equal(extents[letter], 1)
        }
    found = []
    for x, have in pairs:
        each = zip(have, x.shape, strict=True)
        kept = [letter for letter, extent in each if not is_equal(extent, 1) or is_equal(extents[letter], 1)]
        shape = [x.shape[have.index(letter)] for letter in kept]
        found.append((x if len(kept) == len(have) else b.reshape(x, shape), "".join(kept)))
    return found


def _diagonal(b: Builder, of: str, x: Expr, have: str) -> tuple[Expr, str]:
    """Replaces two axes with the same letter by their diagonal."""
    while (twice := next((letter for letter in have if have.count(letter) > 1), None)) is not None:
        first, second = have.index(twice), have.rindex(twice)
        extent = x.shape[first]
        x = _with_extent(b, x, second, extent, f"`{twice}` of {of} is {extent} and {x.shape[second]} in one operand")
        steps = b.range(b.constant(np.int64(0)), b.constant(np.int64(1)), extent)
        row, column = (b.reshape(steps, (extent, *(1,) * (len(have) - axis - 1))) for axis in (first, second))
        others = b.cast(b.constant(np.int64(0)), x.dtype)
        x = b.reduce_sum(b.where(b.equal(row, column), x, others), second)
        have = have[:second] + have[second + 1 :]
    return x, have


# The letters of the axes that `...` stands for, from the last one backwards.
_DOTS = "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8"


def _dots(term: str, operand: Expr) -> int:
    return operand.tensor.rank - len(term.replace("...", "")) if "..." in term else 0


def _without_dots(of: str, term: str, operand: TensorType) -> str:
    count = operand.rank - len(term.replace("...", ""))
    if (count if "..." not in term else not 0 <= count <= len(_DOTS)) or "." in term.replace("...", "", 1):
        raise Unsupported(f"`{term}` of {of} does not fit {operand}")
    return term.replace("...", _DOTS[: max(count, 0)][::-1])


def _target(terms: Sequence[str], right: str | None, dots: int) -> str:
    if right is not None:
        return right.replace("...", _DOTS[:dots][::-1])
    every = "".join(terms)
    once = sorted(letter for letter in set(every) if every.count(letter) == 1 and letter not in _DOTS)
    return _DOTS[:dots][::-1] + "".join(once)


def _multiplied(b: Builder, x: Expr, have: str, y: Expr, other: str, later: set[str]) -> tuple[Expr, str]:
    """The product of two operands, summed over their letters that are not used later, by a matrix product."""
    both = [letter for letter in have if letter in other]
    batch = [letter for letter in both if letter in later]
    summed = [letter for letter in both if letter not in later]
    x, have = _reduced(b, x, have, set(other) | later)
    y, other = _reduced(b, y, other, set(have) | later)
    rows = [letter for letter in have if letter not in both]
    columns = [letter for letter in other if letter not in both]
    sizes = dict(zip(have, x.shape, strict=True)) | dict(zip(other, y.shape, strict=True))
    first = _ordered(b, x, have, [*batch, *rows, *summed])
    second = _ordered(b, y, other, [*batch, *summed, *columns])
    outer = [sizes[letter] for letter in batch]
    across, down, inner = (product(sizes[letter] for letter in part) for part in (rows, columns, summed))
    made = b.matmul(b.reshape(first, (*outer, across, inner)), b.reshape(second, (*outer, inner, down)))
    letters = [*batch, *rows, *columns]
    return b.reshape(made, [sizes[letter] for letter in letters]), "".join(letters)


def _reduced(b: Builder, x: Expr, have: str, kept: set[str]) -> tuple[Expr, str]:
    gone = [place for place, letter in enumerate(have) if letter not in kept]
    if not gone:
        return x, have
    return b.reduce_sum(x, gone), "".join(letter for letter in have if letter in kept)


def _ordered(b: Builder, x: Expr, have: str, wanted: Sequence[str]) -> Expr:
    axes = [have.index(letter) for letter in wanted]
    return x if axes == sorted(axes) else b.transpose(x, axes)
