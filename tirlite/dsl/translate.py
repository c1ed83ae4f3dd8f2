"""A Python function, or DSL text, in; a PrimFunc out. The syntax tree is read, and nothing is executed."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from types import FunctionType

from tirlite.diag import KernelError, Message, public
from tirlite.dsl.assignment import Assignments
from tirlite.dsl.dims import dim, dims
from tirlite.dsl.expression import Expressions
from tirlite.dsl.local_names import Block, local_names
from tirlite.dsl.parameters import parameter
from tirlite.dsl.places import Places
from tirlite.dsl.refused import NotInKernels
from tirlite.dsl.scope import Scope
from tirlite.dsl.statement import MOST_REPORTED, Statements
from tirlite.dsl.surroundings import Surroundings
from tirlite.dsl.syntax import function_syntax, parsed, text_syntax
from tirlite.dsl.vocabulary import BUILTINS, TL, Word
from tirlite.ir.expr import Buffer, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.trampoline import run
from tirlite.ir.validate import validate


class NoAnnotation(Message):
    """A parameter has no type.

    Example: `def f(x):`.
    Fix: Give the parameter a type: `x: tl.f32[n]`.
    """

    code = "no-annotation"
    title = "parameter `{name}` has no type"
    help = "write `{name}: tl.f32[n, m]` for an array, `{name}: tl.f32` for a scalar"

    name: str


class BadParameter(Message):
    """A parameter of a kind that kernels do not have.

    Example: `def f(x: tl.f32[n], gain: tl.f32 = 1.0):`.
    Fix: Write plain parameters with types, and give all values at the call.
    """

    code = "bad-parameter"
    title = "{what} cannot stand in the signature of a kernel"
    help = "a kernel has plain parameters with types, and no defaults: def f(x: tl.f32[n], a: tl.f32)"

    what: str


class BadText(Message):
    """Text for `tl.parse` holds something else than dims and one kernel.

    Example: Text for `tl.parse` with two kernels in it.
    Fix: Write declarations of dims, then one function under `@tl.kernel`.
    """

    code = "bad-text"
    title = "{what}"
    help = 'the text is declarations like `n, m = tl.dims("n m")`, then one function under `@tl.kernel`'

    what: str


def translate(function: FunctionType, frame_locals: Mapping[str, object]) -> PrimFunc:
    """The kernel that a Python function describes.

    Names are looked up in the function's closure, in `frame_locals` (those of the frame that defines it), in its
    globals and in the builtins. Raises KernelError with all independent mistakes, at most 20.
    """
    tree, places = function_syntax(function)
    code, cells = function.__code__, function.__closure__ or ()
    closure = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True) if _is_full(cell)}
    surroundings = Surroundings((closure, frame_locals, function.__globals__, vars(builtins)))
    return _kernel(tree, places, surroundings, function.__annotations__)


def _is_full(cell: object) -> bool:
    try:
        return hasattr(cell, "cell_contents")
    except ValueError:
        return False


@public
def parse(text: str, name: str = "<text>") -> PrimFunc:
    """The kernel that `text` spells; the inverse of `str(func)`. Never executes anything.

    `name` stands for the file in messages. Raises KernelError with all independent mistakes, at most 20.
    """
    module, places = text_syntax(text, name)
    names: dict[str, object] = {"tl": TL}
    surroundings = Surroundings((names, {each: getattr(builtins, each) for each in _BUILTINS}))
    expressions = Expressions(places, surroundings, Scope(), set())
    kernel: ast.FunctionDef | None = None
    for stmt in module.body:
        if isinstance(stmt, ast.Assign) and kernel is None:
            names.update(_dims(stmt, expressions))
        elif isinstance(stmt, ast.FunctionDef) and kernel is None:
            _check_decorator(stmt, expressions)
            kernel = stmt
        elif not _is_import_of_tl(stmt):
            what = (
                "there is more than one kernel" if isinstance(stmt, ast.FunctionDef) else "this is no part of a kernel"
            )
            raise BadText(what, span=places.span(stmt)).error()
    if kernel is None:
        raise BadText("there is no kernel in the text").error()
    return _kernel(kernel, places, surroundings, {})


_BUILTINS = ("range", "min", "max", "abs", "bool", "int", "float")


def _is_import_of_tl(stmt: ast.stmt) -> bool:
    names = stmt.names if isinstance(stmt, ast.Import) else []
    return [(each.name, each.asname) for each in names] == [("tirlite", "tl")]


def _check_decorator(stmt: ast.FunctionDef, expressions: Expressions) -> None:
    words = [expressions.value(decorator) for decorator in stmt.decorator_list]
    if [word.name for word in words if isinstance(word, Word)] != ["kernel"] or len(words) != 1:
        raise BadText("the function is not decorated with a plain @tl.kernel", span=expressions.span(stmt)).error()


def _dims(stmt: ast.Assign, expressions: Expressions) -> Mapping[str, object]:
    """The names and values of `n, m = tl.dims("n m")` or `n = tl.dim("n", max=8)`."""
    span, target = expressions.span(stmt), stmt.targets[0]
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    site = expressions.word_call(stmt.value)
    if site is None or site.word.name not in ("dim", "dims") or len(stmt.targets) != 1 or len(names) != len(targets):
        raise BadText("this declares no dims", span=span).error()
    site.count(1, 1, "one text")
    facts = {name: value for name, (value, _) in site.keywords.items()}
    if site.word.name == "dims":
        site.only()
    try:
        made = dims(site.args[0]) if site.word.name == "dims" else (dim(site.args[0], **facts),)  # type: ignore[arg-type]
    except KernelError as error:
        raise _placed(error, stmt, expressions.places) from None
    if len(made) != len(names) or isinstance(target, ast.Tuple) != (site.word.name == "dims"):
        raise BadText(f"{len(made)} dims are declared for {len(names)} names", span=span).error()
    return dict(zip(names, made, strict=True))


def _placed(error: KernelError, node: ast.AST, places: Places) -> KernelError:
    """The same error, its messages pointing at `node` where they point at nothing."""
    span = places.span(node)
    messages = [message for message in error.messages if isinstance(message, Message)]
    return KernelError(*(each if each.span is not None else each.replaced(span=span) for each in messages))


def _kernel(
    tree: ast.FunctionDef, places: Places, surroundings: Surroundings, annotations: Mapping[str, object]
) -> PrimFunc:
    """The function that `tree` describes; `annotations` are those that Python has evaluated already."""
    tree.body = _trimmed(tree.body)
    scope = Scope()
    scope.open(Block())
    expressions = Expressions(places, surroundings, scope, {arg.arg for arg in _arguments(tree, places)})
    found = local_names(tree, expressions.is_declaration)
    assignments = Assignments(expressions, scope, found)
    statements = Statements(expressions, scope, found, assignments)
    params: list[Var | Buffer] = []
    outputs: list[Buffer] = []
    for arg in tree.args.args:
        with statements.reporting(arg.arg, arg):
            param, is_output = _parameter(arg, expressions, annotations)
            params.append(param)
            outputs += [param] if is_output and isinstance(param, Buffer) else []
            scope.bind(arg.arg, param, places.span(arg))
            assignments.fix(arg.arg, "an array parameter" if isinstance(param, Buffer) else "a parameter")
    expressions.local.update(found.kinds)
    body, _ = run(statements.body(tree, "body"))
    if statements.mistakes:
        raise KernelError(*statements.mistakes[:MOST_REPORTED])
    func = PrimFunc(tree.name, tuple(params), body, tuple(outputs), span=places.span(tree))
    validate(func)
    return func


def _trimmed(body: list[ast.stmt]) -> list[ast.stmt]:
    """A function's statements without its docstring and without a bare `return` at the end."""
    first, last = body[0], body[-1]
    if isinstance(last, ast.Return) and last.value is None:
        body = body[:-1]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        body = body[1:]
    return body


def _arguments(tree: ast.FunctionDef, places: Places) -> list[ast.arg]:
    """The parameters, if all of them are plain."""
    args = tree.args
    odd: list[tuple[ast.AST | None, str]] = [
        (args.vararg, "`*args`"),
        (args.kwarg, "`**kwargs`"),
        (next(iter(args.kwonlyargs), None), "a parameter by keyword alone"),
        (next(iter(args.posonlyargs), None), "a parameter by position alone"),
        (next(iter(args.defaults), None), "a parameter with a default"),
    ]
    for node, what in odd:
        if node is not None:
            raise BadParameter(what, span=places.span(node)).error()
    if tree.returns is not None and not (isinstance(tree.returns, ast.Constant) and tree.returns.value is None):
        instead = "mark a parameter as an output: y: tl.out[tl.f32[n]]"
        raise NotInKernels("the type of a result", instead, span=places.span(tree.returns)).error()
    return args.args


def _parameter(arg: ast.arg, expressions: Expressions, annotations: Mapping[str, object]) -> tuple[Var | Buffer, bool]:
    places = expressions.places
    if arg.annotation is None:
        raise NoAnnotation(arg.arg, span=places.span(arg)).error()
    span = places.span(arg.annotation)
    kind = annotations.get(arg.arg)
    if kind is None or isinstance(kind, str):
        kind = expressions.value(_unquoted(arg.annotation, places))
    else:
        kind = BUILTINS.get(kind, kind) if isinstance(kind, type) else kind
    return parameter(arg.arg, kind, span)


def _unquoted(annotation: ast.expr, places: Places) -> ast.expr:
    """The expression in an annotation that is a text, each of its nodes at the place of the text."""
    if not isinstance(annotation, ast.Constant) or not isinstance(annotation.value, str):
        return annotation
    stmts = parsed(f"({annotation.value})", places).body
    stmt = stmts[0] if len(stmts) == 1 else None
    if not isinstance(stmt, ast.Expr):
        raise BadText("this annotation is no type", span=places.span(annotation)).error()
    for node in ast.walk(stmt.value):
        ast.copy_location(node, annotation)
    return stmt.value
