"""Prints a function as DSL source, with declarations of its dims and the functions that it calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tirlite.ir.equal import called_digests
from tirlite.ir.expr import Buffer, Var
from tirlite.ir.kernel_call import Function, closure_of
from tirlite.ir.node import Node
from tirlite.ir.printer_expr import expr_text, number_text
from tirlite.ir.printer_names import PrintedNames, is_name, legal
from tirlite.ir.printer_stmt import Line, StatementPrinter, laid_out, promises, tensor_text
from tirlite.ir.repeats import demand_few_repeats
from tirlite.show.styled import unframed


def function_text(func: Function, mark: Node | Buffer | None = None) -> str:
    """A function, preceded by those that it calls, each once. The text of `mark` is framed.

    Raises KernelError if shared parts would make the text too long.
    """
    functions = closure_of(func)
    for each in functions:
        demand_few_repeats(each)
    names: dict[Function, str] = {}
    if len(functions) == 1:
        return laid_out(_function_lines(func, names, mark, set()))
    digests = called_digests(func)
    taken = PrintedNames()
    own = taken.fresh(func.name)
    known: dict[bytes, str] = {}
    lines: list[Line] = []
    dims: set[str] = set()
    for callee in functions[:-1]:
        digest = digests[callee]
        if digest not in known:
            known[digest] = names[callee] = taken.fresh(callee.name)
            lines += [*_function_lines(callee, names, mark, dims), (0, ""), (0, "")]
        names[callee] = known[digest]
    return laid_out([*lines, *_function_lines(func, {**names, func: own}, mark, dims)])


def _function_lines(
    func: Function, functions: Mapping[Function, str], mark: Node | Buffer | None, dims: set[str]
) -> list[Line]:
    """One function, preceded by its dims' declarations; `functions` has the names of its callees.

    `dims`: the names of dims declared earlier in the text, which nothing else may take.
    """
    names = PrintedNames(mark, functions)
    header = _dims_text(func.dims, names)
    names.reserve(dims)
    dims.update(map(names.of, func.dims))
    for param in func.params:
        names.define(param)
    signature = ", ".join(_param_texts(func, names))
    printer = StatementPrinter(names)
    printer.print(func.body.stmts, 1)
    name = functions.get(func) or legal(func.name)
    lines = [(0, "@tl.kernel"), (0, f"def {name}({signature}):"), *printer.lines]
    return [*((0, line) for line in header), *([(0, "")] if header else []), *lines]


def _dims_text(dims: Sequence[Var], names: PrintedNames) -> list[str]:
    plain, lines = [], []
    for var in dims:
        name = names.define(var)
        # A dim may have a name that is reserved in the text, such as `max`.
        called = var.name if is_name(var.name) else unframed(name)
        facts = var.dim.told if var.dim is not None else ""
        if facts or called != unframed(name):
            arguments = ", ".join(filter(None, (f'"{called}"', facts)))
            lines.append(f"{name} = tl.dim({arguments})")
        else:
            plain.append(name)
    if len(plain) == 1:
        lines.insert(0, f'{plain[0]} = tl.dim("{plain[0]}")')
    elif plain:
        lines.insert(0, f'{", ".join(plain)} = tl.dims("{" ".join(plain)}")')
    return lines


def _param_texts(func: Function, names: PrintedNames) -> Iterator[str]:
    """The parameters with their defaults; after the first default, outputs get the default None."""
    behind = False
    for param in func.params:
        is_output, default = param in func.outputs, func.default_of(param)
        default_text = ""
        if isinstance(param, Var) and default is not None:
            default_text, behind = f" = {number_text(default, param.dtype)}", True
        elif behind and is_output:
            default_text = " = None"
        yield _param_text(param, names, is_output=is_output) + default_text


def _param_text(param: Var | Buffer, names: PrintedNames, *, is_output: bool) -> str:
    if isinstance(param, Var):
        return f"{names.of(param)}: tl.{param.dtype}"
    shape = ", ".join(expr_text(extent, names)[0] for extent in param.shape)
    kind = tensor_text(param.dtype, shape)
    scope = [f'scope="{param.scope}"'] if param.scope != "global" else []
    strides = [expr_text(stride, names)[0] for stride in param.strides]
    options = [f"strides=({', '.join(strides)}{',' * (len(strides) == 1)})"] if strides else []
    if scope or options or promises(param):
        kind = f"tl.buffer({', '.join([kind, *scope, *promises(param), *options])})"
    return f"{names.of(param)}: {f'tl.out[{kind}]' if is_output else kind}"
