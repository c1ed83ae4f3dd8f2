"""Prints a statement or an expression as DSL source, which `tl.parse` reads back; functions: `printer_func`.

Types are explicit, so that reading back promotes nothing. Names are made legal and unique. Python accepts at most 100
levels of indentation: deeper nests are printed as an outline with numbered levels, which cannot be read back.
"""

from __future__ import annotations

from tirlite.ir.expr import Expr
from tirlite.ir.kernel_call import Function
from tirlite.ir.node import Node
from tirlite.ir.printer_expr import expr_text
from tirlite.ir.printer_names import PrintedNames
from tirlite.ir.repeats import demand_few_repeats
from tirlite.ir.stmt import Stmt


def text(node: Node) -> str:
    """`node` as DSL source. Variables and buffers that are not defined in it are printed by name.

    Raises KernelError if shared parts would make the text too long.
    """
    demand_few_repeats(node)
    if isinstance(node, Expr):
        return expr_text(node, PrintedNames())[0]
    if isinstance(node, Stmt):
        from tirlite.ir.printer_stmt import StatementPrinter, laid_out

        printer = StatementPrinter(PrintedNames())
        printer.print((node,), 0)
        return laid_out(printer.lines)
    return str(node) if isinstance(node, Function) else repr(node)
