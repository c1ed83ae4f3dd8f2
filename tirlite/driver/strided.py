"""Makes the versions of a kernel for arrays that are not dense, and converts calls to theirs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from tirlite.driver.front import Front
from tirlite.ir import Buffer, Expr, PrimFunc, Var, const, i64, substitute
from tirlite.record import record, replace

if TYPE_CHECKING:
    from tirlite.ir import PrimFunc
    from tirlite.runtime import Binding
    from tirlite.runtime.strided import Layouts


# For each parameter that accepts strides, whether its last axis has stride 1.
Pattern: TypeAlias = "tuple[bool, ...]"
# The most versions with known unit strides; after these, one for any strides serves all other calls.
_MOST_PATTERNS = 4


@record
class StridedForm:
    """A function for arrays of any strides, except that last axes have stride 1 where `pattern` says so."""

    front: Front
    pattern: Pattern

    @property
    def func(self) -> PrimFunc:
        return self.front.func

    @property
    def count(self) -> int:
        """The number of stride parameters, which precede the others."""
        strides = (param.strides for param in self.func.arrays)
        return sum(isinstance(stride, Var) for own in strides for stride in own)

    def called(self, binding: Binding) -> Binding:
        """A call of the dense function as a call of this one."""
        assert binding.strides is not None
        pairs = zip(binding.strides, self.pattern, strict=True)
        strides = [step for own, is_unit in pairs for step in own[: len(own) - is_unit]]
        operands, arguments = [*strides, *binding.operands], [*strides, *binding.arguments]
        return type(binding)(operands, binding.dims, arguments, binding.results, binding.is_empty)


class StridedForms:
    """The strided forms of one function that calls have needed."""

    def __init__(self, func: PrimFunc, layouts: Layouts) -> None:
        self._func = func
        self._layouts = layouts
        self._forms: dict[Pattern, StridedForm] = {}

    def of(self, binding: Binding) -> StridedForm:
        """The form for a call with arrays that are not all dense."""
        assert binding.strides is not None
        pattern = tuple(bool(own) and own[-1] == 1 for own in binding.strides)
        if pattern not in self._forms and len(self._forms) >= _MOST_PATTERNS:
            pattern = (False,) * len(pattern)
        if pattern not in self._forms:
            params = (param.buffer for param in self._layouts.params)
            func = with_strides(self._func, dict(zip(params, pattern, strict=True)))
            self._forms.setdefault(pattern, StridedForm(Front(func), pattern))
        return self._forms[pattern]


def with_strides(func: PrimFunc, params: Mapping[Buffer, bool]) -> PrimFunc:
    """`func` with i64 parameters in front: the strides of `params` in elements, axis by axis.

    If a parameter maps to True, its last axis has stride 1 and no stride parameter.
    """
    strides: list[Var] = []
    buffers: dict[Buffer, Buffer] = {}
    taken = {param.name for param in func.params} | {dim.name for dim in func.dims}
    for param, is_unit in params.items():
        own: list[Expr] = []
        for axis in range(len(param.shape) - is_unit):
            var = Var(_fresh(f"{param.name}_stride{axis}", taken))
            strides.append(var)
            own.append(var)
        if own:  # a row is dense
            buffers[param] = replace(param, strides=(*own, *[const(1, i64)] * is_unit))
    known = [buffers.get(param, param) if isinstance(param, Buffer) else param for param in func.params]
    return func.replaced(
        params=(*strides, *known),
        body=substitute(func.body, {}, buffers),
        outputs=tuple(buffers.get(output, output) for output in func.outputs),
    )


def _fresh(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
