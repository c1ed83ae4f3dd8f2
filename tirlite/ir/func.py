"""A function of the IR: parameters and a body."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from tirlite.diag import Span
from tirlite.ir.expr import Buffer, Var
from tirlite.ir.kernel_call import Function
from tirlite.ir.node import Node, node
from tirlite.ir.stmt import SeqStmt


@node
class PrimFunc(Function):
    """A kernel. Buffers among `params` are arrays of the caller, variables are scalars.

    The dims in the shapes of the parameters are bound by the arguments. `outputs` are the parameters that the caller
    may omit; they are then allocated and returned. `defaults` are the values of scalar parameters that the caller
    omits, in the order of `params`, with None for those that are required; it may be shorter. `is_normal` says that
    the function is known to be in normal form, as the pass `Normalize` returns it.
    """

    CHILDREN: ClassVar = ("body",)
    DEFINES: ClassVar = ("params",)
    USES: ClassVar = ("outputs",)
    name: str
    params: tuple[Var | Buffer, ...]
    body: SeqStmt
    outputs: tuple[Buffer, ...] = ()
    defaults: tuple[bool | int | float | None, ...] = ()
    span: Span | None = field(default=None, kw_only=True)
    is_normal: bool = field(default=False, init=False)

    def __str__(self) -> str:
        from tirlite.ir.printer_func import function_text

        return function_text(self)

    def show(self, mark: Node | Buffer | None = None) -> None:
        """Prints the function, coloured where the terminal has colours, with carets under all that `mark` prints as.

        `mark` is a statement or an expression out of the body, or a variable or buffer, which is marked wherever it
        stands.
        """
        from tirlite.ir.printer_func import function_text
        from tirlite.show import marked_text, write

        text = function_text(self, mark)
        write(marked_text(text, "# the node is not in this function" if mark is not None else ""))

    def _repr_html_(self) -> str:
        from tirlite.show import block, python_text

        return block(python_text(str(self)))
