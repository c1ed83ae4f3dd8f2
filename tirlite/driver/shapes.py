"""Makes the storage plan of a kernel for one shape, given as values for its dims by name."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING

from tirlite.diag import CallTypeError, Message, PlanMessage, did_you_mean
from tirlite.plan import Plan
from tirlite.runtime import Signature
from tirlite.runtime.explain import refuse_fact

if TYPE_CHECKING:
    from tirlite.rewrite import ByShape


class UnknownSize(Message):
    """A plan is asked for with a value for something that the kernel does not have.

    Example: `smooth.plan_at(k=4)`, where the kernel has the dims `n` and `m`.
    Fix: Name dims of the kernel, or its parameters that are numbers.
    """

    raises = CallTypeError
    title = "{kernel}() has no dim `{name}`"
    help = "{advice}"


class SizeType(Message):
    """A plan for one shape is asked for with a value that is not an integer.

    Example: `smooth.plan_at(n="4")`.
    Fix: Give the extent as an integer.
    """

    raises = CallTypeError
    title = "`{name}` of {kernel}() must be an integer, and is {given}"


class MissingSize(Message):
    """A plan for one shape is asked for, and a dim that it depends on has no value.

    Example: `smooth.plan_at(n=4)`, where sizes depend on `m` too.
    Fix: Give it a value: `smooth.plan_at(n=4, m=8)`.
    """

    raises = CallTypeError
    title = "the storage plan of {kernel}() depends on `{name}` too, which has no value"
    help = "write `{kernel}.plan_at({example})`"


class PlanByShape(PlanMessage):
    """The kernel is planned anew for each shape, so it has no one plan.

    Example: `kernel.plan`, where the kernel was compiled with `strategy="per_shape"`.
    Fix: Ask for the plan at a shape: `kernel.plan_at(n=4, m=8)`.
    """

    title = "{kernel}() has a storage plan for each shape"
    help = "write `{kernel}.plan_at({example})`"


def one_plan(signature: Signature, plan: Plan | ByShape) -> Plan:
    """The plan for all shapes. Raises PlanError if each shape has its own."""
    if not isinstance(plan, Plan):
        names = {var.name: 4 for var in plan.variables}
        raise PlanByShape(signature.name, _example(signature, names)).error()
    return plan


def _names(signature: Signature) -> list[str]:
    """The names of dims and scalars, each once: one value is for all dims of a name."""
    return [*dict.fromkeys([*(var.name for var in signature.dims), *(scalar.name for scalar in signature.scalars)])]


def _example(signature: Signature, values: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={values[name]}" for name in _names(signature) if name in values)


def _is_integer(given: object) -> bool:
    return isinstance(given, Integral)


def is_empty_at(signature: Signature, sizes: Mapping[str, int]) -> bool:
    """Whether a dim that is declared to be at least 1 is 0, as in a call with an empty array.

    Raises CallTypeError for an unknown name and for a value that is not an integer, CallValueError for a value that
    contradicts the facts.
    """
    known = _names(signature)
    for name, value in sizes.items():
        if not _is_integer(value):
            raise SizeType(name, signature.name, f"{value!r:.60}").error()
        if name not in known:
            names = f"it has {', '.join(f'`{each}`' for each in known) or 'none'}"
            raise UnknownSize(signature.name, name, did_you_mean(name, known, names)).error()
    is_empty = False
    for slot, var in enumerate(signature.dims):
        if var.dim is None or var.name not in sizes:
            continue
        value, facts = sizes[var.name], var.dim
        if value < facts.min and (facts.min, value) != (1, 0):
            refuse_fact(signature, slot, value, f"to be at least {facts.min}")
        if facts.max is not None and value > facts.max:
            refuse_fact(signature, slot, value, f"to be at most {facts.max}")
        if value % facts.multiple_of:
            refuse_fact(signature, slot, value, f"to be a multiple of {facts.multiple_of}")
        is_empty = is_empty or value < facts.min
    return is_empty


def plan_at(signature: Signature, plan: Plan | ByShape, sizes: Mapping[str, int]) -> Plan:
    """The plan with constant sizes and offsets for a shape. Raises CallTypeError for a dim without a value."""
    dims = plan.problem.dims if isinstance(plan, Plan) else plan.plans.dims
    missing = [dim.name for dim in dims if dim.name not in sizes]
    if missing:
        values = {dim.name: sizes.get(dim.name, 4) for dim in dims}
        raise MissingSize(signature.name, missing[0], _example(signature, values)).error()
    binding = {dim: sizes[dim.name] for dim in dims}
    return plan.at(binding) if isinstance(plan, Plan) else plan.plans.plan_at(binding)
