"""Makes the message of a failed Assert from values at run time, and says which values it needs."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.diag import Message
from tirlite.ir.checked import ELSE_IN_ORDER, ELSE_IN_THE_OTHER, bare, has_check, unchecked
from tirlite.ir.dtype import DType, float_text
from tirlite.ir.expr import (
    And,
    BitAnd,
    BitOr,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    LetExpr,
    Load,
    Not,
    Or,
    StringImm,
    Var,
)
from tirlite.ir.faults import AssertFailed
from tirlite.ir.loop_values import author_name
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import Assert
from tirlite.ir.walk import variables_in, walk
from tirlite.record import record

# At most so many values are shown.
MOST_SHOWN = 6

# The placeholder for a value in a message.
PLACE = "{}"


@record
class Shown:
    """The values that a failed Assert shows: those in its message, then those compared, with labels."""

    values: tuple[Expr, ...]
    labels: tuple[str, ...]

    @property
    def types(self) -> tuple[DType, ...]:
        return tuple(value.dtype for value in self.values)


def shown(stmt: Assert) -> Shown:
    """The values to compute when `stmt` fails; each can be computed wherever the condition was."""
    if stmt.message in (ELSE_IN_ORDER, ELSE_IN_THE_OTHER):
        return Shown((), ())  # no message shows it
    found: dict[str, Expr] = {}
    for operand in _compared(stmt.condition):
        if isinstance(operand, Load):
            found.setdefault(_label(operand), operand)
            found.update((_label(index), index) for index in map(bare, operand.indices) if isinstance(index, Var))
        elif _is_plain(operand):
            found.setdefault(_label(operand), operand)
    kept = dict(list(found.items())[:MOST_SHOWN])
    return Shown((*stmt.values, *kept.values()), tuple(kept))


def _label(operand: Expr) -> str:
    """The text of an operand as its author wrote it."""
    from tirlite.ir.printer import text  # most kernels assert nothing

    names = {each: Var(author_name(each)) for each in variables_in(operand) if "." in each.name}
    known = substitute(operand, {var: name for var, name in names.items() if name.name})
    written = text(unchecked(known) if has_check(known) else known)
    for node in walk(operand):
        if isinstance(node, Load) and not node.indices and node.buffer.scope == "local":
            written = written.replace(f"{node.buffer.name}[()]", node.buffer.name)
    return written


def _compared(condition: Expr) -> list[Expr]:
    """The operands of the condition's comparisons, in order; only those that are always evaluated."""
    found: list[Expr] = []
    stack: list[tuple[Expr, bool, dict[Var, Expr]]] = [(condition, True, {})]
    while stack:
        node, surely, lets = stack.pop()
        if isinstance(node, (And, Or)):
            stack += ((node.b, False, lets), (node.a, surely, lets))
        elif isinstance(node, (BitAnd, BitOr)):
            stack += ((node.b, surely, lets), (node.a, surely, lets))
        elif isinstance(node, Not):
            stack.append((node.a, surely, lets))
        elif isinstance(node, LetExpr):
            stack.append((node.body, surely, lets | {node.var: substitute(node.value, lets)}))
        elif isinstance(node, Compare):
            for side in (node.a, node.b):
                while isinstance(side, Cast):
                    side = side.value
                value = substitute(side, lets)
                if surely or isinstance(value, Var):
                    found.append(value)
    return found


def _is_plain(value: Expr) -> bool:
    """Whether `value` is not a constant, and computing it again has no effect."""
    if isinstance(value, (IntImm, FloatImm, StringImm)) or value.dtype.is_handle:
        return False
    return all(node.op.is_math for node in walk(value) if isinstance(node, Call))


def failure(stmt: Assert, values: Sequence[bool | int | float | None]) -> Message:
    """The message of `stmt`, given the values of `shown(stmt)`; None stands for unwritten memory."""
    named = shown(stmt)
    texts = [_number_text(value, dtype) for value, dtype in zip(values, named.types, strict=True)]
    inside = len(stmt.values)
    message = filled(stmt.message, texts[:inside]) if inside else stmt.message
    pairs = ", ".join(f"{label} = {value}" for label, value in zip(named.labels, texts[inside:], strict=True))
    return AssertFailed(message, f" ({pairs})" if pairs else "", span=stmt.span)


def filled(message: str, texts: Sequence[str]) -> str:
    """A message with texts in its placeholders; doubled braces become single ones."""
    return message.format(*texts)


def places_in(message: str) -> int | None:
    """The number of placeholders in a message; None if its braces are malformed."""
    bare = message.replace("{{", "").replace("}}", "")
    count = bare.count(PLACE)
    rest = bare.replace(PLACE, "")
    return None if "{" in rest or "}" in rest else count


def _number_text(value: bool | int | float | None, dtype: DType) -> str:
    if value is None:
        return "what was never written"
    if dtype.is_float:
        return float_text(float(value), dtype)
    return repr(bool(value) if dtype.is_bool else int(value))
