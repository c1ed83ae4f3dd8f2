"""The head of a function as plain data: its parameters and which of them it writes, all that a call needs of its IR."""

from __future__ import annotations

from typing import Any, TypeAlias

from tirlite import ir
from tirlite.ir import Buffer, DType, Expr, IntImm, PrimFunc, SeqStmt, TypeCode, Var, i64
from tirlite.record import record
from tirlite.runtime.signature import Signature, signature_of
from tirlite.sizes import Dim

# Numbers, strings and tuples of these.
Plain: TypeAlias = Any
# The operators of extents.
_OPERATORS = ("Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Min", "Max")


class _NotPlain(Exception):
    """An extent has an unsupported form."""


@record
class Head:
    """A signature, and the positions of outputs that cannot be left out (`unfit`), or are filled (`partial`).

    If the head was made of plain data, the signature's `func` has no body.
    """

    signature: Signature
    unfit: tuple[int, ...]
    partial: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.signature.name

    def plain(self) -> Plain | None:
        """The head as plain data; None if an extent is not arithmetic on dims, numbers and parameters."""
        func, writer = self.signature.func, _Writer(self.signature.func)
        try:
            params = tuple(map(writer.param, func.params))
        except _NotPlain:
            return None
        written = tuple(array.position for array in self.signature.arrays if array.is_written)
        outputs = tuple(func.params.index(output) for output in func.outputs)
        return func.name, writer.dims, params, outputs, func.defaults, written, self.unfit, self.partial

    @classmethod
    def of_plain(cls, plain: Plain) -> Head:
        """The inverse of `plain`. Raises TypeError, ValueError, IndexError, KeyError or AttributeError for others."""
        name, dims, params, outputs, defaults, written, unfit, partial = plain
        known: dict[tuple[str, int], Var] = {}
        for number, (called, facts) in enumerate(dims):
            known["dim", number] = Var(called, i64, None if facts is None else Dim(*facts))
        for number, param in enumerate(params):
            if param[0] == "scalar":
                known["param", number] = Var(param[1], _dtype(param[2]))
        made = [known["param", number] if p[0] == "scalar" else _buffer(p, known) for number, p in enumerate(params)]
        buffers = [made[position] for position in outputs]
        if not isinstance(name, str) or not all(isinstance(each, Buffer) for each in buffers):
            raise ValueError
        func = PrimFunc(name, tuple(made), SeqStmt(()), tuple(buffers), tuple(defaults))
        if {*unfit, *partial} - set(outputs):
            raise ValueError
        return cls(signature_of(func, tuple(made[position] for position in written)), tuple(unfit), tuple(partial))


class _Writer:
    """Encodes the parameters of one function, and its dims."""

    def __init__(self, func: PrimFunc) -> None:
        self.known: dict[Var, tuple[str, int]] = {dim: ("dim", number) for number, dim in enumerate(func.dims)}
        self.known |= {each: ("param", number) for number, each in enumerate(func.params) if isinstance(each, Var)}
        self.dims = tuple((dim.name, _facts(dim.dim)) for dim in func.dims)

    def param(self, param: Var | Buffer) -> Plain:
        if isinstance(param, Var):
            return "scalar", param.name, _plain_dtype(param.dtype)
        shape, strides = tuple(map(self.expr, param.shape)), tuple(map(self.expr, param.strides))
        promises = param.scope, param.alignment, param.volatile
        return "array", param.name, _plain_dtype(param.dtype), shape, promises, strides

    def expr(self, expr: Expr) -> Plain:
        if isinstance(expr, Var) and expr in self.known:
            return self.known[expr]
        if isinstance(expr, IntImm):
            return "int", expr.value, _plain_dtype(expr.dtype)
        kind = type(expr).__name__
        if kind not in _OPERATORS:
            raise _NotPlain
        return kind, self.expr(expr.a), self.expr(expr.b)  # type: ignore[attr-defined]


def _facts(dim: Dim | None) -> Plain | None:
    return None if dim is None else (dim.name, dim.min, dim.max, dim.multiple_of)


def _plain_dtype(dtype: DType) -> Plain:
    return dtype.code.value, dtype.bits, dtype.lanes


def _dtype(plain: Plain) -> DType:
    code, bits, lanes = plain
    return DType(TypeCode(code), bits, lanes)


def _buffer(plain: Plain, known: dict[tuple[str, int], Var]) -> Buffer:
    _, name, dtype, shape, (scope, alignment, volatile), strides = plain
    extents = tuple(_expr(each, known) for each in shape)
    return Buffer(name, _dtype(dtype), extents, scope, alignment, volatile, tuple(_expr(s, known) for s in strides))


def _expr(plain: Plain, known: dict[tuple[str, int], Var]) -> Expr:
    kind, *parts = plain
    if kind in ("dim", "param"):
        return known[kind, parts[0]]
    if kind == "int":
        return IntImm(_dtype(parts[1]), parts[0])
    if kind not in _OPERATORS:
        raise ValueError
    made: Expr = getattr(ir, kind)(_expr(parts[0], known), _expr(parts[1], known))
    return made
