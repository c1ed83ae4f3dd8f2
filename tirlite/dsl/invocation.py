"""Translates a call of a kernel or an inline function to statements in the caller's block, and a value."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tirlite.diag import KernelError, Message, Span
from tirlite.dsl.body import Body
from tirlite.dsl.convert import stored
from tirlite.dsl.expression import AsFunction, Callee, Position
from tirlite.dsl.inline import BadInlineParameter, Inline
from tirlite.dsl.parameters import checked, described
from tirlite.dsl.scope import CellTypes, Scope
from tirlite.dsl.surroundings import Surroundings, surroundings_inside
from tirlite.dsl.vocabulary import CallSite, MisplacedWord
from tirlite.ir.dtype import DType
from tirlite.ir.expr import Expr, FloatImm, IntImm, LetExpr, Var
from tirlite.ir.stmt import Allocate, Let, Stmt, Store, View
from tirlite.ir.trampoline import Steps
from tirlite.ir.walk import walk

# The deepest chain of calls, as each level takes frames of Python's stack.
DEEPEST = 40
_GRANTS = "a function under @tl.inline has what its caller is granted: write `with tl.allow(...):` in the kernel"


class DeepCall(Message):
    """Inline functions call each other without end, or too deeply.

    Example: a function under @tl.inline that calls itself, with no `if tl.static(...)` around the call.
    """

    title = "inline functions are nested more than {most} deep here"
    help = "a function that calls itself ends by `if tl.static(...)`; or write a loop"


class ConditionalCall(Message):
    """A function that consists of statements is called where it might not be computed, or several times.

    Example: `y[i] = f(x[i]) if x[i] > 0 else 0`, where `f` has a loop in it.
    Fix: Give its result a name on a line before, or write `if` and `else` as statements.
    """

    title = "{name} cannot be called under a condition inside of an expression: it is more than one expression"
    help = "call it on a line before, or write the choice as `if` and `else`"


class HiddenStore(Message):
    """A function that stores into a buffer of its caller is called inside of an expression.

    Example: `y[i] = x[i] + push(x, i)`, where `push` stores into its first parameter.
    Fix: Call it on a line of its own: `t = push(x, i)`.
    """

    title = "{name} stores into `{buffer}`, and is called inside of an expression"
    help = "give its result a name on a line before: the order of loads and stores is then explicit"


class Invocation:
    """Translates the calls in one function body.

    `scope` receives the statements, `types` says whether they are final.
    """

    def __init__(self, scope: Scope, surroundings: Surroundings, types: CellTypes, depth: int = 0) -> None:
        self.scope = scope
        self.surroundings = surroundings
        self.types = types
        self.depth = depth

    def __call__(self, callee: Callee, site: CallSite, position: Position) -> Steps[object]:
        """The value of a call: a number, a tuple of numbers, or None."""
        stmts: Sequence[Stmt]
        if isinstance(callee, Inline):
            stmts, value = yield self._inlined(callee, site)
        else:
            from tirlite.dsl.kernel_call import called, spliced

            stmts = (called(callee.func, site),) if isinstance(callee, AsFunction) else spliced(callee, site)
            value = None
        if position == "conditional":
            return _as_expression(callee.name, stmts, value, site.span)
        if position == "inside" and not (self.types.learning and self.types.undecided):
            _refuse_stores(callee.name, stmts, site.span)
        for stmt in stmts:
            self.scope.add(stmt)
        return value

    def _inlined(self, callee: Inline, site: CallSite) -> Steps[tuple[Sequence[Stmt], object]]:
        if self.depth >= DEEPEST:
            raise DeepCall(DEEPEST, span=site.span).error()
        types = CellTypes()
        body = self._body(callee, site, types)
        stmts = yield body.steps()
        self.types.undecided |= types.undecided
        if not self.types.learning and types.undecided:
            types = CellTypes(learning=False, known=types.known)
            body = self._body(callee, site, types)
            stmts = yield body.steps()
        if body.statements.mistakes:
            # Also point at the call in the kernel.
            found = body.statements.mistakes
            raise KernelError(*(each if each.related_label else each.replaced(related=site.span) for each in found))
        return stmts.stmts, body.statements.result

    def _body(self, callee: Inline, site: CallSite, types: CellTypes) -> Body:
        """The body of a function with its parameters declared, not yet translated."""
        tree, origin = callee.syntax
        if (granted := next((each for each in tree.decorator_list if isinstance(each, ast.Call)), None)) is not None:
            raise MisplacedWord("a permission", _GRANTS, span=origin.span(granted)).error()
        around = self.surroundings
        prefix = f"{around.prefix}{callee.name}."
        surroundings = surroundings_inside(callee.function, callee.frame_locals, around, prefix)
        params, given = tree.args.args, callee.function.__defaults__ or ()
        defaults = dict(zip([each.arg for each in params[len(params) - len(given) :]], given, strict=True))
        from tirlite.dsl.vocabulary import bound

        values = bound(callee.name, [each.arg for each in params], defaults, site)
        body = Body(
            tree, origin, surroundings, types,
            lambda scope: Invocation(scope, surroundings, types, self.depth + 1), gives_value=True,
        )  # fmt: skip
        for param in params:
            value, span = values[param.arg]
            made = _argument(param, value, span, body)
            body.declare(param.arg, made, "a parameter", param)
        return body


def _argument(param: ast.arg, value: object, span: Span, body: Body) -> object:
    """The value of a parameter; a number that is not constant is bound once, before the body."""
    if param.annotation is not None:
        place = body.expressions.span(param.annotation)
        kind = body.expressions.value(param.annotation)
        if not isinstance(kind, DType):
            raise BadInlineParameter(f"a parameter with {described(kind)}", span=place).error()
        value = stored(value, checked(kind, place), param.arg, span)
    if not isinstance(value, Expr) or isinstance(value, (Var, IntImm, FloatImm)) or value.dtype.is_handle:
        return value
    var = Var(param.arg, value.dtype)
    body.scope.add(Let(var, value, span=span))
    return var


def _as_expression(name: str, stmts: Sequence[Stmt], value: object, span: Span) -> object:
    """The value of a call as one expression, with lets for its parts."""
    lets = [stmt for stmt in stmts if isinstance(stmt, Let)]
    if len(lets) != len(stmts) or isinstance(value, tuple):
        raise ConditionalCall(name, span=span).error()
    if isinstance(value, Expr):
        for let in reversed(lets):
            value = LetExpr(let.var, let.value, value)
    return value


def _refuse_stores(name: str, stmts: Sequence[Stmt], span: Span) -> None:
    """Raises KernelError if `stmts` store to buffers that they do not declare themselves."""
    own: dict[object, None] = {}
    for stmt in stmts:
        for node in walk(stmt):
            if isinstance(node, Allocate) or (isinstance(node, View) and node.source in own):
                own[node.buffer] = None
            elif isinstance(node, Store) and node.buffer not in own:
                raise HiddenStore(name, node.buffer.name, span=span).error()
