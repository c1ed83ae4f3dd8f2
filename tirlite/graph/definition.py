"""Computes the value of an operator that has no NumPy meaning: by its kernel, compiled for the given shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tirlite.driver import Kernel
from tirlite.graph.aot.operators import OperatorFunctions
from tirlite.graph.expr import Call, Var
from tirlite.graph.extents import values
from tirlite.graph.types import TensorType
from tirlite.rewrite.options import Options
from tirlite.sizes import Dim


def defined(call: Call, args: Sequence[Any], binding: Mapping[Dim, int]) -> Any:
    """The results of the call on arrays: one, or a tuple. Raises GraphError where the operator has no kernel either."""
    types = (TensorType(values(arg.tensor.shape, binding), arg.tensor.dtype) for arg in call.args)
    known = Call(call.op, tuple(Var("", of) for of in types), call.attrs.at(binding), name=call.name, span=call.span)
    return Kernel(OperatorFunctions().of(known), Options())(*args)
