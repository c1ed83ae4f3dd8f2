"""A function of the IR: parameters and a body."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from tirlite.diag import Span
from tirlite.ir.expr import Buffer, Var
from tirlite.ir.node import Node, node
from tirlite.ir.printer import function_text
from tirlite.ir.stmt import SeqStmt
from tirlite.ir.walk import walk


@node
class PrimFunc(Node):
    """A kernel. Buffers among `params` are arrays of the caller, variables are scalars.

    The dims in the shapes of the parameters are bound by the arguments. `outputs` are those parameters that the
    caller may omit, and is then given back.
    """

    CHILDREN: ClassVar = ("body",)
    DEFINES: ClassVar = ("params",)
    USES: ClassVar = ("outputs",)
    name: str
    params: tuple[Var | Buffer, ...]
    body: SeqStmt
    outputs: tuple[Buffer, ...] = ()
    span: Span | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        return function_text(self.name, self.params, self.dims, self.outputs, self.body)

    @property
    def dims(self) -> tuple[Var, ...]:
        """The variables in the shapes of the parameters, each once, in the order in which they are met."""
        found: dict[Var, None] = {}
        for param in self.params:
            for extent in param.shape if isinstance(param, Buffer) else ():
                found.update((each, None) for each in walk(extent) if isinstance(each, Var))
        return tuple(var for var in found if var not in self.params)
