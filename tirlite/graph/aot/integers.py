"""Computes sums of products of dequantized tensors in integers, and quantizes them in one step.

Quantized tensors stand for floats, by a scale and a zero point. A product of two is a product of integers, times both
scales: sums are exact, and only what follows is rounded. So results that are quantized again are within one step of
those of the graph as it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from types import MappingProxyType

import numpy as np

from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, constant
from tirlite.graph.op import OPS, Attrs, Op
from tirlite.graph.operators.convolution import Conv
from tirlite.graph.operators.elementwise import Cast
from tirlite.graph.operators.linear import Gemm, Sides
from tirlite.graph.operators.quantization import ADD_DEQUANTIZED, CONV_BYTES, MATMUL_BYTES, Quantize, Requantize
from tirlite.graph.operators.reduction import Reduce
from tirlite.graph.program import Block, Part, Program
from tirlite.graph.types import Array
from tirlite.ir import DType, f32, i8, i16, i32, u8
from tirlite.record import record, replace
from tirlite.sizes import Size

_NONE = Attrs()
# Operators whose results are elements of their first operand, or maxima of some.
_MOVING = ("max_pool", "reshape", "transpose", "slice")
_GROUP = 4  # bytes that are multiplied together
_MANY = 16  # columns of a product that pay for sums of rows beside it


def in_integers(made: Program) -> Program:
    """The program with integer products and convolutions wherever quantized weights are known."""
    wanted = ("dequantize_linear", "conv_integer", "matmul_integer")
    if not any(_is(step, *wanted) for step in made.steps()):
        return made
    return _Rewriting(made).program()


@record(eq=False)
class _Small:
    """A quantized tensor, which stands for (x - zero) * scale, with a known scale and zero point."""

    x: Expr
    scale: Array
    zero: Array


class _Rewriting:
    """The rewriting of one program. `instead` maps an expression to the one that replaces it."""

    def __init__(self, made: Program) -> None:
        self.made = made
        self.instead: dict[Expr, Expr] = {}
        self.scaled: dict[Expr, tuple[Expr, Array]] = {}  # for a product, its integer sums and their scale
        self.added: dict[Expr, tuple[Call, ...]] = {}  # the calls that replace a step
        self.raw: dict[Expr, Expr] = {}  # for sums in i32, the sums as computed, which may be exact floats
        self.with_bias: dict[Expr, Callable[[Call, Array], Expr | None]] = {}  # adds a bias to sums with a single user
        self.users = Counter(made.resolved(arg) for step in made.steps() if isinstance(step, Call) for arg in step.args)
        self.places = {step: place for place, step in enumerate(made.steps())}
        self._new: list[Call] = []

    def program(self) -> Program:
        for step in self.made.steps():
            if isinstance(step, Call) and isinstance(step.op, Op) and not step.sources:
                self._new = []
                found = self._of(step, step.op.name)
                if found is not None:
                    self.instead[step], self.added[step] = found, tuple(self._new)
        if not self.instead:
            return self.made
        parts = self._parts()
        made = replace(self.made, parts=MappingProxyType(parts))
        return _numbers_first(_without_unused(made.mapped(self._block)))

    def _block(self, block: Block) -> Block:
        """The block with the added calls in the place of its steps."""
        return Block(tuple(each for step in block.steps for each in self.added.get(step, (step,))), block.result)

    def _parts(self) -> dict[Expr, tuple[Part, ...]]:
        """The tensors of all expressions, old and new."""
        found = {
            part: Part(self.instead[part.step], 0)
            for parts in self.made.parts.values()
            for part in parts
            if part.step in self.instead
        }
        parts = {expr: tuple(found.get(part, part) for part in own) for expr, own in self.made.parts.items()}
        for calls in self.added.values():
            for call in calls:
                parts[call] = (Part(call, 0),)
                parts |= {arg: (Part(arg, 0),) for arg in call.args if isinstance(arg, Constant)}
        return parts

    def _of(self, step: Call, name: str) -> Expr | None:
        """The expression that replaces a call; None if it stays."""
        if name == "conv":
            return self._conv(step)
        if name in ("matmul", "gemm"):
            return self._product(step)
        if name == "quantize_linear":
            return self._quantized(step)
        if name in ("conv_integer", "matmul_integer"):
            x, weight, zero_x, zero_w = step.args
            sums = self._conv_sums if name == "conv_integer" else self._sums
            given = x, self._known(weight), zero_x, self._known(zero_w)
            self.with_bias[step] = lambda add, bias: sums(add, *given, bias, of=step)
            return self._whole(step, sums(step, *given, None))
        if name == "add":
            return self._biased(step) or self._added_to(step)
        return self._requantized(step) if name == "requantize" else None

    def _whole(self, step: Call, sums: Expr | None) -> Expr | None:
        """The sums, in i32."""
        if sums is None:
            return None
        self.raw[step] = sums
        return sums if sums.dtype == i32 else self._call("cast", step, sums, attrs=Cast(i32))

    def _biased(self, step: Call) -> Expr | None:
        """Sums with a constant bias that is added in the sums themselves."""
        sums, known = self.made.resolved(step.args[0]), self._known(step.args[1])
        again = self.with_bias.get(sums)
        if again is None or known is None or sums not in self.raw or self.users[sums] > 1:
            return None
        axis = step.tensor.rank - (1 if _is(sums, "matmul_integer") else len(step.shape[2:]) + 1)
        shape = (*(1 for _ in range(step.tensor.rank)), *known.shape)[-step.tensor.rank :]
        is_along = all(n == (step.shape[axis] if at == axis else 1) for at, n in enumerate(shape))
        return self._whole(step, again(step, known.value.reshape(-1))) if is_along else None

    def _added_to(self, step: Call) -> Expr | None:
        """An addition of a dequantized tensor that dequantizes it: of two such operands, the one computed first."""
        found = [(place, made) for place, arg in enumerate(step.args) if (made := self._small(arg)) is not None]
        found = [each for each in found if each[1].x.shape == step.shape and self._known(each[1].x) is None]
        if not found:
            return None
        place, made = min(found, key=lambda each: self.places.get(self.made.resolved(each[1].x), -1))
        args = made.x, constant(made.scale, f32), constant(made.zero.reshape(()), made.x.dtype)
        return self._call(ADD_DEQUANTIZED, step, step.args[1 - place], *args)

    def _requantized(self, step: Call) -> Expr | None:
        """A requantization of sums before they are cast to i32."""
        sums = self.raw.get(self.made.resolved(step.args[0]))
        if sums is None or sums.dtype == i32:
            return None
        return self._call("requantize", step, sums, *step.args[1:], attrs=step.attrs)

    def _conv(self, step: Call) -> Expr | None:
        """The convolution of a dequantized tensor and weights."""
        assert isinstance(step.attrs, Conv)
        x, weight = self._small(step.args[0]), self._small(step.args[1], axis=0)
        if x is None or weight is None or x.scale.size > 1:
            return None
        scale = np.asarray(x.scale * weight.scale).reshape(-1)
        bias = self._bias(step.args[2], scale, step.shape[1]) if len(step.args) > 2 else None
        if len(step.args) > 2 and bias is None:
            return None
        zero = constant(x.zero.reshape(()), x.x.dtype)
        total = self._conv_sums(step, x.x, self._known(weight.x), zero, constant(weight.zero, weight.x.dtype), bias)
        axes = (-1, *(1 for _ in step.shape[2:]))
        return None if total is None else self._scaled(step, total, scale.reshape(axes if scale.size > 1 else ()))

    def _product(self, step: Call) -> Expr | None:
        """The product of a dequantized matrix and weights."""
        attrs = step.attrs
        assert isinstance(attrs, Sides)
        if attrs.trans_a or (isinstance(attrs, Gemm) and (attrs.alpha, attrs.beta) != (1, 1)):
            return None
        a, b = self._small(step.args[0]), self._small(step.args[1], axis=0 if attrs.trans_b else -1)
        if a is None or b is None or a.scale.size > 1 or b.x.tensor.rank != 2 or a.x.tensor.rank < 2:
            return None
        weight = self._known(b.x)
        scale = np.asarray(a.scale * b.scale).reshape(-1)
        bias = self._bias(step.args[2], scale, step.shape[-1]) if len(step.args) > 2 else None
        if weight is None or (len(step.args) > 2 and bias is None):
            return None
        if attrs.trans_b:
            weight = constant(np.ascontiguousarray(weight.value.T), weight.dtype, name=weight.name)
        zeros = constant(a.zero.reshape(()), a.x.dtype), constant(b.zero, weight.dtype)
        total = self._sums(step, a.x, weight, zeros[0], zeros[1], bias)
        return None if total is None else self._scaled(step, total, scale if scale.size > 1 else scale.reshape(()))

    def _scaled(self, step: Call, total: Expr, scale: Array) -> Expr:
        """Sums times `scale`, as floats."""
        factor = scale.astype(np.float32)
        wide = total if total.dtype == f32 else self._call("cast", step, total, attrs=Cast(f32))
        made = self._call("multiply", step, wide, constant(factor, f32))
        self.scaled[step] = total, factor
        return made

    def _quantized(self, step: Call) -> Expr | None:
        """Quantized sums, requantized by a single factor, as QLinearConv does."""
        assert isinstance(step.attrs, Quantize)
        inner = self.made.resolved(step.args[0])
        sums = self.scaled.get(inner)
        scale, zero = self._number(step.args[1]), self._point(step, step.attrs.dtype)
        if scale is None or zero is None or scale.size > 1:
            return None
        if sums is None:
            return self._moved(step, inner, scale, zero)
        total, factor = sums
        quotient = np.asarray(factor / scale.reshape(()).astype(np.float32), np.float32)
        args = constant(quotient, f32), constant(zero.reshape(()), step.attrs.dtype)
        return self._call("requantize", step, total, *args, attrs=Requantize(step.attrs.dtype))

    def _moved(self, step: Call, inner: Expr, scale: Array, zero: Array) -> Expr | None:
        """A move of elements, or a maximum, done on the integers, which stand for the same floats."""
        if not _is(inner, *_MOVING) or not isinstance(inner, Call) or inner.sources:
            return None
        given = self._small(inner.args[0])
        if given is None or given.x.dtype != step.dtype or (given.scale, given.zero) != (scale, zero):
            return None
        if given.scale.item() <= 0:
            return None
        return self._call(inner.op, step, given.x, *inner.args[1:], attrs=inner.attrs)

    def _conv_sums(
        self,
        step: Call,
        x: Expr,
        weight: Constant | None,
        zero_x: Expr,
        zero_w: Constant | None,
        bias: Array | None,
        of: Call | None = None,
    ) -> Expr | None:
        """The sums of a convolution, that of `of` or of this step, if its weights are known."""
        attrs = (of or step).attrs
        assert isinstance(attrs, Conv)
        if weight is None or zero_w is None or not _is_byte(x.dtype) or zero_x.tensor.rank:
            return None
        points = zero_w.value.reshape(-1, *(1,) * (weight.tensor.rank - 1))
        distances = np.moveaxis(weight.value.astype(np.int32) - points, 1, -1)
        in_floats = weight.shape[1] == 1 and not _is_point(attrs, weight) and _is_exact_in_floats(distances, bias)
        if x.dtype == i8 and not in_floats and not _is_point(attrs, weight):
            x, zero_x = self._unsigned(step, x), self._unsigned(step, zero_x)
        made = _floats(distances) if in_floats else _bytes(_by_groups(distances, attrs, weight))
        sums = distances.reshape(len(distances), -1).sum(1, dtype=np.int64)
        return self._call(CONV_BYTES, step, x, zero_x, made, self._offsets(step, sums, zero_x, bias), attrs=attrs)

    def _sums(
        self,
        step: Call,
        a: Expr,
        b: Constant | None,
        zero_a: Expr,
        zero_b: Constant | None,
        bias: Array | None,
        of: Call | None = None,
    ) -> Expr | None:
        """The sums of a matrix product whose second operand is known."""
        if b is None or zero_b is None or zero_a.tensor.rank or not _is_byte(a.dtype) or b.tensor.rank != 2:
            return None
        if a.dtype == i8:
            a, zero_a = self._unsigned(step, a), self._unsigned(step, zero_a)
        distances = b.value.astype(np.int32) - zero_b.value
        offsets = self._offsets(step, distances.sum(0, dtype=np.int64), zero_a, bias)
        middle = 128 if b.dtype == u8 else 0
        if _fit(distances) or zero_b.value.size > 1 or b.shape[1] < _MANY:
            return self._call(MATMUL_BYTES, step, a, _bytes(distances), offsets)
        # Distances from 128 or 0 are bytes; the difference from the zero point is added once per row, times its sum.
        wide = self._call("cast", step, a, attrs=Cast(i32))
        rows = self._call("reduce_sum", step, wide, attrs=Reduce((a.tensor.rank - 1,), keepdims=True))
        apart = constant(np.asarray(middle - zero_b.value.astype(np.int32).reshape(())), i32)
        added = self._call("multiply", step, rows, apart)
        total = self._call(MATMUL_BYTES, step, a, _bytes(b.value.astype(np.int32) - middle), offsets)
        return self._call("add", step, total, added)

    def _offsets(self, step: Call, sums: Array, zero: Expr, bias: Array | None) -> Expr:
        """The offset of each output: the bias, less the zero point of the operand times the sum of weights."""
        added = np.zeros(len(sums), np.int64) if bias is None else bias.astype(np.int64)
        point = self._known(zero)
        if point is not None:
            return constant((added - sums * point.value.astype(np.int64)).astype(np.int32), i32)
        wide = self._call("cast", step, zero, attrs=Cast(i32))
        made = self._call("multiply", step, wide, constant((-sums).astype(np.int32), i32))
        return made if bias is None else self._call("add", step, made, constant(bias.astype(np.int32), i32))

    def _unsigned(self, step: Call, x: Expr) -> Expr:
        """Signed bytes plus 128, as unsigned ones."""
        known = self._known(x)
        if known is not None:
            return constant(np.asarray(known.value.astype(np.int16) + 128, np.uint8), u8)
        wide = self._call("cast", step, x, attrs=Cast(u8))
        return self._call("add", step, wide, constant(np.asarray(128, np.uint8), u8))

    def _small(self, expr: Expr, axis: int | None = None) -> _Small | None:
        """The quantized tensor behind a dequantized one of bytes, whose scale varies along no axis but this one."""
        call = self.made.resolved(expr)
        if not _is(call, "dequantize_linear"):
            return None
        assert isinstance(call, Call)
        assert isinstance(call.attrs, Quantize)
        scale, zero = self._number(call.args[1]), self._point(call, call.args[0].dtype)
        rank = call.tensor.rank
        is_along = axis is not None and call.attrs.axis % max(rank, 1) == axis % max(rank, 1)
        if scale is None or zero is None or not _is_byte(call.args[0].dtype) or call.dtype != f32:
            return None
        if max(scale.size, zero.size) > 1 and not is_along:
            return None
        return _Small(call.args[0], scale, zero)

    def _point(self, call: Call, dtype: DType) -> Array | None:
        """The zero point of a call, if it is known."""
        return self._number(call.args[2]) if len(call.args) > 2 else np.zeros((), dtype.numpy)

    def _bias(self, expr: Expr, scale: Array, count: Size) -> Array | None:
        """The integers of a bias that is quantized with just this scale."""
        call = self.made.resolved(expr)
        if not _is(call, "dequantize_linear") or not isinstance(call, Call) or call.args[0].dtype != i32:
            return None
        known, own, zero = self._known(call.args[0]), self._number(call.args[1]), self._point(call, i32)
        if known is None or own is None or zero is None or zero.any() or known.shape != (count,):
            return None
        return known.value if np.allclose(own.reshape(-1), scale, rtol=1e-6, atol=0) else None

    def _known(self, expr: Expr) -> Constant | None:
        found = self.made.resolved(expr)
        return found if isinstance(found, Constant) else None

    def _number(self, expr: Expr) -> Array | None:
        found = self._known(expr)
        return None if found is None else found.value.reshape(-1) if found.value.size > 1 else found.value.reshape(())

    def _call(self, op: str | Op | FunctionNode, step: Call, *args: Expr, attrs: Attrs = _NONE) -> Call:
        made = Call(OPS[op] if isinstance(op, str) else op, args, attrs, name=step.name, span=step.span)
        self._new.append(made)
        return made


def _without_unused(made: Program) -> Program:
    """The program without calls whose results are unused."""
    used = {part.step for part in made.parts[made.function.body]}
    used |= {part.step for pair in made.branches.values() for block in pair for part in made.parts[block.result]}
    kept: set[Expr] = set()
    for step in reversed([*made.steps()]):
        if isinstance(step, Call) and step not in used:
            continue
        kept.add(step)
        used |= {part.step for each in _uses(step) for part in made.parts[each]}

    def block(old: Block) -> Block:
        return Block(tuple(step for step in old.steps if step in kept), old.result)

    return made.mapped(block)


def _numbers_first(made: Program) -> Program:
    """The program with scalars computed as early as possible, so that products with them can be fused."""

    def block(old: Block) -> Block:
        places = {
            step: (-1, number) if isinstance(step, Constant) else (number, 0) for number, step in enumerate(old.steps)
        }
        for number, step in enumerate(old.steps):
            if isinstance(step, Call) and isinstance(step.op, Op) and step.op.is_elementwise and _is_number(step):
                parts = [part.step for arg in step.operands for part in made.parts[arg]]
                known = [places[part][0] for part in parts if part in places]
                places[step] = max(known, default=number), number + 1
        return Block(tuple(sorted(old.steps, key=places.__getitem__)), old.result)

    return made.mapped(block)


def _is_number(step: Call) -> bool:
    return all(extent == 1 for extent in step.shape)


def _uses(step: Expr) -> Iterator[Expr]:
    if isinstance(step, Call):
        yield from step.operands
    elif isinstance(step, If):
        yield from (step.condition, *step.sources)


def _is(expr: Expr, *names: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names


def _is_byte(dtype: DType) -> bool:
    return dtype.is_integer and dtype.bits == 8


def _is_point(attrs: Conv, weight: Constant) -> bool:
    """Whether the window is a single element, without padding."""
    sees_one = all(each == 1 for each in weight.shape[2:]) and not any(attrs.pads)
    return sees_one and (len(attrs.strides) <= 2 or all(each == 1 for each in attrs.strides))


def _by_groups(distances: Array, attrs: Conv, weight: Constant) -> Array:
    """Weights padded by channels of zeros to whole groups; those of single elements stay."""
    rest = 0 if _is_point(attrs, weight) else -distances.shape[-1] % _GROUP
    return np.pad(distances, [*[(0, 0)] * (distances.ndim - 1), (0, rest)]) if rest else distances


def _is_exact_in_floats(distances: Array, bias: Array | None) -> bool:
    """Whether f32 holds all partial sums of products of these weights and bytes, with the bias, exactly."""
    sums = np.abs(distances).reshape(len(distances), -1).sum(1, dtype=np.int64) * 2 * 255
    return bool((sums + (0 if bias is None else np.abs(bias.astype(np.int64))) < 1 << 24).all())


def _bytes(distances: Array) -> Constant:
    """Distances of weights from their zero point, in 8 bits if they fit."""
    kind = i8 if _fit(distances) else i16
    return constant(np.ascontiguousarray(distances.astype(kind.numpy)), kind)


def _fit(distances: Array) -> bool:
    """Whether 8 bits hold all of them."""
    return distances.size == 0 or bool(-128 <= distances.min() <= distances.max() <= 127)


def _floats(distances: Array) -> Constant:
    return constant(np.ascontiguousarray(distances.astype(np.float32)), f32)
