"""Translates a Python function or DSL text to a PrimFunc. It reads the syntax tree and executes nothing."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING

from tirlite.diag import KernelError, Message, public
from tirlite.diag.error import an
from tirlite.dsl.body import Body
from tirlite.dsl.dims import dim, dims
from tirlite.dsl.expression import Expressions
from tirlite.dsl.lookups import Lookups
from tirlite.dsl.scope import CellTypes, Scope
from tirlite.dsl.signature import BadText, Evaluated, arguments_of, defaults_of, parameter_of, refuse_hidden_dims
from tirlite.dsl.statement import MOST_REPORTED
from tirlite.dsl.surroundings import Surroundings, surroundings_of
from tirlite.dsl.syntax import SourceMap, function_syntax, text_syntax, trimmed
from tirlite.dsl.vocabulary import TL, Word
from tirlite.ir.expr import Buffer, Var
from tirlite.ir.func import PrimFunc, with_one_dim_each
from tirlite.ir.stmt import AttrKey, AttrStmt, Permission, SeqStmt, Stmt
from tirlite.ir.trampoline import run
from tirlite.ir.validate import validate
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.dsl.expression import Callee, Invoke, Position
    from tirlite.dsl.vocabulary import CallSite
    from tirlite.ir.trampoline import Steps


@record
class Translation:
    """A kernel, the captured constants by name, and all names that were looked up."""

    func: PrimFunc
    captures: Mapping[str, object]
    lookups: Lookups


def translate(function: FunctionType, frame_locals: Mapping[str, object]) -> Translation:
    """The kernel defined by a Python function.
    Names are looked up in the function's closure, in `frame_locals` (of the frame that defines it), in its globals and
    in the builtins. Raises KernelError with all independent mistakes, at most 20.
    """
    tree, origin = function_syntax(function)
    around = surroundings_of(function, frame_locals)
    func = _kernel(tree, origin, around, Evaluated(function.__annotations__, function.__defaults__ or ()))
    return Translation(func, around.captures, around.lookups)


@public
def parse(text: str, name: str = "<text>") -> PrimFunc:
    """The kernel that `text` spells; the inverse of `str(func)`. Never executes anything.

    Kernels that it calls, by `tl.call` or plainly, stand before it. `name` stands for the file in messages. Raises
    KernelError with all independent mistakes, at most 20.
    """
    if not issubclass(type(text), str):
        raise BadText(f"a kernel is parsed from a text, not from {an(type(text).__name__)}").error()
    module, origin = text_syntax(text, name)
    names: dict[str, object] = {"tl": TL}
    surroundings = Surroundings((names, {each: getattr(builtins, each) for each in _BUILTINS}))
    expressions = Expressions(origin, surroundings, Scope(surroundings.has), set())
    uncalled: dict[PrimFunc, ast.FunctionDef] = {}
    func: PrimFunc | None = None
    for stmt in module.body:
        if isinstance(stmt, ast.Assign):
            names.update(_dims(stmt, expressions))
        elif isinstance(stmt, ast.FunctionDef):
            _check_decorator(stmt, expressions)
            _note_uses(uncalled, stmt, names)
            stmt.body = trimmed(stmt.body)
            func = names[stmt.name] = _kernel(stmt, origin, surroundings, Evaluated())
            uncalled[func] = stmt
        elif not _is_import_of_tl(stmt):
            raise BadText("this is not part of a kernel", span=origin.span(stmt)).error()
    if func is None:
        raise BadText("there is no kernel in the text").error()
    for other, stmt in uncalled.items():
        if other is not func:
            what = f"there is more than one kernel, and no other one calls `{other.name}`"
            raise BadText(what, span=origin.span(stmt)).error()
    return func


def _note_uses(uncalled: dict[PrimFunc, ast.FunctionDef], stmt: ast.FunctionDef, names: Mapping[str, object]) -> None:
    """Removes the kernels that `stmt` uses from `uncalled`."""
    if not uncalled:
        return
    mentioned = {node.id for node in ast.walk(stmt) if isinstance(node, ast.Name)}
    for each in [func for func in uncalled if any(names.get(name) is func for name in mentioned)]:
        del uncalled[each]


_BUILTINS = ("range", "len", "min", "max", "abs", "bool", "int", "float", "print")


def _is_import_of_tl(stmt: ast.stmt) -> bool:
    names = stmt.names if isinstance(stmt, ast.Import) else []
    return [(each.name, each.asname) for each in names] == [("tirlite", "tl")]


def _check_decorator(stmt: ast.FunctionDef, expressions: Expressions) -> None:
    if not stmt.decorator_list or not all(
        expressions.named_call(("kernel", "allow")[:place + 1], each) or (place == 0 and _is_kernel(each, expressions))
        for place, each in enumerate(stmt.decorator_list)
    ):  # fmt: skip
        raise BadText("the function is not decorated with @tl.kernel", span=expressions.span(stmt)).error()


def _is_kernel(decorator: ast.expr, expressions: Expressions) -> bool:
    word = None if isinstance(decorator, ast.Call) else expressions.value(decorator)
    return isinstance(word, Word) and word.name == "kernel"


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
        raise _placed(error, stmt, expressions.origin) from None
    if len(made) != len(names) or isinstance(target, ast.Tuple) != (site.word.name == "dims"):
        raise BadText(f"{len(made)} dims are declared for {len(names)} names", span=span).error()
    return dict(zip(names, made, strict=True))


def _placed(error: KernelError, node: ast.AST, origin: SourceMap) -> KernelError:
    """The same error; messages without a location point at `node`."""
    span = origin.span(node)
    return KernelError(*(each if each.span is not None else each.replaced(span=span) for each in error.messages))


def _kernel(tree: ast.FunctionDef, origin: SourceMap, surroundings: Surroundings, evaluated: Evaluated) -> PrimFunc:
    """The function defined by `tree`; `evaluated` has what Python has evaluated already."""
    surroundings = surroundings.of_kernel(tree.name)
    arguments = arguments_of(tree, origin)
    types = CellTypes()
    func, mistakes = _attempt(tree, arguments, origin, surroundings, evaluated, types)
    if types.undecided:
        types = CellTypes(learning=False, known=types.known)
        func, mistakes = _attempt(tree, arguments, origin, surroundings, evaluated, types)
    if mistakes:
        raise KernelError(*mistakes[:MOST_REPORTED])
    func = with_one_dim_each(func)
    refuse_hidden_dims(arguments, {dim.name for dim in func.dims}, origin)
    validate(func)
    return func


def _attempt(
    tree: ast.FunctionDef,
    arguments: Sequence[ast.arg],
    origin: SourceMap,
    surroundings: Surroundings,
    evaluated: Evaluated,
    types: CellTypes,
) -> tuple[PrimFunc, Sequence[Message]]:
    """The function with the types known so far, and its mistakes."""
    body = Body(
        tree, origin, surroundings, types, lambda scope: _invocation(scope, surroundings, types), gives_value=False
    )
    params: list[Var | Buffer] = []
    outputs: list[Buffer] = []
    looks: list[Stmt] = []
    defaults: list[bool | int | float | None] = []
    given = defaults_of(tree, evaluated)
    refuse_hidden_dims(arguments, body.dims, origin)
    for arg in arguments:
        with body.statements.reporting(arg.arg, arg):
            param, is_output, look = parameter_of(arg, body.expressions, evaluated.annotations)
            params.append(param)
            looks += look
            defaults.append(given[arg].number(param, body.expressions, is_output=is_output) if arg in given else None)
            outputs += [param] if is_output and isinstance(param, Buffer) else []
            body.declare(arg.arg, param, "an array parameter" if isinstance(param, Buffer) else "a parameter", arg)
    granted = _granted(tree, body) if any(isinstance(each, ast.Call) for each in tree.decorator_list) else ()
    stmts = run(body.steps())
    if granted:
        stmts = SeqStmt((AttrStmt(AttrKey.ALLOW, stmts, None, granted),))
    if looks:
        stmts = SeqStmt((*looks, *stmts.stmts), span=stmts.span)
    numbers = tuple(defaults) if any(each is not None for each in defaults) else ()
    func = PrimFunc(tree.name, tuple(params), stmts, tuple(outputs), numbers, span=origin.span(tree))
    return func, body.statements.mistakes


def _granted(tree: ast.FunctionDef, body: Body) -> tuple[Permission, ...]:
    """The permissions from the kernel's decorators."""
    from tirlite.dsl.permissions import granted

    found: list[Permission] = []
    with body.statements.reporting(tree.name, tree):
        found += granted(tree, body.expressions)
    return tuple(found)


def _invocation(scope: Scope, surroundings: Surroundings, types: CellTypes) -> Invoke:
    def invoke(callee: Callee, site: CallSite, position: Position) -> Steps[object]:
        # A lazy import, as few kernels call others.
        from tirlite.dsl.invocation import Invocation

        return Invocation(scope, surroundings, types)(callee, site, position)

    return invoke
