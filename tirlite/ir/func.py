"""PrimFunc: a function of the IR with parameters and a body. Within it, a dim is identified by its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import ClassVar

from tirlite.diag import Span
from tirlite.ir.expr import Buffer, Expr, Var
from tirlite.ir.kernel_call import DimSource, Function
from tirlite.ir.node import Node, node
from tirlite.ir.stmt import Allocate, SeqStmt, View
from tirlite.ir.walk import distinct
from tirlite.record import replace
from tirlite.sizes.dim import contradiction


@node
class PrimFunc(Function):
    """A kernel. Buffers among `params` are arrays of the caller, variables are scalars.
    The dims in the shapes of the parameters are bound by the arguments. `outputs` are the parameters that the caller
    may omit; they are then allocated and returned. `defaults` are the values of scalar parameters that the caller may
    omit, in the order of `params`, with None for required ones; it may be shorter. `is_normal`: the function is known
    to be in the normal form of the pass `Normalize`. `is_valid`: `validate` has accepted it.
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
    is_valid: bool = field(default=False, init=False)
    known_sources: Mapping[Var, DimSource] | None = field(default=None, init=False)
    known_uses: Mapping[Buffer, int] | None = field(default=None, init=False)

    def named(self, name: str) -> PrimFunc:
        """The same function with another name."""
        made = self.replaced(name=name)
        object.__setattr__(made, "is_valid", self.is_valid)
        return made

    def __str__(self) -> str:
        from tirlite.ir.printer_func import function_text

        return function_text(self)

    def show(self, mark: Node | Buffer | None = None) -> None:
        """Prints the function, coloured on a terminal, with carets under `mark`.

        `mark` is a statement or an expression in the body, or a variable or buffer, which is marked wherever it occurs.
        """
        from tirlite.ir.printer_func import function_text
        from tirlite.show import marked_text, write

        text = function_text(self, mark)
        write(marked_text(text, "# the node is not in this function" if mark is not None else ""))

    def _repr_html_(self) -> str:
        from tirlite.show import block, python_text

        return block(python_text(str(self)))


def with_one_dim_each(func: PrimFunc) -> PrimFunc:
    """`func` with a single variable for each dim: the first that occurs.

    Called functions have dims of their own. Raises KernelError for dims of one name with different facts.
    """
    met = dict.fromkeys(_dims(func))
    first: dict[str, Var] = {}
    others: dict[Var, Expr] = {}
    for var in met:
        assert var.dim is not None
        kept = first.setdefault(var.dim.name, var)
        if kept is not var:
            others[var] = kept
    if not others:
        return func
    from tirlite.ir.rewrite import Substitution, substitute  # for the few functions that have several

    message = contradiction(var.dim for var in met if var.dim is not None)
    if message is not None:
        raise message.replaced(span=func.span).error()
    shapes = Substitution(others, {})
    params = {each: replace(each, shape=shapes.shape(each)) for each in func.arrays}
    return func.replaced(
        params=tuple(params[each] if isinstance(each, Buffer) else each for each in func.params),
        outputs=tuple(params[each] for each in func.outputs),
        body=substitute(func.body, others, params),
    )


def _dims(func: PrimFunc) -> Iterator[Var]:
    """The dims of the parameters, then those that the body mentions."""
    yield from (var for var in func.dims if var.dim is not None)
    for each in distinct(func.body):
        yield from _variables((each,))
        if isinstance(each, (Allocate, View)):
            for extent in each.buffer.shape:
                yield from _variables(distinct(extent))


def _variables(nodes: Iterable[object]) -> Iterator[Var]:
    return (node for node in nodes if isinstance(node, Var) and node.dim is not None)
