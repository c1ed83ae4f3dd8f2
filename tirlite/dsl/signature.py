"""Makes the variables and buffers of a kernel's parameters from its syntax tree, and reads their defaults."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from tirlite.diag import KernelError, Message, Span
from tirlite.dsl.convert import is_literal, stored
from tirlite.dsl.expression import Expressions
from tirlite.dsl.parameters import BadOption, ParamType, described, parameter
from tirlite.dsl.surroundings import meaning
from tirlite.dsl.syntax import NotInKernels, SourceMap, parsed
from tirlite.dsl.vocabulary import BUILTINS
from tirlite.ir.dtype import i64
from tirlite.ir.expr import LE, LT, And, Buffer, Cast, Expr, FloatImm, IntImm, Load, Var, const
from tirlite.ir.stmt import Assert, For, SeqStmt, Stmt
from tirlite.record import record
from tirlite.sizes import Dim, Poly


class NoAnnotation(Message):
    """A parameter has no type.

    Example: `def f(x):`.
    Fix: Give the parameter a type: `x: tl.f32[n]`.
    """

    title = "parameter `{name}` has no type"
    help = "{advice}"


class BadParameter(Message):
    """A parameter of a kind that kernels do not have.

    Example: `def f(x: tl.f32[n], *more):`.
    """

    title = "{what} is not allowed in the signature of a kernel"
    help = (
        "a kernel has plain parameters with types, numbers perhaps with defaults: `def f(x: tl.f32[n], a: tl.f32 = 1)`"
    )


class HiddenDim(Message):
    """A parameter has the name of a dim that the kernel uses: what the name means would depend on where it stands.

    Example: `def f(x: tl.f32[n], n: tl.i64):`, where `n` is a dim.
    """

    title = "parameter `{name}` has the name of a dim that this kernel uses"
    help = "give the parameter another name; the value of a dim comes with the arrays"


class BadText(Message):
    """Text for `tl.parse` holds something other than dims, one kernel, and the kernels that it calls before it.

    Example: Text for `tl.parse` with two kernels in it, of which neither calls the other.
    Fix: Write declarations of dims, then one function under `@tl.kernel`; kernels that it calls stand before it.
    """

    title = "{what}"
    help = 'the text is declarations like `n, m = tl.dims("n m")`, then one function under `@tl.kernel`'


def arguments_of(tree: ast.FunctionDef, origin: SourceMap) -> list[ast.arg]:
    """The parameters, which must all be plain."""
    args = tree.args
    odd: list[tuple[ast.AST | None, str]] = [
        (args.vararg, "`*args`"),
        (args.kwarg, "`**kwargs`"),
        (next(iter(args.kwonlyargs), None), "a parameter by keyword alone"),
        (next(iter(args.posonlyargs), None), "a parameter by position alone"),
    ]
    for node, what in odd:
        if node is not None:
            raise BadParameter(what, span=origin.span(node)).error()
    if tree.returns is not None and not (isinstance(tree.returns, ast.Constant) and tree.returns.value is None):
        instead = "mark a parameter as an output: y: tl.out[tl.f32[n]]"
        raise NotInKernels("the type of a result", instead, span=origin.span(tree.returns)).error()
    return args.args


def annotated_names(arguments: Sequence[ast.arg]) -> set[str]:
    """The names in the annotations of parameters, including annotations that are strings."""
    found: set[str] = set()
    for arg in arguments:
        for node in ast.walk(arg.annotation) if arg.annotation is not None else ():
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif node is arg.annotation and isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(re.findall(r"[^\W\d]\w*", node.value))
    return found


def refuse_hidden_dims(arguments: Sequence[ast.arg], dims: Collection[str], origin: SourceMap) -> None:
    """Raises KernelError for a parameter with the name of one of its kernel's dims."""
    for arg in arguments:
        if arg.arg in dims:
            raise HiddenDim(arg.arg, span=origin.span(arg)).error()


def parameter_of(
    arg: ast.arg, expressions: Expressions, annotations: Mapping[str, object]
) -> tuple[Var | Buffer, bool, tuple[Stmt, ...]]:
    """The variable or buffer of a parameter, whether it is an output, and checks of the bounds that it promises."""
    origin = expressions.origin
    if arg.annotation is None:
        raise NoAnnotation(arg.arg, _typing(arg.arg), span=origin.span(arg)).error()
    span = origin.span(arg.annotation)
    expressions.note_names(arg.annotation)
    kind = annotations.get(arg.arg)
    if kind is None or isinstance(kind, str):
        kind = expressions.value(_of_annotated(_unquoted(arg.annotation, origin)))
    elif hasattr(kind, "__metadata__"):
        kind = kind.__metadata__[0]
    else:
        kind = BUILTINS.get(kind, kind) if isinstance(kind, type) else kind
    param, is_output = parameter(arg.arg, kind, span)
    if not isinstance(kind, ParamType) or kind.below is None:
        return param, is_output, ()
    assert isinstance(param, Buffer)
    return param, is_output, (look_at_elements(param, kind, span),)


def _of_annotated(annotation: ast.expr) -> ast.expr:
    """The part of an annotation for tirlite: the second one in `Annotated[Array, tl.f32[n]]`."""
    base = annotation.value if isinstance(annotation, ast.Subscript) else None
    name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
    if name == "Annotated" and isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        return annotation.slice.elts[1]
    return annotation


def _typing(name: str) -> str:
    if name in ("self", "cls"):
        return "a kernel is not a method: write it outside of the class, or under @staticmethod without this parameter"
    return f"write `{name}: tl.f32[n, m]` for an array, `{name}: tl.f32` for a scalar"


def _unquoted(annotation: ast.expr, origin: SourceMap) -> ast.expr:
    """The expression in an annotation that is a string; its nodes get the location of the string."""
    if not isinstance(annotation, ast.Constant) or not isinstance(annotation.value, str):
        return annotation
    # Parentheses, so that a string of several lines is one expression.
    text = f"({annotation.value})" if "\n" in annotation.value else annotation.value.strip()
    span = origin.span(annotation)
    try:
        stmts = parsed(text, origin).body
    except KernelError as error:
        raise error.at(span) from None
    stmt = stmts[0] if len(stmts) == 1 else None
    if not isinstance(stmt, ast.Expr):
        raise BadText("this annotation is not a type", span=span).error()
    for node in ast.walk(stmt.value):
        ast.copy_location(node, annotation)
    return stmt.value


class BadDefault(Message):
    """A parameter has a default that it cannot have.

    Example: `def f(x: tl.f32[n] = 0, gain: tl.f32 = 1):`.
    Fix: Give numbers constants of their type; arrays have no defaults. An output may have None, and may be left out.
    """

    title = "parameter `{name}` cannot be {given} by default"
    help = "{advice}"


@record
class Evaluated:
    """The annotations and defaults that Python has evaluated; none if the function is text."""

    annotations: Mapping[str, object] = field(default_factory=dict)
    defaults: Sequence[object] = ()


@record
class Default:
    """The default of the parameter `name`: its node, and its value if Python has evaluated it."""

    name: str
    node: ast.expr
    value: object
    is_evaluated: bool

    def number(self, param: Var | Buffer, expressions: Expressions, *, is_output: bool) -> bool | int | float | None:
        """The default of a number, converted to the parameter's type; None for that of an output."""
        span = expressions.span(self.node)
        is_none = isinstance(self.node, ast.Constant) and self.node.value is None
        if isinstance(param, Buffer):
            if is_output and (is_none or (self.is_evaluated and self.value is None)):
                return None
            advice = "an output is left out by itself: no default, or None" if is_output else "arrays are given"
            raise BadDefault(self.name, expressions.origin.text(self.node), advice, span=span).error()
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
        return bool(made.value) if param.dtype.is_bool else made.value


def defaults_of(tree: ast.FunctionDef, evaluated: Evaluated) -> Mapping[ast.arg, Default]:
    nodes = tree.args.defaults
    args = tree.args.args[len(tree.args.args) - len(nodes) :]
    known = len(evaluated.defaults) == len(nodes)
    values = evaluated.defaults if known else [None] * len(nodes)
    return {
        arg: Default(arg.arg, node, value, known)
        for arg, node, value in zip(args, nodes, values, strict=True)
    }  # fmt: skip


def look_at_elements(array: Buffer, kind: ParamType, span: Span) -> Stmt:
    """Loops over all elements of a parameter with an assert that they are as `kind` promises."""
    from tirlite.ir.printer import text  # few kernels promise any

    least, below = _bound("least", kind.least, span), _bound("below", kind.below, span)
    dtype = array.dtype
    if not dtype.is_integer or dtype.lanes != 1 or (dtype.bits == 64 and not dtype.is_signed):
        raise BadOption("below", text(below), f"for elements that fit into i64, not tl.{dtype}", span=span).error()
    if kind.is_output:
        raise BadOption("below", text(below), "for arrays that have elements when they are given", span=span).error()
    names = ("place",) if len(array.shape) == 1 else tuple(f"place{axis}" for axis in range(len(array.shape)))
    indices = tuple(Var(name, i64) for name in names)
    element: Expr = Load(array, indices)
    value = element if dtype == i64 else Cast(i64, element)
    message = f"the elements of {array.name} are at least {text(least)} and less than {text(below)}"
    stmt: Stmt = Assert(And(LE(least, value), LT(value, below)), message, span=span)
    for index, extent in reversed([*zip(indices, array.shape, strict=True)]):
        stmt = For(index, const(0, i64), extent, SeqStmt((stmt,), span=span), span=span)
    return stmt


def _bound(option: str, given: object, span: Span) -> Expr:
    """An integer, or arithmetic on dims, as an i64 expression."""
    if isinstance(given, Expr) and given.dtype.is_integer and given.dtype.lanes == 1:
        return given.astype(i64)
    if isinstance(given, Dim | Poly):
        from tirlite.ir.size import expr_over_dims

        return expr_over_dims(given)
    if hasattr(given, "__index__") and not isinstance(given, bool):
        value = int(given.__index__())
        if i64.min <= value <= i64.max:
            return IntImm(i64, value)
    raise BadOption(option, described(given), "an integer, or an integer expression of dims", span=span).error()
