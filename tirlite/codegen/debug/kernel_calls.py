"""A KernelCall in, the call of a function that checks itself out, which is given the shadows of its arguments too."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.analysis import demands_of
from tirlite.codegen.debug.expressions import CheckedExpressions
from tirlite.codegen.debug.marks import Read, settled
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.kernel_calls import Calls, Version
from tirlite.codegen.values import Value
from tirlite.ir import Buffer, KernelCall, Var, walk
from tirlite.record import record


@record
class CheckedVersion(Version):
    """A function, and which of its buffers come with a shadow (`shadowed`).

    `ranks` has, for each parameter, how many indices tell where the poison of a scalar was read; None for no poison.
    """

    shadowed: tuple[bool, ...]
    ranks: tuple[int | None, ...]


class CheckedCalls(Calls):
    """Writes the calls in one function that checks itself."""

    def check(
        self,
        call: KernelCall,
        buffers: Mapping[Buffer, Buffer],
        known: Mapping[Var, Value],
        values: Expressions,
        out: KernelFunction,
    ) -> None:
        """Makes sure of the scalars that extents are computed from, too."""
        assert isinstance(values, CheckedExpressions)
        marks = {param: values.marks[value] for param, value in known.items() if value in values.marks}
        for demand in demands_of(call, self.facts.extents) if marks else ():
            for node in walk(demand.condition):
                if isinstance(node, Var) and node in marks:
                    values.checks.good(marks[node], f"a scalar that `{call.callee.name}` takes for an extent")
        super().check(call, buffers, known, values, out)

    def version(
        self, call: KernelCall, buffers: Mapping[Buffer, Buffer], known: Mapping[Var, Value], values: Expressions
    ) -> tuple[Version, list[Value]]:
        assert isinstance(values, CheckedExpressions)
        plain, operands = super().version(call, buffers, known, values)
        shadowed: list[bool] = []
        ranks: list[int | None] = []
        for param in call.callee.params:
            rank = None
            window = values.environment.windows[buffers[param]] if isinstance(param, Buffer) else None
            if window is not None and window.shadow is not None:
                operands += [window.shadow.pointer, window.owner]
            elif isinstance(param, Var) and (mark := values.marks.get(known[param])) is not None:
                origin = settled(values.out, mark).origin
                assert isinstance(origin, Read)
                operands += [mark.flag, origin.buffer, *origin.indices]
                rank = len(origin.indices)
            shadowed.append(window is not None and window.shadow is not None)
            ranks.append(rank)
        return CheckedVersion(plain.func, plain.apart, plain.aligned, tuple(shadowed), tuple(ranks)), operands
