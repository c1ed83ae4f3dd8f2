"""Validates a function: raises an error that names every way in which the function is ill-formed.

The rules stand in `validate_types` (operands), `validate_calls`, `validate_statements`, `validate_buffers` (buffers and
functions) and `validate_names` (definitions and uses).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import TypeAlias

from tirlite.diag import KernelError, Message, Span, public
from tirlite.ir import (
    validate_buffers as buffers,
    validate_names as names,
    validate_statements as statements,
    validate_types as types,
)
from tirlite.ir.callees import closure_of
from tirlite.ir.expr import Buffer, BufferRef, Call, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import Function, KernelCall
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import SeqStmt, Stmt, View
from tirlite.ir.walk import ALWAYS_FINE
from tirlite.record import record

MOST_REPORTED = 20

_NODE_RULES: Mapping[type[Node], tuple[types.Rule, ...]] = {
    **types.EXPRESSION_RULES,
    **statements.STATEMENT_RULES,
    View: (*statements.STATEMENT_RULES[View], buffers.strided_use),
    BufferRef: (buffers.strided_use,),
}


@public
def validate(func: PrimFunc, known: Collection[Function] = ()) -> None:
    """Returns if `func` and all that it calls is well-formed; else raises KernelError with the violations in program
    order, at most 20. Where the same nodes stand in it too often to be gone through, that is what the error tells.
    Functions that are `known` to be well-formed are not looked at again.
    """
    found = tuple(islice(violations(func, known), MOST_REPORTED))
    if found:
        raise KernelError(*found)


@record
class _Define:
    """From here on `name` is defined, by the node `by`."""

    name: Var | Buffer
    by: Node


class _Edge(Enum):
    """Where a block begins and ends."""

    OPEN = "open"
    CLOSE = "close"


_Step: TypeAlias = Node | _Define | _Edge


def violations(func: PrimFunc, known: Collection[Function]) -> Iterator[Message]:
    """Every broken rule, with the span of its statement: in the functions that are called and not `known`, then in
    `func`."""
    for each in closure_of(func):
        if each not in known:
            yield from _own_violations(each)


def _own_violations(func: PrimFunc) -> Iterator[Message]:
    """Every broken rule in program order."""
    span = func.span
    scope = names.Names(func)
    scope.open()
    # Shapes may mention dims, and scalar parameters in whatever place.
    for var in (*func.dims, *(param for param in func.params if isinstance(param, Var))):
        scope.define(var, func, span)
    stack: list[_Step] = [func]
    steps = 0
    may_print = False
    while stack:
        step = stack.pop()
        steps += 1
        if steps == ALWAYS_FINE:
            from tirlite.ir.repeats import demand_few_repeats

            demand_few_repeats(func)
        broken: Sequence[Message] = ()
        if type(step) is Var:  # a third of all nodes
            message = scope.use(step)
            if message is not None:
                broken = (message,)
        elif isinstance(step, Node):
            if isinstance(step, Stmt):
                span = step.span
            broken = _at_node(step, scope)
            may_print = may_print or type(step) is KernelCall or (type(step) is Call and step.op is Op.PRINT)
            if step.DEFINES or isinstance(step, SeqStmt):
                stack.extend(reversed(_steps(step)))
            elif step.CHILDREN:
                stack += step.children()[::-1]
        elif isinstance(step, _Define):
            broken = _at_definition(step, scope, span)
        elif step is _Edge.OPEN:
            scope.open()
        else:
            scope.close()
        for each in broken:
            yield each.replaced(span=span)
    if may_print:
        from tirlite.ir.validate_calls import print_violations

        yield from print_violations(func)


def _steps(node: Node) -> list[_Step]:
    """What a block, or a node that defines something, is made of, in program order, with the edges of blocks."""
    children: list[_Step] = list(node.children())
    if isinstance(node, SeqStmt):
        return [_Edge.OPEN, *children, _Edge.CLOSE]
    definitions: list[_Step] = []
    for name in _members(node, node.DEFINES):
        definitions += [*(name.shape if isinstance(name, Buffer) else ()), _Define(name, node)]
    if "body" in node.CHILDREN:
        return [*children[:-1], _Edge.OPEN, *definitions, children[-1], _Edge.CLOSE]
    return [*children, *definitions]


def _members(node: Node, fields: tuple[str, ...]) -> Iterator[Var | Buffer]:
    for field in fields:
        value = getattr(node, field)
        if isinstance(value, tuple):
            yield from value
        elif value is not None:
            yield value


def _at_node(node: Node, scope: names.Names) -> Sequence[Message]:
    if isinstance(node, PrimFunc):
        return tuple(buffers.function_violations(node))
    found: list[Message] = []
    if node.USES:
        for name in _members(node, node.USES):
            if (message := scope.use(name)) is not None:
                found.append(message)
    rules = _call_rules(node) if isinstance(node, Call | KernelCall) else _NODE_RULES.get(type(node), ())
    for rule in rules:
        if (message := rule(node)) is not None:
            found.append(message)
    return found


def _call_rules(node: Call | KernelCall) -> tuple[types.Rule, ...]:
    from tirlite.ir.validate_calls import KERNEL_CALL_RULES, check_call  # most functions call nothing

    return KERNEL_CALL_RULES if isinstance(node, KernelCall) else (check_call, buffers.strided_use)


def _at_definition(step: _Define, scope: names.Names, span: Span | None) -> list[Message]:
    found = [scope.define(step.name, step.by, span)]
    if isinstance(step.name, Buffer):
        found += [rule(step.name) for rule in buffers.BUFFER_RULES]
        if not isinstance(step.by, Function):
            found.append(buffers.strides_inside(step.name))
    return [message for message in found if message is not None]
