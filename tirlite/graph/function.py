"""Functions, the unit of graphs, and their printed text in A-normal form: one line per expression, with its type.

def net(x: f32[n, 4], c: bool_[()]) -> f32[n, 4]:
    v0: f32[n, 4] = exp(x)
    v1: f32[n, 4] = if c:
        v2: f32[n, 4] = add(v0, x)
        yield v2
    else:
        yield v0
    return v1
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import numpy as np

from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Let, Tuple, TupleGetItem, callees_first
from tirlite.graph.loop import LoopFunction
from tirlite.graph.op import Op
from tirlite.graph.program import Block, extents_found, program
from tirlite.graph.types import Array
from tirlite.ir import Steps, run
from tirlite.record import record
from tirlite.sizes import dims_of

_INDENT = "    "
_SHOWN = 8  # elements of a constant


def text(function: FunctionNode) -> str:
    """The function's text, after the facts of its dims (unless default) and the functions that it calls."""
    functions = callees_first(function)
    names = _Names()
    for each in functions:
        names.of(each, each.name or "f")
    facts = dict.fromkeys(line for each in functions for line in _facts(each))
    parts = ["\n".join(facts)] if facts else []
    parts += ["\n".join(_FunctionText(each, names).lines()) for each in functions]
    return "\n\n".join(parts)


def _facts(function: FunctionNode) -> Iterator[str]:
    for dim in dict.fromkeys(dim for extent in function.extents for dim in dims_of(extent)):
        if dim.told:
            yield f"# {dim.name}: {dim.told}"


class _Names:
    """Gives each object a unique name: the wanted one, with a number if it is taken; `v0`, `v1` ... without one."""

    def __init__(self) -> None:
        self._known: dict[object, str] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def of(self, thing: object, wanted: str) -> str:
        if thing not in self._known:
            name = wanted or self._next("v")
            while name in self._taken:
                name = self._next(f"{wanted}_" if wanted else "v")
            self._taken.add(name)
            self._known[thing] = name
        return self._known[thing]

    def _next(self, stem: str) -> str:
        number = self._last[stem] = self._last.get(stem, -1) + 1
        return f"{stem}{number}"


class _FunctionText:
    """Prints one function as lines."""

    def __init__(self, function: FunctionNode, functions: _Names) -> None:
        self.function = function
        self.functions = functions
        self.names = _Names()
        self.made = program(function)
        self.lets = {self.made.resolved(value): var.name for var, value in self.made.bound.items()}
        self.found = extents_found(self.made)
        self.written: list[str] = []

    def lines(self) -> list[str]:
        params = ", ".join(f"{self.name(p)}: {p.type}{_device(p)}" for p in self.function.params)
        kind = "primitive def" if self.function.primitive else "def"
        kind = "loop def" if isinstance(self.function, LoopFunction) else kind
        name = self.functions.of(self.function, self.function.name)
        self.line(0, f"{kind} {name}({params}) -> {self.function.result}:")
        for each in self.function.demands:
            self.line(1, f"# demands {each}")
        run(self.block(self.made.body, 1, "return"))
        return self.written

    def line(self, level: int, content: str) -> None:
        self.written.append(_INDENT * level + content)

    def block(self, block: Block, level: int, end: str) -> Steps[None]:
        self.extents(block, level)
        for step in block.steps:
            if isinstance(step, If):
                self.line(level, f"{self.head(step)}if {self.name(step.condition)}:")
                branches = self.made.branches[step]
                yield self.block(branches.then, level + 1, "yield")
                self.line(level, "else:")
                yield self.block(branches.other, level + 1, "yield")
            elif not isinstance(step, Let) and not _is_number(step):
                self.line(level, f"{self.head(step)}{self.value(step)}")
            self.extents(step, level)
        self.line(level, f"{end} {self.name(block.result)}")

    def extents(self, place: Expr | Block, level: int) -> None:
        for dim in self.found.get(place, ()):
            most = "on" if dim.most is None else f"to {dim.most}"
            self.line(level, f"{dim.name} = {self.name(self.made.resolved(dim.source))}  # from {dim.least} {most}")

    def head(self, step: Expr) -> str:
        return f"{self.name(step)}: {step.type}{_device(step)} = "

    def name(self, expr: Expr) -> str:
        """The name of a value; a value bound by a Let has the name of its variable."""
        found = self.made.resolved(expr)
        if _is_number(found):
            return f"{found.dtype}({found.value.item()!r})"
        return self.names.of(found, self.lets.get(found, getattr(found, "name", "")))

    def value(self, step: Expr) -> str:
        if isinstance(step, Call):
            callee = step.op.name if isinstance(step.op, Op) else self.functions.of(step.op, step.op.name)
            return f"{callee}({', '.join([*map(self.name, step.args), *filter(None, [str(step.attrs)])])})"
        if isinstance(step, Constant):
            return f"constant({elements_text(step.value)})"
        if isinstance(step, TupleGetItem):
            return f"{self.name(step.value)}[{step.index}]"
        assert isinstance(step, Tuple)
        comma = "," if len(step.fields) == 1 else ""
        return f"({', '.join(map(self.name, step.fields))}{comma})"


def _is_number(expr: Expr) -> TypeGuard[Constant]:
    return isinstance(expr, Constant) and expr.value.ndim == 0


def _device(expr: Expr) -> str:
    return f" @ {expr.device}" if expr.device else ""


def elements_text(value: Array) -> str:
    """The elements of a constant, or `...` if there are many."""
    if value.size > _SHOWN:
        return "..."
    return np.array2string(value, separator=", ", max_line_width=1000).replace("\n", "")


@record(eq=False, repr=False)
class Function(FunctionNode):
    """Parameters and a body; `print` shows one line per expression, in the order of computation.

    A primitive function is implemented by one kernel, so that planners do not look inside. `outputs` names the result,
    or the fields of a result that is a tuple; it is empty if they have no names. `demands` lists conditions on extents
    that are not proved and are checked at each call. Dims in the parameters' types stand for the extents of a call.
    """

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        params = ", ".join(f"{param.name}: {param.type}" for param in self.params)
        return f"<Function {self.name}({params}) -> {self.result}>"
