"""Validates a function: raises an error with all the ways in which the function is ill-formed.

The rules are in `validate_types` (operands), `validate_calls`, `validate_statements`, `validate_buffers` (buffers and
functions) and here (definitions and uses).
A definition is valid to the end of its block, and every use must be in its scope. A statement object may occur several
times, even in one block (an unrolled body); then it defines its name anew each time. Otherwise a name must not be
defined again while it is valid. A name that an inner block redefines is invalid after that block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from tirlite.diag import KernelError, Message, Span, public
from tirlite.ir import validate_buffers as buffers, validate_statements as statements, validate_types as types
from tirlite.ir.expr import Buffer, BufferRef, Call, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import Function, KernelCall, closure_of
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import SeqStmt, Stmt, View
from tirlite.ir.validate_buffers import UndeterminedDim
from tirlite.ir.walk import ALWAYS_FINE, distinct
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
    """Raises KernelError with the violations in program order, at most 20, if `func` or a callee is ill-formed.

    If nodes are shared too often for a walk, the error says that. Functions in `known` are known to be well-formed and
    skipped.
    """
    looked_at = [each for each in closure_of(func) if not each.is_valid and each not in known]
    found = tuple(islice((each for other in looked_at for each in _own_violations(other)), MOST_REPORTED))
    if found:
        raise KernelError(*found)
    for each in looked_at:
        object.__setattr__(each, "is_valid", True)


@record
class _Define:
    """`name` is defined from here on, by the node `by`."""

    name: Var | Buffer
    by: Node


# Markers for the begin and the end of a block.
_OPEN, _CLOSE = "open", "close"
_Step: TypeAlias = Node | _Define | str


def _own_violations(func: PrimFunc) -> Iterator[Message]:
    """All violations of one function, in program order."""
    span = func.span
    scope = DefinedNames(func)
    scope.open()
    # Shapes may mention dims, and scalar parameters at any position.
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
        elif step is _OPEN:
            scope.open()
        else:
            scope.close()
        for each in broken:
            yield each.replaced(span=span)
    if may_print:
        from tirlite.ir.validate_calls import print_violations

        yield from print_violations(func)


def _steps(node: Node) -> list[_Step]:
    """The parts of a block, or of a node that defines something, in program order, with markers of blocks."""
    children: list[_Step] = list(node.children())
    if isinstance(node, SeqStmt):
        return [_OPEN, *children, _CLOSE]
    definitions: list[_Step] = []
    for name in _members(node, node.DEFINES):
        definitions += [*(name.shape if isinstance(name, Buffer) else ()), _Define(name, node)]
    if "body" in node.CHILDREN:
        return [*children[:-1], _OPEN, *definitions, children[-1], _CLOSE]
    return [*children, *definitions]


def _members(node: Node, fields: tuple[str, ...]) -> Iterator[Var | Buffer]:
    for field in fields:
        value = getattr(node, field)
        if isinstance(value, tuple):
            yield from value
        elif value is not None:
            yield value


def _at_node(node: Node, scope: DefinedNames) -> Sequence[Message]:
    if isinstance(node, PrimFunc):
        return tuple(buffers.function_violations(node))
    found: list[Message] = []
    if node.USES:
        for name in _members(node, node.USES):
            if (message := scope.use(name)) is not None:
                found.append(message)
    rules = _call_rules(node) if isinstance(node, (Call, KernelCall)) else _NODE_RULES.get(type(node), ())
    for rule in rules:
        if (message := rule(node)) is not None:
            found.append(message)
    return found


def _call_rules(node: Call | KernelCall) -> tuple[types.Rule, ...]:
    from tirlite.ir.validate_calls import KERNEL_CALL_RULES, check_call  # most functions call nothing

    return KERNEL_CALL_RULES if isinstance(node, KernelCall) else (check_call, buffers.strided_use)


def _at_definition(step: _Define, scope: DefinedNames, span: Span | None) -> list[Message]:
    found = [scope.define(step.name, step.by, span)]
    if isinstance(step.name, Buffer):
        found += [rule(step.name) for rule in buffers.BUFFER_RULES]
        if not isinstance(step.by, Function):
            found.append(buffers.strides_inside(step.name))
    return [message for message in found if message is not None]


class Undefined(Message):
    """A variable or buffer is used, and nothing in the function defines it.

    Example: `Store(y, (i,), v)` with a `Var("i")` of its own making.
    Fix: Use the object that the loop, the `Let` or the parameters define: names alone make no identity.
    """

    title = "{kind} `{name}` is used, and nothing defines it"


class UsedBeforeDefinition(Message):
    """A variable or buffer is used by a statement before the one that defines it.

    Example: A `Load` of a buffer ahead of its `Allocate`.
    Fix: Put the definition first.
    """

    title = "{kind} `{name}` is used before it is defined"
    related_label = "defined here"


class OutOfScope(Message):
    """A variable or buffer is used after the end of the block that defines it.

    Example: A `Load`, after a loop, of a buffer that is allocated inside.
    Fix: Move the definition out of the block.
    """

    title = "{kind} `{name}` is used after the end of the block that defines it"
    related_label = "defined here"


class DefinedTwice(Message):
    """One object is defined a second time.

    Example: The same `Allocate` statement twice in a row.
    Fix: Make a second object: a buffer and a variable are defined once.
    """

    title = "{kind} `{name}` is defined again"
    related_label = "first defined here"


def kind_of(name: Var | Buffer) -> str:
    return "variable" if isinstance(name, Var) else "buffer"


class DefinedNames:
    """The names that are defined at the current point of a walk through `root`."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._defined: dict[Var | Buffer, Node] = {}
        self._ever: dict[Var | Buffer, Span | None] = {}
        self._blocks: list[list[Var | Buffer]] = []

    def open(self) -> None:
        """Begins a block."""
        self._blocks.append([])

    def close(self) -> None:
        """Ends the innermost block and the scope of its definitions."""
        for name in self._blocks.pop():
            self._defined.pop(name, None)

    def define(self, name: Var | Buffer, by: Node, span: Span | None) -> Message | None:
        """Defines `name` in the innermost block."""
        earlier = self._defined.get(name)
        if earlier is not None and earlier is not by:
            return DefinedTwice(kind_of(name), name.name, related=self._ever[name])
        self._defined[name] = by
        self._ever[name] = span
        self._blocks[-1].append(name)
        return None

    def use(self, name: Var | Buffer) -> Message | None:
        """Checks a use of `name`."""
        if name in self._defined:
            return None
        if name in self._ever:
            return OutOfScope(kind_of(name), name.name, related=self._ever[name])
        nodes = distinct(self._root)
        later = next((node for node in nodes if any(getattr(node, each) is name for each in node.DEFINES)), None)
        if later is None:
            is_dim = isinstance(name, Var) and name.dim is not None
            return UndeterminedDim(name.name) if is_dim else Undefined(kind_of(name), name.name)
        return UsedBeforeDefinition(kind_of(name), name.name, related=getattr(later, "span", None))
