"""Reads the defaults of a kernel's parameters: numbers for scalars, None for outputs."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import inf, isinf

from tirlite.diag import Message
from tirlite.dsl.convert import is_literal, stored
from tirlite.dsl.expression import Expressions
from tirlite.dsl.parameters import described
from tirlite.dsl.surroundings import meaning
from tirlite.ir.expr import Buffer, FloatImm, IntImm, Var
from tirlite.record import record


class BadDefault(Message):
    """A parameter has a default that it cannot have.

    Example: `def f(x: tl.f32[n] = 0, gain: tl.f32 = 1):`.
    Fix: Give numbers constants of their type; arrays have no defaults. An output may have None, and may be left out.
    """

    code = "bad-default"
    title = "parameter `{name}` cannot be {given} by default"
    help = "{advice}"

    name: str
    given: str
    advice: str


@record
class Evaluated:
    """What Python has evaluated of a function's signature: nothing, where the function is a text."""

    annotations: Mapping[str, object] = field(default_factory=dict)
    defaults: Sequence[object] = ()


@record
class Default:
    """The default of the parameter `name`, as it is written, and its value if Python has evaluated it."""

    name: str
    node: ast.expr
    value: object
    is_evaluated: bool

    def number(self, param: Var | Buffer, expressions: Expressions, *, is_output: bool) -> bool | int | float | None:
        """The default of a number as one that the parameter's type holds; None for that of an output."""
        span = expressions.span(self.node)
        is_none = isinstance(self.node, ast.Constant) and self.node.value is None
        if isinstance(param, Buffer):
            if is_output and (is_none or (self.is_evaluated and self.value is None)):
                return None
            advice = "an output is left out by itself: no default, or None" if is_output else "arrays are given"
            raise BadDefault(self.name, expressions.places.text(self.node), advice, span=span).error()
        if self.is_evaluated:
            expressions.note_names(self.node)
            value = meaning(self.value, self.name, span) if self.value is not None else None
        else:
            value = None if is_none else expressions.value(self.node)
        if isinstance(value, (IntImm, FloatImm)):
            value = bool(value.value) if value.dtype.is_bool else value.value
        if not is_literal(value):
            advice = f"give a constant of type tl.{param.dtype}, or none"
            raise BadDefault(self.name, described(value), advice, span=span).error()
        made = stored(value, param.dtype, self.name, span)
        assert isinstance(made, (IntImm, FloatImm))
        if isinf(made.value) and value not in (inf, -inf):
            advice = f"tl.{param.dtype} holds no such number"
            raise BadDefault(self.name, expressions.places.text(self.node), advice, span=span).error()
        return bool(made.value) if param.dtype.is_bool else made.value


def defaults_of(tree: ast.FunctionDef, evaluated: Evaluated) -> Mapping[ast.arg, Default]:
    """The defaults of those parameters that have one."""
    nodes = tree.args.defaults
    args = tree.args.args[len(tree.args.args) - len(nodes) :]
    known = len(evaluated.defaults) == len(nodes)
    values = evaluated.defaults if known else [None] * len(nodes)
    return {
        arg: Default(arg.arg, node, value, known)
        for arg, node, value in zip(args, nodes, values, strict=True)
    }  # fmt: skip
