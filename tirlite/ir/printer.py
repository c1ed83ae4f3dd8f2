"""The IR in, DSL source out, which `tl.parse` reads back: of a function, a statement, or an expression.

Types are explicit, so that reading back promotes nothing. Names are made legal and unique. Python reads no more than
100 levels of indentation: what is nested deeper than that is printed as an outline, its levels as numbers, and is not
for reading back.
"""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.ir.expr import Buffer, Expr, Var
from tirlite.ir.node import Node
from tirlite.ir.printer_expr import expr_text
from tirlite.ir.printer_names import Names, legal
from tirlite.ir.printer_stmt import Line, StatementPrinter, promises, tensor_text
from tirlite.ir.stmt import SeqStmt, Stmt

# Deeper nests are printed as an outline.
_MOST_LEVELS = 90


def text(node: Node) -> str:
    """`node` as DSL source. Variables and buffers that are not defined in it have their names all the same."""
    if isinstance(node, Expr):
        return expr_text(node, Names())[0]
    if isinstance(node, Stmt):
        printer = StatementPrinter(Names())
        printer.print((node,), 0)
        return _layout(printer.lines)
    return str(node)


def function_text(
    name: str,
    params: Sequence[Var | Buffer],
    dims: Sequence[Var],
    outputs: Sequence[Buffer],
    body: SeqStmt,
    mark: Node | Buffer | None = None,
) -> str:
    """A whole function, with the declarations of its dims in front. What `mark` prints as is framed."""
    names = Names(mark)
    header = _dims_text(dims, names)
    for param in params:
        names.define(param)
    signature = ", ".join(_param_text(param, names, is_output=param in outputs) for param in params)
    printer = StatementPrinter(names)
    printer.print(body.stmts, 1)
    function = [(0, "@tl.kernel"), (0, f"def {legal(name)}({signature}):"), *printer.lines]
    return _layout([*((0, line) for line in header), *([(0, "")] if header else []), *function])


def _dims_text(dims: Sequence[Var], names: Names) -> list[str]:
    plain, lines = [], []
    for var in dims:
        name = names.define(var)
        facts = _facts_text(var)
        if facts:
            lines.append(f'{name} = tl.dim("{name}"{facts})')
        else:
            plain.append(name)
    if len(plain) == 1:
        lines.insert(0, f'{plain[0]} = tl.dim("{plain[0]}")')
    elif plain:
        lines.insert(0, f'{", ".join(plain)} = tl.dims("{" ".join(plain)}")')
    return lines


def _facts_text(var: Var) -> str:
    """What is known of a dim beyond that it is positive, as keywords."""
    dim = var.dim
    if dim is None:
        return ""
    facts = [("min", dim.min, 1), ("max", dim.max, None), ("multiple_of", dim.multiple_of, 1)]
    return "".join(f", {fact}={value}" for fact, value, default in facts if value != default)


def _param_text(param: Var | Buffer, names: Names, *, is_output: bool) -> str:
    if isinstance(param, Var):
        return f"{names.of(param)}: tl.{param.dtype}"
    shape = ", ".join(expr_text(extent, names)[0] for extent in param.shape)
    kind = tensor_text(param.dtype, shape)
    scope = [f'scope="{param.scope}"'] if param.scope != "global" else []
    if scope or promises(param):
        kind = f"tl.buffer({', '.join([kind, *scope, *promises(param)])})"
    return f"{names.of(param)}: {f'tl.out[{kind}]' if is_output else kind}"


def _layout(lines: Sequence[Line]) -> str:
    deepest = max((level for level, _ in lines), default=0)
    if deepest <= _MOST_LEVELS:
        return "\n".join("    " * level + line for level, line in lines)
    digits = len(str(deepest))
    outline = [f"# An outline, since {deepest} levels are too many to indent: each line is led by its level."]
    return "\n".join(outline + [f"{level:>{digits}}| {line}" for level, line in lines])
