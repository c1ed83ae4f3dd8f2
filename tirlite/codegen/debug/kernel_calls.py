"""A KernelCall in, the call of a function that checks itself out, which is given the shadows of its arguments too."""

from __future__ import annotations

from tirlite.analysis import demands_of
from tirlite.codegen.debug.expressions import CheckedExpressions
from tirlite.codegen.debug.marks import Mark, Read, settled
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import Faults
from tirlite.codegen.kernel_calls import Calls, Version
from tirlite.codegen.types import register_type
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

    def write(self, call: KernelCall, values: Expressions, faults: Faults) -> None:
        """Raises KernelError for an extent that surely does not fit."""
        assert isinstance(values, CheckedExpressions)
        environment, buffers = values.environment, dict(call.buffers())
        known = {param: values.value(value) for param, value in call.scalars()}
        marks = {param: values.marks[value] for param, value in known.items() if value in values.marks}
        for dim, (source, axis) in call.callee.sources.items():
            known[dim] = environment.places[buffers[source]].extents[axis]
        self._refuse_poison(call, marks, values)
        self.check(call, buffers, known, values, faults)
        operands: list[str] = []
        shadowed: list[bool] = []
        ranks: list[int | None] = []
        for param in call.callee.params:
            if isinstance(param, Buffer):
                window = environment.windows[buffers[param]]
                operands.append(f"ptr {environment.places[buffers[param]].pointer}")
                if window.shadow is not None:
                    operands += [f"ptr {window.shadow.pointer}", f"i8 {window.owner}"]
                shadowed.append(window.shadow is not None)
                ranks.append(None)
            else:
                operands.append(f"{register_type(param.dtype)} {known[param]}")
                numbers, rank = _told(marks.get(param), values)
                operands += numbers
                shadowed.append(False)
                ranks.append(rank)
        operands += [f"i64 {known[dim]}" for dim in call.callee.dims]
        version = self.version(call.callee, buffers, environment)
        checked = CheckedVersion(version.func, version.apart, version.aligned, tuple(shadowed), tuple(ranks))
        name = self.versions.name(checked)
        faults.check(values.out.value(f"call fastcc i64 @{name}({', '.join(operands)})"))

    def _refuse_poison(self, call: KernelCall, marks: dict[Var, Mark], values: CheckedExpressions) -> None:
        """Makes sure of the scalars that extents are computed from."""
        for demand in demands_of(call, self.extents) if marks else ():
            for node in walk(demand.condition):
                if isinstance(node, Var) and node in marks:
                    values.checks.good(marks[node], f"a scalar that `{call.callee.name}` takes for an extent")


def _told(mark: Mark | None, values: CheckedExpressions) -> tuple[list[str], int | None]:
    """What says of a scalar whether it is poisoned, and where that was read."""
    if mark is None:
        return [], None
    origin = settled(values.out, mark).origin
    assert isinstance(origin, Read)
    numbers = [f"i64 {each}" for each in (origin.buffer, *origin.indices)]
    return [f"i1 {mark.flag.operand}", *numbers], len(origin.indices)
